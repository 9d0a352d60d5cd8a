import { GROUP, LABELS } from '../../api/group.ts';
import type { HubSpec } from '../../api/hub.ts';
import { shortHash } from '../../api/names.ts';
import { formatBytes, formatCpu, readBytes, readCpu } from '../../api/quantity.ts';
import type { KubeObject, Resource } from '../../kube/resources.ts';
import type { HubAmounts, Member } from '../contract.ts';

const CLUSTER_GROUP = 'cluster.karmada.io';
export const CLUSTERS: Resource = {
  group: CLUSTER_GROUP,
  version: 'v1alpha1',
  plural: 'clusters',
  kind: 'Cluster',
  namespaced: false,
};

/** Namespace of Karmada's cluster Secrets. */
export const CLUSTER_NAMESPACE = 'karmada-cluster';
/** Taint that Karmada sets on a cluster that is not ready. */
const NOT_READY = 'cluster.karmada.io/not-ready';
const INITIALIZING: Taint = { key: `${GROUP}/initializing`, effect: 'NoSchedule' };
const ASLEEP: Taint = { key: `${GROUP}/asleep`, effect: 'NoSchedule' };
const LEAVING: Taint = { key: `${GROUP}/leaving`, effect: 'NoSchedule' };
const NO_EXECUTE = {
  Asleep: { key: ASLEEP.key, effect: 'NoExecute' },
  Leaving: { key: LEAVING.key, effect: 'NoExecute' },
} as const;
/** Taint by which workloads are evicted from a draining cluster. */
export const LEAVES = NO_EXECUTE.Leaving;
/**
 * Label with the capacity that the hub last counted: the scheduler retries unplaced workloads after a change of a
 * label, but not of a status.
 */
const OFFERED = `${GROUP}/offered`;

interface Taint {
  key: string;
  effect: 'NoSchedule' | 'NoExecute';
  [field: string]: unknown;
}
type ResourceList = Readonly<Record<string, string>>;

type SecretRef = { namespace?: string; name: string };

/** The fields of a Karmada Cluster that are read. */
export type KarmadaCluster = KubeObject & {
  spec?: {
    id?: string;
    syncMode?: string;
    provider?: string;
    region?: string;
    zones?: string[];
    taints?: Taint[];
    secretRef?: SecretRef;
    impersonatorSecretRef?: SecretRef;
  };
  status?: {
    conditions?: { type: string; status: string; message?: string }[];
    apiEnablements?: { groupVersion: string; resources?: { kind: string }[] }[];
    resourceSummary?: {
      allocatable?: ResourceList;
      allocated?: ResourceList;
      allocating?: ResourceList;
      allocatableModelings?: { grade: number; count: number }[];
    };
  };
};

/** State of the taint that evicts workloads: once set, it stays until the cluster is gone or awake. */
export type Draining = 'begin' | 'keep';

/** The desired Cluster of a member. `more`: fields of the sync mode. Pure. */
export function clusterObject(
  member: Member,
  live: KarmadaCluster | undefined,
  more: Record<string, unknown>,
  draining: Draining = 'keep',
): KubeObject {
  const { name, id, labels, zones, nodeSizes } = member;
  const offered = offeredLabel(member, live) ?? live?.metadata.labels?.[OFFERED];
  const provider = labels[LABELS.provider];
  const region = labels['topology.kubernetes.io/region'];
  return {
    apiVersion: `${CLUSTER_GROUP}/v1alpha1`,
    kind: 'Cluster',
    metadata: { name, labels: { ...labels, ...(offered && { [OFFERED]: offered }) } },
    spec: {
      id,
      ...(provider && { provider }),
      ...(region && { region }),
      ...(zones.length > 0 && { zones }),
      ...(nodeSizes.length > 0 && { resourceModels: resourceModels(nodeSizes) }),
      taints: karmadaTaints(live?.spec?.taints ?? [], member.closed, draining),
      ...more,
    },
  };
}

/**
 * The taint list is atomic in Karmada's schema: taints of Karmada and of people are repeated in place, Coppice's are
 * added or removed. Pure.
 */
