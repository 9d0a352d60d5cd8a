import type { Condition } from '../api/meta.ts';
import { formatBytes, formatCpu, readBytes, readCount, readCpu } from '../api/quantity.ts';
import { NOT_JUDGED } from '../burst/fit/not-judged.ts';
import { effectiveRequests } from '../kube/effective-requests.ts';
import { type KubeObject, keyOf } from '../kube/resources.ts';
import { GPU, othersOf } from './amounts.ts';
import type { Amounts, Demand } from './contract.ts';
import { isReadable, type PodSet, templateOf } from './kueue-pods.ts';

/** Name of a podSet that has none, as Kueue fills it in. */
const MAIN = 'main';

/** Of jobs that nobody can judge so many are told of, where only one job is looked at. */
const MOST_TOLD = 10;

interface Assigned {
  readonly name: string;
  readonly count?: number;
  /** Of all its pods together, as Kueue counts them: with what defaults and overhead add. */
  readonly resourceUsage?: Readonly<Record<string, string>>;
}

/** What an AdmissionCheck says of a Workload. */
export interface CheckState {
  readonly name: string;
  readonly state: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
  readonly requeueAfterSeconds?: number;
  /** How often it has said Retry, as Kueue counts. */
  readonly retryCount?: number;
}

/** A Workload, as far as it is read here. */
export type DispatchedWorkload = KubeObject & {
  spec?: {
    active?: boolean;
    queueName?: string;
    /** As Kueue has resolved it of the job's class. */
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
 * Jobs that all clusters were asked to take, and none has taken; and those that a check of ours holds, or has let go a moment ago: until a
 * cluster has them, no other job may be promised their room. One that waits for quota of the hub is not among them: that is a limit that
 * somebody has set, and a cluster more would not change it. Pure.
 * @param check name of the AdmissionCheck by which they are dispatched
 * @param clusters those that Kueue can ask, with when it could first; undefined: nobody knows
 * @param own names of the AdmissionChecks that we answer for
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
    // Somebody else may hold it for days: a cluster would be paid for all the while.
    if (ours.length > 0 && heldBefore(workload, check, own).length > 0) return [];
    if (ours.some(({ state }) => state !== 'Pending' && state !== 'Ready')) return [];
    // Kueue may ask a few at a time, and the next ones after minutes. Of what we hold it asks none.
    const since = dispatch.lastTransitionTime ?? '';
    if (ours.length === 0 && !isAskedFor(asked, since, clusters)) return [];
    const pods = podsOf(workload, since) ?? [];
    return ours.length > 0 ? pods.map((one) => ({ ...one, isHeld: true as const })) : pods;
  });
}

/**
 * Whether all clusters were asked to take a job that waits since then. One that came later, Kueue may ask after minutes (with the incremental
 * dispatcher) or never: until then the job waits on, and its room counts as that of any other cluster.
 */
function isAskedFor(
  asked: readonly string[],
  since: string,
  clusters: ReadonlyMap<string, string | undefined>,
): boolean {
  const isLater = (active: string | undefined) => asked.length > 0 && Date.parse(active ?? '') > Date.parse(since);
  return [...clusters].every(([name, active]) => asked.includes(name) || isLater(active));
}

/** AdmissionChecks of others that it has to pass before it is dispatched, and has not. */
export const heldBefore = (
  { status }: DispatchedWorkload,
  check: string | undefined,
  own: readonly string[],
): readonly string[] =>
  (status?.admissionChecks ?? []).flatMap(({ name, state }) =>
    name === check || own.includes(name) || state === 'Ready' ? [] : [name],
  );

/** The pods that it has quota for; what has a problem stands for all of them. @returns undefined: nobody can read all of it */
export function podsOf(workload: DispatchedWorkload, since: string): Demand[] | undefined {
  const demands = partsOf(workload, since);
  const bad = demands?.find(({ problem }) => problem !== undefined);
  return bad ? [bad] : demands;
}

/** The same, with each set of pods by itself. */
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

/** It is to run, and no cluster has it. */
const isAlive = (workload: DispatchedWorkload): boolean => {
  const { spec, status, metadata } = workload;
  const isStopped = spec?.active === false || metadata.deletionTimestamp !== undefined;
  return !isStopped && !status?.clusterName && !hasCondition(workload, 'Finished');
};

const hasCondition = (workload: DispatchedWorkload, type: string): boolean =>
  workload.status?.conditions?.some((one) => one.type === type && one.status === 'True') ?? false;

/**
 * By what of a Workload or a ClusterQueue the two functions here may come to say something else; undefined: by nothing. It knows no
 * AdmissionCheck and no list of clusters, so it may be news of nothing. Pure.
 */
