import type { Condition } from '../api/meta.ts';
import { formatBytes, formatCpu, readBytes, readCount, readCpu } from '../api/quantity.ts';
import { NOT_JUDGED } from '../burst/fit/not-judged.ts';
import { effectiveRequests } from '../kube/effective-requests.ts';
import { type KubeObject, keyOf } from '../kube/resources.ts';
import { GPU, othersOf } from './amounts.ts';
import type { Demand, HubAmounts } from './contract.ts';
import { isReadable, type PodSet, templateOf } from './kueue-pods.ts';

/** Kueue's default name of a podSet. */
const MAIN = 'main';

/** Most unreadable jobs that are reported. */
const MOST_TOLD = 10;

interface Assigned {
  readonly name: string;
  readonly count?: number;
  /** For all its pods together, as Kueue counts them, with defaults and overhead. */
  readonly resourceUsage?: Readonly<Record<string, string>>;
}

/** State of an AdmissionCheck on a Workload. */
export interface CheckState {
  readonly name: string;
  readonly state: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
  readonly requeueAfterSeconds?: number;
  /** Number of Retry answers, counted by Kueue. */
  readonly retryCount?: number;
}

/** The fields of a Workload that are read. */
export type DispatchedWorkload = KubeObject & {
  spec?: {
    active?: boolean;
    queueName?: string;
    /** Resolved by Kueue from the job's class. */
    priority?: number;
    podSets?: PodSet[];
  };
  status?: {
    conditions?: Condition[];
    clusterName?: string;
    nominatedClusterNames?: string[];
    admission?: { podSetAssignments?: Assigned[] };
    admissionChecks?: CheckState[];
    reclaimablePods?: { name: string; count: number }[];
  };
};

/**
 * Jobs that were offered to all clusters and taken by none, and jobs that Coppice's check holds or has just released:
 * until a cluster takes them, their capacity must not be promised to others. Jobs that wait for quota of the hub are
 * left out: another cluster would not raise that limit. Pure.
 * @param check name of the AdmissionCheck that dispatches them
 * @param clusters clusters that Kueue can offer to, with since when; undefined: unknown
 * @param own names of Coppice's AdmissionChecks
 */
export function waitingJobs(
  workloads: readonly DispatchedWorkload[],
  check: string,
  clusters: ReadonlyMap<string, string | undefined>,
  own: readonly string[] = [],
): Demand[] {
  return workloads.flatMap((workload) => {
    const { nominatedClusterNames: asked = [], admissionChecks = [] } = workload.status ?? {};
    const dispatch = admissionChecks.find(({ name, state }) => name === check && state === 'Pending');
    if (!dispatch || !isOffered(workload)) return [];
    const ours = admissionChecks.filter(({ name }) => own.includes(name));
    // Another check may hold the job for days, while the cluster would cost money.
    if (ours.length > 0 && heldBefore(workload, check, own).length > 0) return [];
    if (ours.some(({ state }) => state !== 'Pending' && state !== 'Ready')) return [];
    // Kueue may offer to a few clusters at a time, and to the next after minutes. Jobs that Coppice holds are
    // offered to none.
    const since = dispatch.lastTransitionTime ?? '';
    if (ours.length === 0 && !isAskedFor(asked, since, clusters)) return [];
    const pods = podsOf(workload, since) ?? [];
    return ours.length > 0 ? pods.map((one) => ({ ...one, isHeld: true as const })) : pods;
  });
}

/**
 * Whether a job waiting since then was offered to all clusters. A later cluster may be offered the job after minutes
 * (with the incremental dispatcher) or never: until then the job waits, and the cluster's capacity counts as any
 * other's.
 */
function isAskedFor(
  asked: readonly string[],
  since: string,
  clusters: ReadonlyMap<string, string | undefined>,
): boolean {
  const isLater = (active: string | undefined) => asked.length > 0 && Date.parse(active ?? '') > Date.parse(since);
  return [...clusters].every(([name, active]) => asked.includes(name) || isLater(active));
}

/** Foreign AdmissionChecks that the job must pass before it is dispatched and has not passed. */
export const heldBefore = (
  { status }: DispatchedWorkload,
  check: string | undefined,
  own: readonly string[],
): readonly string[] =>
  (status?.admissionChecks ?? []).flatMap(({ name, state }) =>
    name === check || own.includes(name) || state === 'Ready' ? [] : [name],
  );

/**
 * Pods with reserved quota; a demand with a problem stands for all of them. @returns undefined: the Workload cannot be
 * read completely
 */
export function podsOf(workload: DispatchedWorkload, since: string): Demand[] | undefined {
  const demands = partsOf(workload, since);
  const bad = demands?.find(({ problem }) => problem !== undefined);
  return bad ? [bad] : demands;
}