export function karmadaTaints(live: readonly Taint[], closed: Member['closed'], draining: Draining): Taint[] {
  const isIn = (taint: Taint) => live.some((one) => isSame(one, taint));
  const wanted: Taint[] = [];
  if (closed === 'Initializing') wanted.push(INITIALIZING);
  if (closed === 'Asleep') wanted.push(ASLEEP);
  if (closed === 'Leaving') wanted.push(LEAVING);
  const noExecute = closed && closed !== 'Initializing' ? NO_EXECUTE[closed] : undefined;
  if (noExecute && (draining === 'begin' || isIn(noExecute))) wanted.push(noExecute);
  const ours = [INITIALIZING, ASLEEP, LEAVING, ...Object.values(NO_EXECUTE)];
  const kept = live.filter((one) => !ours.some((own) => isSame(own, one)) || wanted.some((own) => isSame(own, one)));
  return [...kept, ...wanted.filter((taint) => !isIn(taint))];
}

const isSame = (a: Taint, b: Taint): boolean => a.key === b.key && a.effect === b.effect;

/** A node counts as the minimum of its grade, so one eighth is the most that can be lost. */
const STEPS = 8;
const MEBIBYTE = 2 ** 20;
const MOST = '9223372036854775807';

/**
 * Grades by which Karmada counts free nodes: eighths of each size. With Karmada's default grades a node below 4 GiB
 * counts as zero, and no workload is divided onto it. Sizes of different shape may count for less, never for more.
 * Pure.
 */
export function resourceModels(sizes: readonly HubAmounts[]): object[] {
  const bounds = gradesOf(sizes);
  return bounds.map((min, grade) => {
    const max = bounds[grade + 1];
    return {
      grade,
      ranges: [
        { name: 'cpu', min: formatCpu(min.cpu), max: max ? formatCpu(max.cpu) : MOST },
        { name: 'memory', min: formatBytes(min.memory), max: max ? formatBytes(max.memory) : MOST },
      ],
    };
  });
}

/** Minimum of each grade, in millicores and bytes. */
function gradesOf(sizes: readonly HubAmounts[]): { cpu: number; memory: number }[] {
  const eighths = (amount: number) => Array.from({ length: STEPS }, (_, step) => (amount * (step + 1)) / STEPS);
  const cpus = sizes.flatMap(({ cpu = '0' }) => eighths(readCpu(cpu)).map(Math.floor)).sort((a, b) => a - b);
  const memories = sizes
    .flatMap(({ memory = '0' }) => eighths(readBytes(memory)).map((bytes) => Math.floor(bytes / MEBIBYTE) * MEBIBYTE))
    .sort((a, b) => a - b);
  const bounds: { cpu: number; memory: number }[] = [];
  for (let at = cpus.length - 1; at >= 0; at--) {
    const [cpu, memory] = [cpus[at]!, memories[at]!];
    const above = bounds[0];
    if (cpu > 0 && memory > 0 && (!above || (cpu < above.cpu && memory < above.memory)))
      bounds.unshift({ cpu, memory });
  }
  bounds.unshift({ cpu: 0, memory: 0 });
  return bounds;
}

/**
 * Karmada's count of a node with these free amounts: its grade's minimum. Versions after 1.17 ignore resources missing
 * from the grades, such as GPUs; a Karmada that renews tokens is known to be that recent. Pure.
 */
export function countedBy(sizes: readonly HubAmounts[], { karmada }: HubSpec): (free: HubAmounts) => HubAmounts {
  // Karmada's default grades apply then, which are unknown here.
  if (sizes.length === 0) return (free) => free;
  const grades = gradesOf(sizes);
  return (free) => {
    const [cpu, memory] = [readCpu(free.cpu ?? '0'), readBytes(free.memory ?? '0')];
    const grade = grades.findLast((min) => min.cpu <= cpu && min.memory <= memory);
    const gpu = karmada?.renewsTokens ? '0' : free.gpu;
    return { cpu: formatCpu(grade?.cpu ?? 0), memory: formatBytes(grade?.memory ?? 0), ...(gpu && { gpu }) };
  };
}

const readyOf = (live: KarmadaCluster | undefined) => live?.status?.conditions?.find(({ type }) => type === 'Ready');

/** Whether the cluster reported to Karmada recently. Pure. */
export const isHeardOf = (live: KarmadaCluster | undefined): boolean => readyOf(live)?.status === 'True';

/** Why Karmada does not use the cluster yet, a sentence; undefined: it does. Pure. */
export function whyNotReady(name: string, live: KarmadaCluster | undefined): string | undefined {
  const ready = readyOf(live);
  if (!ready) return `Karmada has not looked at Cluster ${name} yet`;
  if (ready.status !== 'True') return `Cluster ${name} is not Ready: ${ready.message ?? 'Karmada does not say why'}`;
  if (live?.spec?.taints?.some(({ key }) => key === NOT_READY)) return `Cluster ${name} still has taint ${NOT_READY}`;
  return undefined;
}

