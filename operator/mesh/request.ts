import type { CloudProfile } from '../api/cloudprofile.ts';
import type { DesiredPool } from '../api/pools.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import { type MeshRequest, RANGE_KINDS } from './allocate.ts';

/** Shared address space (RFC 6598) first: offices and VPCs rarely use it. */
const POOLS = ['100.64.0.0/10', '10.0.0.0/8'];
/** Each node takes a /24 of the pod range. */
const NODE_PREFIX = 24;
const LEAST_NODES = 64;
/** A pod range cannot be enlarged later, so it is sized for this multiple of the nodes. */
const GROWTH = 2;
/** Largest supported cluster; the controller manager also rejects more than 16 bits between range and node mask. */
const MOST_NODES = 8192;
/** 4096 Services; since Kubernetes 1.33 a ServiceCIDR can add more. */
const SERVICES_PREFIX = 20;
/** Cilium ClusterMesh's default limit. */
const HIGHEST_ID = 255;

/** A new cluster's request to its profile's mesh; undefined: the profile has none. Pure. */
export function meshRequest(
  cluster: WorkerCluster,
  profile: CloudProfile,
  asked: {
    readonly mode: WorkerCluster['spec']['mode'];
    readonly pools: readonly Pick<DesiredPool, 'count' | 'maximum'>[];
    readonly ranges: { readonly pods: string; readonly services: string };
  },
): MeshRequest | undefined {
  const { mesh } = profile.spec;
  if (!mesh) return undefined;
  const { name, namespace = '', uid = '' } = cluster.metadata;
  const { networking, adopt, controlPlaneNodes } = cluster.spec;
  const written = RANGE_KINDS.filter((kind) => networking?.[kind] !== undefined);
  // A managed cluster keeps the immutable ranges its stack was created with.
  const keeps = asked.mode === 'Managed';
  const has = keeps ? asked.ranges : networking;
  const machines = asked.mode === 'SelfManaged' ? controlPlaneNodes : 0;
  const nodes = asked.pools.reduce(
    (sum, { count, maximum }) => sum + Math.max(count, Number.isFinite(maximum) ? maximum : 0),
    machines,
  );
  return {
    mesh: mesh.name,
    profile: profile.metadata.name,
    cluster: { namespace, name, uid },
    has: adopt ? {} : Object.fromEntries(RANGE_KINDS.flatMap((kind) => (has?.[kind] ? [[kind, has[kind]]] : []))),
    written: adopt ? [] : written,
    wants: keeps ? [] : RANGE_KINDS.filter((kind) => !written.includes(kind)),
    pools: { pods: mesh.pods ?? POOLS, services: mesh.services ?? POOLS },
    reserved: mesh.reserved ?? [],
    prefixes: {
      pods: podPrefix(Math.max(mesh.leastNodes ?? LEAST_NODES, nodes * GROWTH)),
      services: mesh.servicesPrefix ?? SERVICES_PREFIX,
    },
    highestID: mesh.highestClusterID ?? HIGHEST_ID,
  };
}

/** Prefix length of a pod range for so many nodes. */
const podPrefix = (nodes: number): number => NODE_PREFIX - Math.ceil(Math.log2(Math.min(nodes, MOST_NODES)));
