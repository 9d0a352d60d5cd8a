import { GROUP, LABELS } from '../../api/group.ts';
import type { HubSpec } from '../../api/hub.ts';
import { shortHash } from '../../api/names.ts';
import { formatBytes, formatCpu, readBytes, readCpu } from '../../api/quantity.ts';
import type { KubeObject, Resource } from '../../kube/resources.ts';
import type { Amounts, Member } from '../contract.ts';

const CLUSTER_GROUP = 'cluster.karmada.io';
export const CLUSTERS: Resource = {
  group: CLUSTER_GROUP,
  version: 'v1alpha1',
  plural: 'clusters',
  kind: 'Cluster',
  namespaced: false,
};

/** Where Karmada keeps the Secrets of its clusters. */
export const CLUSTER_NAMESPACE = 'karmada-cluster';
/** What Karmada says of a cluster by a taint of its own. */
const NOT_READY = 'cluster.karmada.io/not-ready';
const INITIALIZING: Taint = { key: `${GROUP}/initializing`, effect: 'NoSchedule' };
const ASLEEP: Taint = { key: `${GROUP}/asleep`, effect: 'NoSchedule' };
const LEAVING: Taint = { key: `${GROUP}/leaving`, effect: 'NoSchedule' };
const NO_EXECUTE = {
  Asleep: { key: ASLEEP.key, effect: 'NoExecute' },
  Leaving: { key: LEAVING.key, effect: 'NoExecute' },
} as const;
/** The taint by which work is moved away from a cluster that is emptied. */
export const LEAVES = NO_EXECUTE.Leaving;
/** What the hub was last seen to count with: the scheduler looks again at what found no room when a label changes, and not when a status does. */
const OFFERED = `${GROUP}/offered`;

interface Taint {
  key: string;
  effect: 'NoSchedule' | 'NoExecute';
  [field: string]: unknown;
}
type ResourceList = Readonly<Record<string, string>>;

type SecretRef = { namespace?: string; name: string };

/** A Cluster of Karmada's, as far as it is read here. */
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

/** What is to become of the taint that has hub move work away: it is put there once, and then stays until the cluster is gone or wakes. */
export type Draining = 'begin' | 'keep';

/** The Cluster of a member, as it should be now. `more`: what belongs to the way in which it is reached. Pure. */
export function clusterObject(
  member: Member,
  live: KarmadaCluster | undefined,
  more: Record<string, unknown>,
  draining: Draining = 'keep',
): KubeObject {
  const { name, id, labels, zones, nodeSizes } = member;
  const offered = offeredBy(member, live) ?? live?.metadata.labels?.[OFFERED];
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
      taints: taints(live?.spec?.taints ?? [], member.closed, draining),
      ...more,
    },
  };
}

/**
 * The list has one owner, as Karmada declares it: those of Karmada and of people are repeated where they stand, ours put in or left out.
 * Pure.
 */