/** Same as podsOf, for each podSet separately. */
export function partsOf(workload: DispatchedWorkload, since: string): Demand[] | undefined {
  const { status = {}, spec, metadata } = workload;
  const demands: Demand[] = [];
  for (const podSet of status.admission?.podSetAssignments ?? []) {
    const done = status.reclaimablePods?.find(({ name }) => name === podSet.name)?.count ?? 0;
    const count = (podSet.count ?? 0) - done;
    if (count <= 0) continue;
    const each = eachOf(podSet);
    const rules =
      each &&
      placingOf(
        workload,
        spec?.podSets?.find(({ name = MAIN }) => name === podSet.name),
        each,
      );
    if (!each || !rules) return undefined;
    const { namespace } = metadata;
    const part = { namespace, count, each, ...rules, ...priorityOf(workload), since, inOneCluster: true as const };
    demands.push({ ...sourceOf(workload), ...part });
  }
  return demands;
}

/** It has quota of the hub, and no cluster has taken it. */
export const isOffered = (workload: DispatchedWorkload): boolean =>
  isAlive(workload) && hasCondition(workload, 'QuotaReserved') && !hasCondition(workload, 'Evicted');

/** It shall run, and no cluster has it. */
const isAlive = (workload: DispatchedWorkload): boolean => {
  const { spec, status, metadata } = workload;
  const isStopped = spec?.active === false || metadata.deletionTimestamp !== undefined;
  return !isStopped && !status?.clusterName && !hasCondition(workload, 'Finished');
};

const hasCondition = (workload: DispatchedWorkload, type: string): boolean =>
  workload.status?.conditions?.some((one) => one.type === type && one.status === 'True') ?? false;

/**
 * Digest of the fields of a Workload or ClusterQueue that can change the result of the two functions here; undefined:
 * none can. It knows neither AdmissionChecks nor clusters, so it may change without effect. Pure.
 */
export function kueueWaitsFor(object: KubeObject): string | undefined {
  if (object.kind === 'ClusterQueue') return inactiveSince(object as ClusterQueue);
  const workload = object as DispatchedWorkload;
  if (!isAlive(workload)) return undefined;
  const { conditions = [], nominatedClusterNames: asked, admissionChecks = [] } = workload.status ?? {};
  const pending = admissionChecks.filter(({ state }) => state === 'Pending').map(({ name }) => name);
  if (isOffered(workload)) return pending.length > 0 ? JSON.stringify([pending, asked]) : undefined;
  // A job that Kueue has not refused may get quota a moment later.
  const isRefused = conditions.some(({ type, status }) => type === 'QuotaReserved' && status === 'False');
  return isRefused ? 'has no quota' : undefined;
}

/** Since when the AdmissionCheck alone makes the queue inactive. */
function inactiveSince({ status }: ClusterQueue): string | undefined {
  const stopped = status?.conditions?.find(({ type, status: is }) => type === 'Active' && is === 'False');
  // Kueue reports other reasons before this one.
  return stopped?.reason === 'AdmissionCheckInactive' ? (stopped.lastTransitionTime ?? '') : undefined;
}

/** LocalQueues and ClusterQueues of the hub. */
export interface Queues {
  readonly local: readonly (KubeObject & { spec?: { clusterQueue?: string } })[];
  readonly cluster: readonly ClusterQueue[];
}

type ClusterQueue = KubeObject & {
  spec?: {
    cohortName?: string;
    admissionChecksStrategy?: { admissionChecks?: { name: string }[] };
    resourceGroups?: { flavors?: { resources?: { name: string; nominalQuota: string | number }[] }[] }[];
  };
  status?: { conditions?: Condition[] };
};

/**
 * The job for which the first cluster is bought. While Kueue reaches no listed cluster, the AdmissionCheck is inactive,
 * its ClusterQueues reserve no quota, and no cluster is offered a job. The oldest readable job of the highest priority,
 * in Kueue's queue order, gets a cluster; afterwards the others get quota, or wait for it. Pure.
 * @param check name of the AdmissionCheck, which is inactive
 * @param checks names of the active ones
 */
export function firstJob(
  workloads: readonly DispatchedWorkload[],
  check: string,
  checks: readonly string[],
  { local, cluster }: Queues,
): Demand[] {
  const named = new Map(cluster.map((one) => [one.metadata.name, one]));
  const leadsTo = new Map(local.map((one) => [keyOf(one), named.get(one.spec?.clusterQueue ?? '')]));
  const candidates = workloads.flatMap((workload) => {
    const { spec, metadata } = workload;
    const queue = leadsTo.get(`${metadata.namespace}/${spec?.queueName}`);
    const since = queue && inactiveSince(queue);
    const passes = queue?.spec?.admissionChecksStrategy?.admissionChecks?.map(({ name }) => name) ?? [];
    if (since === undefined || !passes.includes(check)) return [];
    // A bought cluster would not activate another inactive check.
    if (!passes.every((name) => name === check || checks.includes(name))) return [];
    if (!isAlive(workload) || hasCondition(workload, 'QuotaReserved')) return [];
    const demands = demandsOf(workload, later(metadata.creationTimestamp, since));
    return demands && demands.length > 0 && fits(demands, queue!) ? [{ workload, demands }] : [];
  });
  const age = ({ workload }: (typeof candidates)[number]) =>
    `${workload.metadata.creationTimestamp} ${keyOf(workload)}`;
  const priority = ({ workload }: (typeof candidates)[number]) => workload.spec?.priority ?? 0;
  // By priority: a policy may buy nothing for a low one, and the others would be missed.
  const inOrder = candidates.sort((a, b) => priority(b) - priority(a) || (age(a) < age(b) ? -1 : 1));
  const problems = inOrder.flatMap(({ demands }) => demands.find(({ problem }) => problem !== undefined) ?? []);
  const first = inOrder.find(({ demands }) => demands.every(({ problem }) => problem === undefined));
  // A job that cannot be read blocks no other, and is reported.
  return [...problems.slice(0, MOST_TOLD), ...(first?.demands ?? [])];
}

