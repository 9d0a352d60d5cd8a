import { nthAddress } from '../api/address-range.ts';
import { LABELS, ROLES } from '../api/group.ts';

/** Where a hosted API server is reached from outside of its seed. */
export interface Endpoint {
  /** A name or an IP address. */
  host: string;
  port: number;
}

/** Everything that the manifests of one hosted control plane are made from. */
export interface ControlPlane {
  /** Name and namespace of the Shoot in the garden. */
  shoot: { name: string; namespace: string };
  /** Namespace in the seed. */
  namespace: string;
  /** Kubernetes version without `v`, for example `1.36.3`. */
  version: string;
  /** Members of the control plane: kube-apiserver replicas, and etcd members once they have joined. */
  replicas: number;
  /** Nodes that the cluster may have; absent: few. */
  nodes?: number;
  networks: { pods: string; services: string };
  /** ClusterIPs in the seed: of kube-apiserver, and of each etcd member by its ordinal. */
  addresses: { apiServer: string; etcd: string[] };
  etcd: {
    /** Size of the StatefulSet, which planEtcd decides. */
    replicas: number;
    /** Whether the members have formed their cluster; from then on a new member joins instead of starting another. */
    initialised: boolean;
    /** Ordinals of the members that API servers talk to, which planEtcd decides. */
    endpoints: number[];
    /** UIDs of the claims on which members were last seen to vote, by ordinal; absent: nothing was noted yet. */
    volumes?: Readonly<Record<number, string>>;
    storageClassName?: string;
    /** Kubernetes quantity; default 2Gi. */
    storageSize?: string;
  };
  /** PriorityClass of its pods; absent: the seed has none for them. */
  priorityClassName?: string;
  /** Whether API servers write down who did what. */
  auditLog?: boolean;
  /** How the API server is reached from outside of the seed; default ClusterIP. */
  exposure?: 'ClusterIP' | 'NodePort' | 'LoadBalancer';
  /** The address at which the seed has its node ports; absent: that of a node. */
  exposedAt?: string;
  /** Where that is; absent while it is not known, and where its ClusterIP is reached directly. */
  endpoint?: Endpoint;
  /** Names that lead to the endpoint, or are to. */
  hostNames?: readonly string[];
  /** Machines are outside of the seed: they come by the endpoint as people do, and are reached through a tunnel that they open. */
  machinesOutside?: boolean;
  /** How API servers come to machines and pods where they have no tunnel; absent: as the seed's network leads them. */
  clusterNetwork?: ClusterNetwork;
}

/**
 * A container beside each API server, and started before it, that joins their pod to the cluster's network, with its volumes; or nothing is
 * there to be reached.
 */
type ClusterNetwork =
  | { container: { env: object[]; volumeMounts: object[]; [field: string]: unknown }; volumes: object[] }
  | 'none';

/** The port of every hosted API server. */
export const API_SERVER_PORT = 6443;
/** Beside it, where machines are outside of the seed: agents of the tunnel connect here. */
export const KONNECTIVITY_PORT = 8132;
export const ETCD_CLIENT_PORT = 2379;
export const ETCD_PEER_PORT = 2380;
/** Of a hosted member, for its JSON gateway: the operator asks it. Together with it etcd serves API servers slower (etcd warns of that). */
export const ETCD_GATEWAY_PORT = 2382;
export const CLUSTER_DOMAIN = 'cluster.local';

/** Address of the Service `kubernetes` in the shoot. */
export const kubernetesServiceAddress = (services: string): string => nthAddress(services, 1);
/** Address of the DNS Service in the shoot, as kubelets are told. */
export const dnsServiceAddress = (services: string): string => nthAddress(services, 10);

/** URL of the hosted API server within the seed. */
export const apiServerURL = ({ addresses }: Pick<ControlPlane, 'addresses'>): string =>
  `https://${bracketed(addresses.apiServer)}:${API_SERVER_PORT}`;

/** URL of the hosted API server for whoever is outside of the seed: people, and an operator that is elsewhere. */
export const endpointURL = (values: Pick<ControlPlane, 'addresses' | 'endpoint'>): string =>
  values.endpoint ? `https://${bracketed(values.endpoint.host)}:${values.endpoint.port}` : apiServerURL(values);

/** The same by a name. */
export const namedURL = (host: string, { endpoint }: Pick<ControlPlane, 'endpoint'>): string =>
  `https://${host}:${endpoint?.port ?? API_SERVER_PORT}`;

/** URL of the hosted API server for the cluster's machines. */
export const machinesURL = (values: Pick<ControlPlane, 'addresses' | 'endpoint' | 'machinesOutside'>): string =>
  values.machinesOutside ? endpointURL(values) : apiServerURL(values);

/** URL at which etcd member `ordinal` serves clients. */
export const etcdClientURL = (values: Pick<ControlPlane, 'addresses'>, ordinal: number): string =>
  `https://${bracketed(etcdAddress(values, ordinal))}:${ETCD_CLIENT_PORT}`;

/** URL at which etcd member `ordinal` serves its peers; identifies the member before it has a name. */
export const etcdPeerURL = (values: Pick<ControlPlane, 'addresses'>, ordinal: number): string =>
  `https://${bracketed(etcdAddress(values, ordinal))}:${ETCD_PEER_PORT}`;

/** What API servers are made of in the seed: the etcd members that they are told of, and themselves. */
export const seedAddresses = (values: Pick<ControlPlane, 'addresses' | 'etcd'>): string[] => [
  ...values.etcd.endpoints.map((ordinal) => etcdAddress(values, ordinal)),
  values.addresses.apiServer,
];

/** Labels of every object of the control plane in the seed. */
export function controlPlaneLabels(values: Pick<ControlPlane, 'shoot'>): Record<string, string> {
  return {
    [LABELS.managedBy]: 'coppice',
    [LABELS.shoot]: values.shoot.name,
    [LABELS.shootNamespace]: values.shoot.namespace,
    [LABELS.role]: ROLES.controlPlane,
  };
}

function etcdAddress(values: Pick<ControlPlane, 'addresses'>, ordinal: number): string {
  const address = values.addresses.etcd[ordinal];
  if (!address) throw new RangeError(`etcd member ${ordinal} has no Service address yet`);
  return address;
}

function bracketed(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}
