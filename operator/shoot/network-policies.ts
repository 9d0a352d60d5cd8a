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

/** Surroundings of a control plane in its seed. */
export interface Surroundings {
  readonly networks: Pick<SeedSpec['networks'], 'pods' | 'services' | 'nodes' | 'blockCIDRs'>;
  /** Observed addresses of the seed's nodes. */
  readonly nodeAddresses: readonly string[];
  /** Observed hosts of the seed's own API servers. */
  readonly apiServers: readonly string[];
  /** The operator's namespace, if it runs in the seed. */
  readonly operatorNamespace: string;
  /** URL of the registry mirror that machines use. */
  readonly imageMirror?: string;
  /** The shoot's VXLAN network identifier. */
  readonly vni: number;
  /** Whether the shoot's machines are pods of the seed. */
  readonly hasMachines: boolean;
}

/** Names of the policies in a shoot's namespace. */
const POLICIES = { controlPlane: 'control-plane', machines: 'machines' } as const;

const MACHINE_ROLES = [ROLES.machine, ROLES.controlPlaneMachine];
/** Machines and API servers of a local cluster exchange frames of the cluster's network. */
const VXLAN_PORT = 4789;
/**
 * Excluded ranges: cloud metadata services reveal a machine's secrets, loopback may be the node's own, and multicast
 * groups belong to other clusters.
 */
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

/**
 * The operator, as a process on a node or as the chart's pod: restricted to its namespace, since tenants choose the
 * names of their pods.
 */
const operator = ({ networks, operatorNamespace }: Surroundings): NetworkPolicyPeer[] => [
  {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': operatorNamespace } },
    podSelector: { matchLabels: { 'app.kubernetes.io/name': 'coppice' } },
  },
  ...(networks.nodes ? [{ ipBlock: { cidr: networks.nodes } }] : []),
];

/**
 * Permitted connections in a shoot's namespace; everything else is refused. One policy for all pods except machines,
 * and one for machines where they are pods of the seed. Pure.
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
    // Applies to new kinds of pods too.
    podSelector: others,
    policyTypes: ['Ingress', 'Egress'],
    ingress: [
      // Restricted by port only: nothing but API servers listens on these, and clients authenticate. No source is
      // named: connections through a load balancer may have a node address within the pod range, and some plugins match
      // no node by ranges.
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
    // A machine that runs the control plane.
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

/** Some plugins do not accept more exceptions. */
const MOST_RANGES = 128;

/**
 * Ranges that cover all of these IPv4 addresses, at most 128 of equal size: single addresses if so few suffice. Names
 * are ignored. Sorted, so that equal addresses give equal policies. Pure.
 */
function rangesOf(addresses: readonly string[]): AddressRange[] {
  for (let prefix = 32; ; prefix--) {
    const ranges = addresses.flatMap((address) => ipv4Range(`${address}/${prefix}`) ?? []);
    const first = new Map(ranges.map((range) => [range.first, range]));
    if (first.size <= MOST_RANGES) return [...first.values()].sort((a, b) => (a.first < b.first ? -1 : 1));
  }
}

/** The seed's configured node range, or else ranges of the observed addresses. */
const nodeRanges = ({ networks, nodeAddresses }: Surroundings): string[] =>
  networks.nodes ? [networks.nodes] : rangesOf(nodeAddresses).map(rangeText);

/** Destinations of machines outside the seed, nothing inside it. IPv6 is refused entirely. */
function outside(around: Surroundings): NonNullable<NetworkPolicy['spec']['egress']> {
  const { pods, services, nodes, blockCIDRs = [] } = around.networks;
  const said = [pods, services, ...(nodes ? [nodes] : []), ...NOT_THE_WORLD, ...blockCIDRs];
  const ranges = said.flatMap((text) => ipv4Range(text) ?? []);
  // The API server rejects an exception that covers everything.
  if (ranges.some(({ prefix }) => prefix === 0)) return [];
  const seen = [...rangesOf(around.nodeAddresses), ...rangesOf(around.apiServers)];
  const more = seen.filter((range) => !ranges.some((known) => rangeContains(known, range)));
  return [{ to: [{ ipBlock: { cidr: '0.0.0.0/0', except: [...new Set([...ranges, ...more].map(rangeText))] } }] }];
}

/** API servers of all clusters in one garden namespace: a hub in one of them reaches its members by these. */
const apiServersOfTenant = ({ shoot }: Values): NetworkPolicyPeer[] =>
  [app(COMPONENTS.apiServer), { matchLabels: { [LABELS.role]: ROLES.controlPlaneMachine } }].map((podSelector) => ({
    namespaceSelector: { matchLabels: { [LABELS.shootNamespace]: shoot.namespace } },
    podSelector,
  }));

/** Machines find each other through a multicast group of this cluster alone. */
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