const later = (one = '', other = ''): string => (one > other ? one : other);

/** @returns undefined: the Workload cannot be read */
function demandsOf(workload: DispatchedWorkload, since: string): Demand[] | undefined {
  const { metadata, spec: { podSets = [] } = {} } = workload;
  if (!podSets.every(isReadable)) return undefined;
  try {
    return podSets.flatMap((podSet) => {
      const { count = 1, template } = podSet;
      const asked = effectiveRequests(template);
      const [cpu = 0, memory = 0, gpu = 0] = ['cpu', 'memory', GPU].map((name) => asked.get(name));
      const each = { cpu: formatCpu(cpu), memory: formatBytes(memory), ...(gpu > 0 && { gpu: String(gpu) }) };
      const common = {
        ...sourceOf(workload),
        ...priorityOf(workload),
        namespace: metadata.namespace,
        since,
        inOneCluster: true as const,
      };
      return count > 0 ? [{ ...common, count, each, ...placingOf(workload, podSet, each) }] : [];
    });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/**
 * Whether the queue could ever reserve this much. Amounts borrowed from a cohort are not summed: it counts as possible.
 */
function fits(demands: readonly Demand[], { spec = {} }: ClusterQueue): boolean {
  if (spec.cohortName) return true;
  const quotas = spec.resourceGroups?.flatMap(({ flavors = [] }) => flavors.flatMap(({ resources = [] }) => resources));
  const nominal = (resource: string, parse: (quantity: string | number) => number) =>
    quotas?.filter(({ name }) => name === resource).reduce((sum, { nominalQuota }) => sum + parse(nominalQuota), 0) ??
    0;
  const asked = (of: keyof HubAmounts, parse: (quantity: string) => number) =>
    demands.reduce((sum, { count, each }) => sum + count * parse(each[of] ?? '0'), 0);
  try {
    return (
      asked('cpu', readCpu) <= nominal('cpu', readCpu) &&
      asked('memory', readBytes) <= nominal('memory', readBytes) &&
      asked('gpu', readCount) <= nominal(GPU, readCount)
    );
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

export function sourceOf(workload: DispatchedWorkload): Pick<Demand, 'source' | 'uid'> {
  const { ownerReferences = [], uid: own } = workload.metadata;
  const uid = (ownerReferences.find(({ controller }) => controller) ?? ownerReferences[0])?.uid ?? own;
  return { source: `Workload ${keyOf(workload)}`, ...(uid && { uid }) };
}

const priorityOf = ({ spec: { priority } = {} }: DispatchedWorkload): Pick<Demand, 'priority'> =>
  Number.isInteger(priority) ? { priority } : {};

/**
 * Scheduling fields of a podSet's pods, and requests besides CPU, memory and GPUs. Kueue's quota may ignore them; a
 * cluster without them would be bought, offered the job, and left empty.
 * @returns undefined: the podSet cannot be read
 */
function placingOf(
  workload: DispatchedWorkload,
  podSet: PodSet | undefined,
  each: HubAmounts,
): Pick<Demand, 'others' | 'template' | 'problem'> | undefined {
  if (!podSet) return {};
  if (!isReadable(podSet)) return undefined;
  try {
    const requests = [...effectiveRequests(podSet.template)];
    // A negative request would free capacity for other jobs.
    if (requests.some(([, amount]) => amount < 0)) return { problem: NOT_JUDGED.BadQuantity };
    const asked = requests.filter(([, amount]) => amount > 0);
    const others = othersOf(Object.fromEntries(asked.map(([name, amount]) => [name, String(amount)])));
    return { ...(Object.keys(others).length > 0 && { others }), ...templateOf(workload, podSet, each) };
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** @returns undefined: the amounts cannot be read */
function eachOf({ count = 0, resourceUsage = {} }: Assigned): HubAmounts | undefined {
  const { cpu, memory, [GPU]: gpu } = resourceUsage;
  try {
    return {
      ...(cpu && { cpu: formatCpu(Math.ceil(readCpu(cpu) / count)) }),
      ...(memory && { memory: formatBytes(Math.ceil(readBytes(memory) / count)) }),
      ...(gpu && { gpu: String(Math.ceil(readCount(gpu) / count)) }),
    };
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
