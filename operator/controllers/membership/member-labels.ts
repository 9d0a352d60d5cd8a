import type { CloudProfile } from '../../api/cloudprofile.ts';
import { gpusOf } from '../../api/gpu.ts';
import { GROUP, LABELS } from '../../api/group.ts';
import type { HubSpec } from '../../api/hub.ts';
import { parseCount } from '../../api/quantity.ts';
import { PATTERNS } from '../../api/schema.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { clusterResource } from '../../clusters/capacity.ts';
import type { OpenCluster } from '../../clusters/open-clusters.ts';
import { poolsForWork } from './planned-capacity.ts';

const TOPOLOGY = 'topology.kubernetes.io';

/** What is known of a cluster beside its object: the open cluster, and its profile. */
export interface Surroundings {
  readonly open?: OpenCluster | undefined;
  readonly profile?: CloudProfile | undefined;
}

/** Zones of its nodes; of those that it is to have, where it has none. Sorted. Pure. */
export function zonesOf({ spec, status }: WorkerCluster, { open, profile }: Surroundings): string[] {
  const seen = (open?.nodes.list() ?? []).flatMap(({ metadata }) => metadata.labels?.[`${TOPOLOGY}/zone`] || []);
  const ofPools = (spec.pools ?? []).flatMap(({ zones = [] }) => zones);
  const ofRegion = profile?.spec.regions?.find(({ name }) => name === status?.region)?.zones ?? [];
  const planned = [ofPools, spec.zones ?? [], ofRegion.map(({ name }) => name)].find(({ length }) => length > 0) ?? [];
  return [...new Set(seen.length > 0 ? seen : planned)].sort();
}

/**
 * What a cluster shows of itself in a hub; keys and values are those of Kubernetes labels, and what cannot be one is left out. What a
 * cluster has several of has a key for each, with value `true`: selectors ask whether one is among them. Pure.
 */
export function labelsOf(
  cluster: WorkerCluster,
  { clusterLabels }: HubSpec,
  surroundings: Surroundings = {},
): Record<string, string> {
  const { metadata, spec, status } = cluster;
  const version = status?.kubernetesVersion;
  const zones = zonesOf(cluster, surroundings);
  const pools = poolsForWork(cluster);
  const own = Object.entries(metadata.labels ?? {});
  const all: Record<string, string | undefined> = {
    // A hub may act on labels with a domain (which set a cluster is in, whose it is): of a tenant's only those without one are shown.
    ...Object.fromEntries(own.filter(([key]) => !key.includes('/') || key === LABELS.burst)),
    ...clusterLabels,
    [LABELS.provider]: status?.provider ?? spec.cloudProvider,
    [`${GROUP}/mode`]: status?.mode,
    // What comes after a plus sign no label can have: Helm writes it so, too.
    [`${GROUP}/kubernetes-version`]: version?.replaceAll('+', '_'),
    // Selectors compare no versions: by this one they ask for a few.
    [`${GROUP}/kubernetes-minor`]: version && /^\d+\.\d+/.exec(version)?.[0],
    [`${GROUP}/simulated`]: status?.simulated ? 'true' : undefined,
    [`${GROUP}/spot`]: spec.pools?.some(({ spot }) => spot) ? 'true' : undefined,
    [`${GROUP}/price-class`]: priceClass(pools),
    [`${GROUP}/gpu`]: hasGPUs(cluster, surroundings) ? 'true' : undefined,
    [LABELS.mesh]: status?.networking?.mesh,
    [LABELS.clusterID]: status?.networking?.clusterID?.toString(),
    [LABELS.meshClusterName]: status?.networking?.clusterName,
    [LABELS.workerCluster]: metadata.name,
    [LABELS.workerClusterNamespace]: metadata.namespace,
    [`${TOPOLOGY}/region`]: status?.region,
    [`${TOPOLOGY}/zone`]: zones.length === 1 ? zones[0] : undefined,
    ...Object.fromEntries(zones.map((zone) => [`${GROUP}/zone.${zone}`, 'true'])),
    ...Object.fromEntries(pools.map(({ machineType }) => [`${GROUP}/machine-type.${machineType}`, 'true'])),
  };
  return Object.fromEntries(
    Object.entries(all).flatMap(([key, value]) => (isLabel(key, value) ? [[key, value!]] : [])),
  );
}

/** Whether its machines may be taken away at short notice: all, none, or some of them. */
function priceClass(pools: readonly { spot?: boolean | undefined }[]): string | undefined {
  const spot = pools.filter((pool) => pool.spot).length;
  if (pools.length === 0) return undefined;
  return spot === 0 ? 'on-demand' : spot === pools.length ? 'spot' : 'mixed';
}

function hasGPUs(cluster: WorkerCluster, { open, profile }: Surroundings): boolean {
  const types = new Set(poolsForWork(cluster).map(({ machineType }) => machineType));
  const { total } = clusterResource(open?.nodes.list() ?? [], []);
  return (
    parseCount(total?.gpu ?? '0') > 0 ||
    (profile?.spec.machineTypes ?? []).some((type) => types.has(type.name) && gpusOf(type) > 0)
  );
}

const isLabel = (key: string, value: string | undefined): boolean =>
  value !== undefined && value.length <= 63 && PATTERNS.labelKey.test(key) && PATTERNS.labelValue.test(value);