export function taints(live: readonly Taint[], closed: Member['closed'], draining: Draining): Taint[] {
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

/** A node counts for what its grade has at least, so this is the most of it that can be lost. */
const STEPS = 8;
const MEBIBYTE = 2 ** 20;
const MOST = '9223372036854775807';

/**
 * Grades by which Karmada counts free nodes: eighths of each size. With its own ones a node of less than 4 GiB counts as nothing, and no
 * work is ever divided onto it. Where sizes differ in shape they count for less, never for more. Pure.
 */
export function resourceModels(sizes: readonly Amounts[]): object[] {
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

/** What a node of each grade has at least: millicores and bytes. */
function gradesOf(sizes: readonly Amounts[]): { cpu: number; memory: number }[] {
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
 * What Karmada takes a node for on which so much is free: the least that its grade has. Newer ones than 1.17 count nothing that grades do
 * not name, such as GPUs; of one that renews tokens it is known that it is so new. Pure.
 */
export function countedBy(sizes: readonly Amounts[], { karmada }: HubSpec): (free: Amounts) => Amounts {
  // Karmada has grades of its own then, which are not known here.
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

/** Whether whoever works for Karmada in the cluster was heard of lately. Pure. */
export const isReady = (live: KarmadaCluster | undefined): boolean => readyOf(live)?.status === 'True';

/** Why Karmada does not count on the cluster yet, a sentence; undefined: it does. Pure. */
export function whyNotReady(name: string, live: KarmadaCluster | undefined): string | undefined {
  const ready = readyOf(live);
  if (!ready) return `Karmada has not looked at Cluster ${name} yet`;
  if (ready.status !== 'True') return `Cluster ${name} is not Ready: ${ready.message ?? 'Karmada does not say why'}`;
  if (live?.spec?.taints?.some(({ key }) => key === NOT_READY)) return `Cluster ${name} still has taint ${NOT_READY}`;
  return undefined;
}

/** Whether Karmada has seen a node that offers anything. Pure. */
export const countsNodes = (live: KarmadaCluster | undefined): boolean =>
  readCpu(amountOf(live?.status?.resourceSummary?.allocatable, 'cpu')) > 0;

/** The agent of a member writes these: a text that is no quantity counts as nothing, or one member would end the look at all. */
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
 * The label value that says what the hub counts with; undefined: nothing, or not by the present grades yet. A scheduler that was sent
 * before would count new grades by old numbers, find no room, and not come again. Pure.
 */
export function offeredBy({ nodeSizes }: Member, live: KarmadaCluster | undefined): string | undefined {
  const { allocatable, allocatableModelings: counted = [] } = live?.status?.resourceSummary ?? {};
  const [cpu, memory] = [amountOf(allocatable, 'cpu'), amountOf(allocatable, 'memory')];
  if (!countsNodes(live)) return undefined;
  // A Karmada that counts no grades reports none.
  const isOld = counted.length > 0 && nodeSizes.length > 0 && counted.length !== resourceModels(nodeSizes).length;
  if (isOld) return undefined;
  // Sums that were shown by old grades already are told again when they are counted by new ones.
  const grades = counted.length > 0 ? `.grades-${counted.length}` : '';
  // Work of a kind that the cluster has only now is to be looked at again, too.
  const custom = apisOf(live).filter((one) => !isOfKubernetes(one));
  const apis = custom.length > 0 ? `.apis-${shortHash(custom.sort().join())}` : '';
  return `cpu-${formatCpu(readCpu(cpu))}.memory-${formatBytes(readBytes(memory))}${grades}${apis}`;
}

/** Its groups have no domain, or one of its own. */
const OF_KUBERNETES = /^(v1 |[^./]+\/|[^/]+\.k8s\.io\/)/;
/** Whether each Kubernetes serves this API version and kind by itself, `apps/v1 Deployment`. */
export const isOfKubernetes = (api: string): boolean => OF_KUBERNETES.test(api);

/** API versions and kinds that a cluster serves, as Karmada has seen. */
export const apisOf = (live: KarmadaCluster | undefined): string[] =>
  (live?.status?.apiEnablements ?? []).flatMap(({ groupVersion, resources = [] }) =>
    resources.map(({ kind }) => `${groupVersion} ${kind}`),
  );

/**
 * Whether what is about to be written of the Cluster lets more work in than before: it is opened, or more of it is counted. What is written
 * does not differ the next time, so this holds once for each growth. Pure.
 */
export function takesMore(member: Member, live: KarmadaCluster): boolean {
  if (member.closed) return false;
  if (live.spec?.taints?.some((one) => [INITIALIZING, ASLEEP, LEAVING].some((own) => isSame(one, own)))) return true;
  const [told, offered] = [live.metadata.labels?.[OFFERED], offeredBy(member, live)];
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
    // Somebody has written it by hand.
    return { cpu: 0, memory: 0 };
  }
}

/** What Karmada believes that is free: what nodes offer, less what is asked for. Pure. */
export function freeOn(live: KarmadaCluster | undefined): Amounts | undefined {
  const { allocatable, allocated, allocating } = live?.status?.resourceSummary ?? {};
  if (!allocatable) return undefined;
  const free = (name: string, parse: (quantity: string) => number) =>
    Math.max(
      0,
      parse(amountOf(allocatable, name)) - parse(amountOf(allocated, name)) - parse(amountOf(allocating, name)),
    );
  return { cpu: formatCpu(free('cpu', readCpu)), memory: formatBytes(free('memory', readBytes)) };
}
