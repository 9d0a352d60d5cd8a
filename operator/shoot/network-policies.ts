import { type AddressRange, ipv4Range, rangeContains, rangeText } from '../api/address-range.ts';
import { LABELS, ROLES } from '../api/group.ts';
import type { LabelSelector } from '../api/label-selector.ts';
import { COMPONENTS } from '../api/names.ts';
import type { SeedSpec } from '../api/seed.ts';
import type { IngressRule, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '../kube/network-policy.ts';
import {
  API_SERVER_PORT,
  type ControlPlane,
  controlPlaneLabels,
  ETCD_CLIENT_PORT,
  ETCD_GATEWAY_PORT,
  ETCD_PEER_PORT,
  KONNECTIVITY_PORT,
} from './values.ts';

/** What is around a control plane in its seed. */
export interface Surroundings {
  readonly networks: Pick<SeedSpec['networks'], 'pods' | 'services' | 'nodes' | 'blockCIDRs'>;
  /** Addresses that the seed's nodes were seen to have. */
  readonly nodeAddresses: readonly string[];
  /** Hosts at which the seed's own API servers were seen. */
  readonly apiServers: readonly string[];
  /** Where the operator's pods are, if it runs in the seed. */
  readonly operatorNamespace: string;
  /** URL of the registry mirror that machines ask. */
  readonly imageMirror?: string;
  /** The shoot's VXLAN network identifier. */
  readonly vni: number;
  /** Whether the shoot's machines are pods of the seed. */
  readonly hasMachines: boolean;
}

/** Names of the policies in a shoot's namespace. */
const POLICIES = { controlPlane: 'control-plane', machines: 'machines' } as const;

const MACHINE_ROLES = [ROLES.machine, ROLES.controlPlaneMachine];
/** Machines and API servers of a local cluster send frames of the cluster's network to each other. */
const VXLAN_PORT = 4789;
/** Clouds tell a machine's secrets to whoever asks from it; loopback may be a node's own; multicast groups are those of other clusters. */
const NOT_THE_WORLD = [
  '127.0.0.0/8',
  '169.254.0.0/16',
  '168.63.129.16/32',
  '100.100.100.200/32',
  '192.0.0.0/24',
  '224.0.0.0/4',
];
const DNS_PORT = 53;

const app = (...names: string[]): LabelSelector => ({
  matchExpressions: [{ key: 'app', operator: 'In', values: names }],
});
const machines: LabelSelector = { matchExpressions: [{ key: LABELS.role, operator: 'In', values: MACHINE_ROLES }] };
const others: LabelSelector = { matchExpressions: [{ key: LABELS.role, operator: 'NotIn', values: MACHINE_ROLES }] };
const sameNamespace: NetworkPolicyPeer = { podSelector: {} };
const tcp = (...ports: number[]): NetworkPolicyPort[] => ports.map((port) => ({ protocol: 'TCP', port }));
const udp = (port: number): NetworkPolicyPort => ({ protocol: 'UDP', port });

/** The operator, as a process of a node or as a pod of the chart: in its own namespace, since tenants may call pods of theirs what they like. */
const operator = ({ networks, operatorNamespace }: Surroundings): NetworkPolicyPeer[] => [
  {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': operatorNamespace } },
    podSelector: { matchLabels: { 'app.kubernetes.io/name': 'coppice' } },
  },
  ...(networks.nodes ? [{ ipBlock: { cidr: networks.nodes } }] : []),
];

/**
 * Who may connect to whom in a shoot's namespace: what these policies do not name is refused. One for all pods but machines, and one for
 * machines where they are pods of the seed. Pure.
 */
export function networkPolicies(
  values: Pick<ControlPlane, 'namespace' | 'shoot' | 'machinesOutside'>,
  around: Surroundings,
): NetworkPolicy[] {
  return around.hasMachines
    ? [controlPlanePolicy(values, around), machinesPolicy(values, around)]
    : [controlPlanePolicy(values, around)];
}

type Values = Parameters<typeof networkPolicies>[0];

function controlPlanePolicy(values: Values, around: Surroundings): NetworkPolicy {
  return policy(values, POLICIES.controlPlane, {
    // New pods of another kind are in here without being named.
    podSelector: others,
    policyTypes: ['Ingress', 'Egress'],
    ingress: [
      // Ports divide the components: nobody but an API server listens here, and its clients prove who they are. No source is named: what
      // comes by a load balancer may have an address of a node in the range of pods, and some plugins match no node by ranges.
      { ports: tcp(API_SERVER_PORT, ...(values.machinesOutside ? [KONNECTIVITY_PORT] : [])) },
      {
        from: [{ podSelector: app(COMPONENTS.apiServer, COMPONENTS.etcd) }, ...operator(around)],
        ports: tcp(ETCD_CLIENT_PORT),
      },
      { from: operator(around), ports: tcp(ETCD_GATEWAY_PORT) },
      { from: [{ podSelector: app(COMPONENTS.etcd) }], ports: tcp(ETCD_PEER_PORT) },
      ...(around.hasMachines ? [{ from: [{ podSelector: machines }], ports: [udp(VXLAN_PORT)] }] : []),
    ],
    egress: [{ to: [sameNamespace] }, ...clusterNetwork(around)],
  });
}

function machinesPolicy(values: Values, around: Surroundings): NetworkPolicy {
  const { imageMirror } = around;
  const nodes = nodeRanges(around);
  const mirrorPort = imageMirror ? Number(new URL(imageMirror).port) || 80 : undefined;
  const runsControlPlane: IngressRule[] = [
    // Of a machine that runs the control plane.
    { ports: tcp(API_SERVER_PORT) },
    { from: operator(around), ports: tcp(ETCD_CLIENT_PORT) },
  ];
  return policy(values, POLICIES.machines, {
    podSelector: machines,
    policyTypes: ['Ingress', 'Egress'],
    ingress: [{ from: [sameNamespace] }, ...runsControlPlane],
    egress: [
      { to: [sameNamespace] },
      ...clusterNetwork(around),
      ...outside(around),
      { to: apiServersOfTenant(values), ports: tcp(API_SERVER_PORT) },
      ...(nodes.length > 0
        ? [
            {
              to: nodes.map((cidr) => ({ ipBlock: { cidr } })),
              ports: [udp(DNS_PORT), ...tcp(DNS_PORT, ...(mirrorPort ? [mirrorPort] : []))],
            },
          ]
        : []),
    ],
  });
}

/** More exceptions than these are more than some plugins take. */
const MOST_RANGES = 128;

/**
 * Ranges that hold all of these IPv4 addresses, at most 128 of one size: of single addresses, if so many are enough. Names are no addresses.
 * Sorted, so that equal addresses make equal policies. Pure.
 */
function rangesOf(addresses: readonly string[]): AddressRange[] {
  for (let prefix = 32; ; prefix--) {
    const ranges = addresses.flatMap((address) => ipv4Range(`${address}/${prefix}`) ?? []);
    const first = new Map(ranges.map((range) => [range.first, range]));
    if (first.size <= MOST_RANGES) return [...first.values()].sort((a, b) => (a.first < b.first ? -1 : 1));
  }
}

/** The range that the seed says its nodes are in, or else ranges of what was seen. */
const nodeRanges = ({ networks, nodeAddresses }: Surroundings): string[] =>
  networks.nodes ? [networks.nodes] : rangesOf(nodeAddresses).map(rangeText);

/** What machines reach outside of the seed, and nothing in it. IPv6 is refused as a whole. */
function outside(around: Surroundings): NonNullable<NetworkPolicy['spec']['egress']> {
  const { pods, services, nodes, blockCIDRs = [] } = around.networks;
  const said = [pods, services, ...(nodes ? [nodes] : []), ...NOT_THE_WORLD, ...blockCIDRs];
  const ranges = said.flatMap((text) => ipv4Range(text) ?? []);
  // An API server takes no exception that is everything.
  if (ranges.some(({ prefix }) => prefix === 0)) return [];
  const seen = [...rangesOf(around.nodeAddresses), ...rangesOf(around.apiServers)];
  const more = seen.filter((range) => !ranges.some((known) => rangeContains(known, range)));
  return [{ to: [{ ipBlock: { cidr: '0.0.0.0/0', except: [...new Set([...ranges, ...more].map(rangeText))] } }] }];
}

/** Of all clusters in one namespace of the garden: a hub in one of them calls its members by these. */
const apiServersOfTenant = ({ shoot }: Values): NetworkPolicyPeer[] =>
  [app(COMPONENTS.apiServer), { matchLabels: { [LABELS.role]: ROLES.controlPlaneMachine } }].map((podSelector) => ({
    namespaceSelector: { matchLabels: { [LABELS.shootNamespace]: shoot.namespace } },
    podSelector,
  }));

/** Machines find each other by a multicast group, which is of this cluster alone. */
const clusterNetwork = ({ hasMachines, vni }: Surroundings): NonNullable<NetworkPolicy['spec']['egress']> =>
  hasMachines
    ? [
        {
          to: [{ ipBlock: { cidr: `239.${vni >> 16}.${(vni >> 8) & 255}.${vni & 255}/32` } }],
          ports: [udp(VXLAN_PORT)],
        },
      ]
    : [];

const policy = (values: Values, name: string, spec: NetworkPolicy['spec']): NetworkPolicy => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name, namespace: values.namespace, labels: controlPlaneLabels(values) },
  spec,
});