export function waitsFor(object: KubeObject): string | undefined {
  if (object.kind === 'ClusterQueue') return inactiveSince(object as ClusterQueue);
  const workload = object as DispatchedWorkload;
  if (!isAlive(workload)) return undefined;
  const { conditions = [], nominatedClusterNames: asked, admissionChecks = [] } = workload.status ?? {};
  const pending = admissionChecks.filter(({ state }) => state === 'Pending').map(({ name }) => name);
  if (isOffered(workload)) return pending.length > 0 ? JSON.stringify([pending, asked]) : undefined;
  // A job of which Kueue has not said so may have quota a moment later.
  const isRefused = conditions.some(({ type, status }) => type === 'QuotaReserved' && status === 'False');
  return isRefused ? 'has no quota' : undefined;
}

/** Since when its AdmissionCheck keeps it from giving quota, and nothing else does. */
function inactiveSince({ status }: ClusterQueue): string | undefined {
  const stopped = status?.conditions?.find(({ type, status: is }) => type === 'Active' && is === 'False');
  // What else stops a queue comes before this reason.
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
 * The job that the first cluster is for. While Kueue reaches none of the list, the AdmissionCheck is not active, its ClusterQueues give no
 * quota, and no cluster is asked to take anything. Of those of the highest priority the oldest job that can be judged brings a cluster, as
 * Kueue has them queue; then the others get quota, or it is the limit that they wait for. Pure.
 * @param check name of the AdmissionCheck, which is not active
 * @param checks names of those that are
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
    // Another check that is not active no cluster would change.
    if (!passes.every((name) => name === check || checks.includes(name))) return [];
    if (!isAlive(workload) || hasCondition(workload, 'QuotaReserved')) return [];
    const demands = demandsOf(workload, later(metadata.creationTimestamp, since));
    return demands && demands.length > 0 && fits(demands, queue!) ? [{ workload, demands }] : [];
  });
  const age = ({ workload }: (typeof candidates)[number]) =>
    `${workload.metadata.creationTimestamp} ${keyOf(workload)}`;
  const priority = ({ workload }: (typeof candidates)[number]) => workload.spec?.priority ?? 0;
  // A policy may buy nothing for a low one, and nobody else would be heard of.
  const inOrder = candidates.sort((a, b) => priority(b) - priority(a) || (age(a) < age(b) ? -1 : 1));
  const problems = inOrder.flatMap(({ demands }) => demands.find(({ problem }) => problem !== undefined) ?? []);
  const first = inOrder.find(({ demands }) => demands.every(({ problem }) => problem === undefined));
  // What buys nothing keeps no other from being the first, and is told of.
  return [...problems.slice(0, MOST_TOLD), ...(first?.demands ?? [])];
}

const later = (one = '', other = ''): string => (one > other ? one : other);

/** @returns undefined: nobody can read it. */
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

/** Whether the queue may ever give so much. What it may borrow of a cohort is not counted up: there it may. */
function fits(demands: readonly Demand[], { spec = {} }: ClusterQueue): boolean {
  if (spec.cohortName) return true;
  const quotas = spec.resourceGroups?.flatMap(({ flavors = [] }) => flavors.flatMap(({ resources = [] }) => resources));
  const nominal = (resource: string, parse: (quantity: string | number) => number) =>
    quotas?.filter(({ name }) => name === resource).reduce((sum, { nominalQuota }) => sum + parse(nominalQuota), 0) ??
    0;
  const asked = (of: keyof Amounts, parse: (quantity: string) => number) =>
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
 * What decides where pods of a set fit, and what they ask for besides CPU, memory and GPUs. Kueue's quota need not know of it; a cluster
 * that lacks it would be bought, asked, and left empty.
 * @returns undefined: nobody can read it
 */
function placingOf(
  workload: DispatchedWorkload,
  podSet: PodSet | undefined,
  each: Amounts,
): Pick<Demand, 'others' | 'template' | 'problem'> | undefined {
  if (!podSet) return {};
  if (!isReadable(podSet)) return undefined;
  try {
    const requests = [...effectiveRequests(podSet.template)];
    // A pod that asks for less than nothing would make room for the jobs of others.
    if (requests.some(([, amount]) => amount < 0)) return { problem: NOT_JUDGED.BadQuantity };
    const asked = requests.filter(([, amount]) => amount > 0);
    const others = othersOf(Object.fromEntries(asked.map(([name, amount]) => [name, String(amount)])));
    return { ...(Object.keys(others).length > 0 && { others }), ...templateOf(workload, podSet, each) };
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** @returns undefined: nobody can read it. */
function eachOf({ count = 0, resourceUsage = {} }: Assigned): Amounts | undefined {
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