/** Whether Karmada has seen a node with allocatable resources. Pure. */
export const countsNodes = (live: KarmadaCluster | undefined): boolean =>
  readCpu(amountOf(live?.status?.resourceSummary?.allocatable, 'cpu')) > 0;

/**
 * A member's agent writes these amounts: an invalid quantity counts as zero, so that one member cannot fail the whole
 * observation.
 */
function amountOf(list: ResourceList | undefined, name: string): string {
  const written = list?.[name] ?? '0';
  try {
    readBytes(written);
    return written;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return '0';
  }
}

/**
 * Label value with the hub's counted capacity; undefined: none, or not by the present grades yet. A scheduler triggered
 * too early would count new grades with old numbers, find no capacity, and not retry. Pure.
 */
export function offeredLabel({ nodeSizes }: Member, live: KarmadaCluster | undefined): string | undefined {
  const { allocatable, allocatableModelings: counted = [] } = live?.status?.resourceSummary ?? {};
  const [cpu, memory] = [amountOf(allocatable, 'cpu'), amountOf(allocatable, 'memory')];
  if (!countsNodes(live)) return undefined;
  // Karmada reports no grades when resource modeling is disabled: that is not stale.
  const isOld = counted.length > 0 && nodeSizes.length > 0 && counted.length !== resourceModels(nodeSizes).length;
  if (isOld) return undefined;
  // Sums already reported by old grades are reported again once counted by new ones.
  const grades = counted.length > 0 ? `.grades-${counted.length}` : '';
  // Workloads of a kind that the cluster serves only now must be retried too.
  const custom = apisOf(live).filter((one) => !isOfKubernetes(one));
  const apis = custom.length > 0 ? `.apis-${shortHash(custom.sort().join())}` : '';
  return `cpu-${formatCpu(readCpu(cpu))}.memory-${formatBytes(readBytes(memory))}${grades}${apis}`;
}

/** API groups of Kubernetes: without a domain, or under k8s.io. */
const OF_KUBERNETES = /^(v1 |[^./]+\/|[^/]+\.k8s\.io\/)/;
/** Whether Kubernetes itself serves this API version and kind, for example `apps/v1 Deployment`. */
export const isOfKubernetes = (api: string): boolean => OF_KUBERNETES.test(api);

/** API versions and kinds that a cluster serves, as Karmada reports. */
export const apisOf = (live: KarmadaCluster | undefined): string[] =>
  (live?.status?.apiEnablements ?? []).flatMap(({ groupVersion, resources = [] }) =>
    resources.map(({ kind }) => `${groupVersion} ${kind}`),
  );

/**
 * Whether the next write of the Cluster admits more workloads than before: it opens, or more capacity is counted. After
 * the write nothing differs, so this holds once per growth. Pure.
 */
export function takesMore(member: Member, live: KarmadaCluster): boolean {
  if (member.closed) return false;
  if (live.spec?.taints?.some((one) => [INITIALIZING, ASLEEP, LEAVING].some((own) => isSame(one, own)))) return true;
  const [told, offered] = [live.metadata.labels?.[OFFERED], offeredLabel(member, live)];
  if (offered === undefined || offered === told) return false;
  const [before, after] = [partsOf(told), partsOf(offered)];
  const grows = after.cpu > before.cpu || after.memory > before.memory;
  return grows || (after.cpu === before.cpu && after.memory === before.memory);
}

function partsOf(told: string | undefined): { cpu: number; memory: number } {
  const part = (name: string) =>
    told
      ?.split('.')
      .find((one) => one.startsWith(`${name}-`))
      ?.slice(name.length + 1);
  try {
    return { cpu: readCpu(part('cpu') ?? '0'), memory: readBytes(part('memory') ?? '0') };
  } catch {
    // The label was edited by hand.
    return { cpu: 0, memory: 0 };
  }
}

/** Free capacity as Karmada believes: allocatable minus requested. Pure. */
export function freeOn(live: KarmadaCluster | undefined): HubAmounts | undefined {
  const { allocatable, allocated, allocating } = live?.status?.resourceSummary ?? {};
  if (!allocatable) return undefined;
  const free = (name: string, parse: (quantity: string) => number) =>
    Math.max(
      0,
      parse(amountOf(allocatable, name)) - parse(amountOf(allocated, name)) - parse(amountOf(allocating, name)),
    );
  return { cpu: formatCpu(free('cpu', readCpu)), memory: formatBytes(free('memory', readBytes)) };
}
