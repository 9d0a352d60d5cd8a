import { nthAddress } from '../api/address-range.ts';
import { LABELS, ROLES } from '../api/group.ts';

/** Address of a hosted API server from outside its seed. */
export interface Endpoint {
  /** A name or an IP address. */
  host: string;
  port: number;
}

/** Values from which the manifests of a hosted control plane are built. */
export interface ControlPlane {
  /** Name and namespace of the Shoot in the garden. */
  shoot: { name: string; namespace: string };
  /** Namespace in the seed. */
  namespace: string;
  /** Kubernetes version without `v`, for example `1.36.3`. */
  version: string;
  /** Members of the control plane: kube-apiserver replicas, and etcd members once they have joined. */
  replicas: number;
  /** Maximum nodes of the cluster; absent: few. */
  nodes?: number;
  networks: { pods: string; services: string };
  /** ClusterIPs in the seed: of kube-apiserver, and of each etcd member by ordinal. */
  addresses: { apiServer: string; etcd: string[] };
  etcd: {
    /** Size of the StatefulSet, decided by planEtcd. */
    replicas: number;
    /** Whether the members have formed their cluster; from then on a new member joins it. */
    initialised: boolean;
    /** Ordinals of the members that API servers use, decided by planEtcd. */
    endpoints: number[];
    /** UIDs of the claims on which members were last seen voting, by ordinal; absent: none recorded yet. */
    volumes?: Readonly<Record<number, string>>;
    storageClassName?: string;
    /** Kubernetes quantity; default 2Gi. */
    storageSize?: string;
  };
  /** PriorityClass of its pods; absent: the seed has none for them. */
  priorityClassName?: string;
  /** Whether API servers write an audit log. */
  auditLog?: boolean;
  /** Type of the API server's Service; default ClusterIP. */
  exposure?: 'ClusterIP' | 'NodePort' | 'LoadBalancer';
  /** The seed's address for node ports; absent: a node's address. */
  exposedAt?: string;
  /** The exposed address; absent while unknown, and where the ClusterIP is reached directly. */
  endpoint?: Endpoint;
  /** DNS names of the endpoint, existing or planned. */
  hostNames?: readonly string[];
  /**
   * Whether machines are outside the seed: they use the endpoint as people do, and are reached through a tunnel that
   * they open.
   */
  machinesOutside?: boolean;
  /** How API servers reach machines and pods without a tunnel; absent: through the seed's network. */
  clusterNetwork?: ClusterNetwork;
}

/**
 * A sidecar that joins the API server's pod to the cluster's network and starts before it, with its volumes; 'none':
 * nothing can be reached.
 */
type ClusterNetwork =
  | { container: { env: object[]; volumeMounts: object[]; [field: string]: unknown }; volumes: object[] }
  | 'none';

/** The port of every hosted API server. */
export const API_SERVER_PORT = 6443;
/** Port of the API server's pod for the tunnel's agents, where machines are outside the seed. */
export const KONNECTIVITY_PORT = 8132;
export const ETCD_CLIENT_PORT = 2379;
export const ETCD_PEER_PORT = 2380;
/**
 * Port of a hosted member's JSON gateway, used by the operator. On the client port the gateway would slow down API
 * servers (etcd warns of that).
 */
export const ETCD_GATEWAY_PORT = 2382;
export const CLUSTER_DOMAIN = 'cluster.local';

/** Address of the Service `kubernetes` in the shoot. */
export const kubernetesServiceAddress = (services: string): string => nthAddress(services, 1);
/** Address of the DNS Service in the shoot, configured in kubelets. */
export const dnsServiceAddress = (services: string): string => nthAddress(services, 10);

/** URL of the hosted API server within the seed. */
export const apiServerURL = ({ addresses }: Pick<ControlPlane, 'addresses'>): string =>
  `https://${bracketed(addresses.apiServer)}:${API_SERVER_PORT}`;

/** URL of the hosted API server from outside the seed: for people, and an operator elsewhere. */
export const endpointURL = (values: Pick<ControlPlane, 'addresses' | 'endpoint'>): string =>
  values.endpoint ? `https://${bracketed(values.endpoint.host)}:${values.endpoint.port}` : apiServerURL(values);

/** The same with a host name. */
export const namedURL = (host: string, { endpoint }: Pick<ControlPlane, 'endpoint'>): string =>
  `https://${host}:${endpoint?.port ?? API_SERVER_PORT}`;

/** URL of the hosted API server for the cluster's machines. */
export const machinesURL = (values: Pick<ControlPlane, 'addresses' | 'endpoint' | 'machinesOutside'>): string =>
  values.machinesOutside ? endpointURL(values) : apiServerURL(values);

/** Client URL of etcd member `ordinal`. */
export const etcdClientURL = (values: Pick<ControlPlane, 'addresses'>, ordinal: number): string =>
  `https://${bracketed(etcdAddress(values, ordinal))}:${ETCD_CLIENT_PORT}`;

/** Peer URL of etcd member `ordinal`; identifies the member before it has a name. */
export const etcdPeerURL = (values: Pick<ControlPlane, 'addresses'>, ordinal: number): string =>
  `https://${bracketed(etcdAddress(values, ordinal))}:${ETCD_PEER_PORT}`;

/** Addresses in the seed that API servers use: their etcd members and themselves. */
export const seedAddresses = (values: Pick<ControlPlane, 'addresses' | 'etcd'>): string[] => [
  ...values.etcd.endpoints.map((ordinal) => etcdAddress(values, ordinal)),
  values.addresses.apiServer,
];

/** Labels of every control plane object in the seed. */
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
