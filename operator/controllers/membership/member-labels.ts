import type { CloudProfile } from '../../api/cloudprofile.ts';
import { gpusOf } from '../../api/gpu.ts';
import { GROUP, LABELS } from '../../api/group.ts';
import type { HubSpec } from '../../api/hub.ts';
import { readCount } from '../../api/quantity.ts';
import { PATTERNS } from '../../api/schema.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { clusterResource } from '../../clusters/capacity.ts';
import type { OpenCluster } from '../../clusters/open-clusters.ts';
import { poolsForWork } from './planned-capacity.ts';

const TOPOLOGY = 'topology.kubernetes.io';
const INSTANCE_TYPE = 'node.kubernetes.io/instance-type';
/** Labels of clouds and Karpenter for interruptible nodes. */
const SPOT_MARKS = [
  ['eks.amazonaws.com/capacityType', 'SPOT'],
  ['cloud.google.com/gke-spot', 'true'],
  ['cloud.google.com/gke-preemptible', 'true'],
  ['kubernetes.azure.com/scalesetpriority', 'spot'],
  ['karpenter.sh/capacity-type', 'spot'],
] as const;

/** Most values per label: a cluster that reports thousands must not fill its hubs. */
const MOST_VALUES = 32;

/** Facts about a cluster beside its object: connection and profile. */
interface Surroundings {
  readonly open?: OpenCluster | undefined;
  readonly profile?: CloudProfile | undefined;
}

/** Zones of its nodes, else of planned ones. Sorted. Pure. */
export function zonesOf({ spec, status }: WorkerCluster, { open, profile }: Surroundings): string[] {
  const seen = labelOfNodes(open, `${TOPOLOGY}/zone`);
  const ofRegion = profile?.spec.regions?.find(({ name }) => name === status?.region)?.zones ?? [];
  const usual = spec.zones ?? ofRegion.map(({ name }) => name);
  const planned = spec.pools?.length ? spec.pools.flatMap(({ zones }) => zones ?? usual) : usual;
  return [...new Set(seen.length > 0 ? seen : planned)].sort();
}

/** Distinct values of a node label, sorted and limited. */
const labelOfNodes = (open: OpenCluster | undefined, label: string): string[] =>
  [...new Set((open?.nodes.list() ?? []).flatMap(({ metadata }) => metadata.labels?.[label] || []))]
    .sort()
    .slice(0, MOST_VALUES);

/** Worker machines: granted ones; for an attached cluster from its nodes. */
function machinesOf(
  cluster: WorkerCluster,
  { open }: Surroundings,
): { machineType?: string | undefined; spot?: boolean | undefined }[] {
  const granted = poolsForWork(cluster);
  if (granted.length > 0) return granted;
  return (open?.nodes.list() ?? []).map(({ metadata: { labels = {} } }) => ({
    machineType: labels[INSTANCE_TYPE],
    spot: SPOT_MARKS.some(([label, value]) => labels[label] === value),
  }));
}

/**
 * Labels of a cluster in a hub; valid Kubernetes labels only. Properties with several values have a key each, with
 * value `true`, so that selectors can test membership. Pure.
 */
export function labelsOf(
  cluster: WorkerCluster,
  { clusterLabels }: HubSpec,
  surroundings: Surroundings = {},
): Record<string, string> {
  const { metadata, spec, status } = cluster;
  const version = status?.kubernetesVersion;
  const zones = zonesOf(cluster, surroundings);
  const machines = machinesOf(cluster, surroundings);
  const regions = status?.region ? [status.region] : labelOfNodes(surroundings.open, `${TOPOLOGY}/region`);
  const own = Object.entries(metadata.labels ?? {});
  const all: Record<string, string | undefined> = {
    // Hubs may act on labels with a domain (cluster set, owner): only a tenant's labels without one are shown.
    ...Object.fromEntries(own.filter(([key]) => !key.includes('/') || key === LABELS.burst)),
    ...clusterLabels,
    [LABELS.provider]: status?.provider ?? spec.cloudProvider,
    [`${GROUP}/mode`]: status?.mode,
    // Labels may not contain plus signs; same replacement as in Helm.
    [`${GROUP}/kubernetes-version`]: version?.replaceAll('+', '_'),
    // Selectors cannot compare versions: the minor is for lists of versions.
    [`${GROUP}/kubernetes-minor`]: version && /^\d+\.\d+/.exec(version)?.[0],
    [`${GROUP}/simulated`]: status?.simulated ? 'true' : undefined,
    [`${GROUP}/spot`]: spec.pools?.some(({ spot }) => spot) ? 'true' : undefined,
    [`${GROUP}/price-class`]: priceClass(machines),
    [`${GROUP}/gpu`]: hasGPUs(cluster, surroundings) ? 'true' : undefined,
    [LABELS.mesh]: status?.networking?.mesh,
    [LABELS.clusterID]: status?.networking?.clusterID?.toString(),
    [LABELS.meshClusterName]: status?.networking?.clusterName,
    [LABELS.workerCluster]: metadata.name,
    [LABELS.workerClusterNamespace]: metadata.namespace,
    [`${TOPOLOGY}/region`]: regions.length === 1 ? regions[0] : undefined,
    [`${TOPOLOGY}/zone`]: zones.length === 1 ? zones[0] : undefined,
    ...Object.fromEntries(zones.map((zone) => [`${GROUP}/zone.${zone}`, 'true'])),
    ...Object.fromEntries(typesOf(machines).map((type) => [`${GROUP}/machine-type.${type}`, 'true'])),
  };
  return Object.fromEntries(
    Object.entries(all).flatMap(([key, value]) => (isLabel(key, value) ? [[key, value!]] : [])),
  );
}

/** Distinct machine types. */
const typesOf = (machines: readonly { machineType?: string | undefined }[]): string[] =>
  [...new Set(machines.flatMap(({ machineType }) => machineType || []))].sort().slice(0, MOST_VALUES);

/** Whether its machines are interruptible: all, none, or some. */
function priceClass(machines: readonly { spot?: boolean | undefined }[]): string | undefined {
  const spot = machines.filter((one) => one.spot).length;
  if (machines.length === 0) return undefined;
  return spot === 0 ? 'on-demand' : spot === machines.length ? 'spot' : 'mixed';
}

function hasGPUs(cluster: WorkerCluster, { open, profile }: Surroundings): boolean {
  const types = new Set(poolsForWork(cluster).map(({ machineType }) => machineType));
  const { total } = clusterResource(open?.nodes.list() ?? [], []);
  return (
    readCount(total?.gpu ?? '0') > 0 ||
    (profile?.spec.machineTypes ?? []).some((type) => types.has(type.name) && gpusOf(type) > 0)
  );
}

const isLabel = (key: string, value: string | undefined): boolean =>
  value !== undefined && value.length <= 63 && PATTERNS.labelKey.test(key) && PATTERNS.labelValue.test(value);
