import { findCondition, rfc3339, setCondition } from '../api/conditions.ts';
import { ADMISSION_CONTROLLER } from '../api/group.ts';
import type { Condition } from '../api/meta.ts';
import type { SaidAs } from '../api/reasons.ts';
import type { KubeObject } from '../kube/resources.ts';
import type { Asking, Demand, DemandWatch, StatusPart, WorkAnswer } from './contract.ts';
import {
  type CheckState,
  type DispatchedWorkload,
  heldBefore,
  isOffered,
  partsOf,
  podsOf,
  sourceOf,
} from './kueue-demand.ts';
import { ADMISSIONCHECKS, KUEUE_API_VERSION, MULTIKUEUE_CONTROLLER, WORKLOADS } from './kueue-kinds.ts';

/** Message limit: all of a Workload is loaded by every reader. */
const MOST_WORDS = 1000;
/**
 * Backoff in seconds before Kueue takes the quota back from a job without available capacity: zero, then one minute,
 * two, four, five. Kueue 0.19 waits before the eviction, not after: with an hour one job would hold its quota for that
 * long.
 */
const SECOND_RETRY_S = 60;
const LONGEST_RETRY_S = 300;

/** Longest time until a dispatched job's pods are visible on its cluster. */
const COMING_MS = 10_000;

/** The fields of an AdmissionCheck that are read. */
export type AdmissionCheck = KubeObject & {
  spec?: { controllerName?: string; parameters?: object };
  status?: { conditions?: Condition[] };
};

type Say = Parameters<Asking['answers']>[0];

const namesBy = (checks: readonly AdmissionCheck[], controller: string): string[] =>
  checks.filter(({ spec }) => spec?.controllerName === controller).map(({ metadata }) => metadata.name);

/** Names of the AdmissionChecks that Coppice answers. */
export const ownChecks = (checks: readonly AdmissionCheck[]): string[] => namesBy(checks, ADMISSION_CONTROLLER);

/** Notices Coppice's AdmissionChecks when they are created or changed. */
export const askWatch: DemandWatch = {
  resources: [ADMISSIONCHECKS],
  says: (object) => {
    const { spec } = object as AdmissionCheck;
    return spec?.controllerName === ADMISSION_CONTROLLER ? JSON.stringify(spec) : undefined;
  },
};

/**
 * Questions of Coppice's AdmissionChecks. Jobs dispatched by other hubs of the API server are left out: a job belongs
 * to the hub whose check dispatches it. Pure.
 * @param check name of the AdmissionCheck that dispatches jobs of the hub
 */
export function askingOf(
  checks: readonly AdmissionCheck[],
  workloads: readonly DispatchedWorkload[],
  check: string,
  hubName: string,
): Asking {
  const own = ownChecks(checks);
  const dispatching = new Set([...namesBy(checks, MULTIKUEUE_CONTROLLER), check]);
  const held = workloads.flatMap((workload) => {
    const states = workload.status?.admissionChecks ?? [];
    const isHeld = states.some(({ name, state }) => own.includes(name) && state === 'Pending');
    const passed = states.find(({ name }) => dispatching.has(name))?.name;
    return isHeld && isOffered(workload) && (passed ?? check) === check ? [{ workload, passed }] : [];
  });
  return {
    sources: held.map(({ workload }) => sourceOf(workload).source),
    taking: (now) =>
      workloads.flatMap((workload) => {
        const { clusterName, conditions } = workload.status ?? {};
        const admitted = findCondition(conditions, 'Admitted');
        const isFresh =
          admitted?.status === 'True' && Date.parse(admitted.lastTransitionTime) + COMING_MS > now.getTime();
        if (!clusterName || !isFresh) return [];
        const accepts = (member: { name: string }) => member.name === clusterName;
        // The job exists, whether or not it can be placed.
        return (partsOf(workload, '') ?? []).map((demand) => ({ ...demand, problem: undefined, accepts }));
      }),
    answers(say, now) {
      const active = checks
        .filter(({ metadata }) => own.includes(metadata.name))
        .flatMap((one) => activePart(one, hubName, say !== undefined, now));
      const answers = held.flatMap(({ workload, passed }) => {
        const answer = answerTo(workload, passed, own, hubName, say);
        return answer ? answerPart(workload, own, answer, now) : [];
      });
      const isNews = (news: boolean) => answers.filter((one) => one.isNews === news).map(({ part }) => part);
      // Changes of state before changes of message alone.
      return [...active, ...isNews(true), ...isNews(false)];
    },
  };
}

function answerTo(
  workload: DispatchedWorkload,
  passed: string | undefined,
  own: readonly string[],
  hubName: string,
  say: Say,
): WorkAnswer | undefined {
  const before = heldBefore(workload, passed, own);
  if (before.length > 0) {
    const message = `AdmissionCheck ${before.join(', ')} has to be Ready first: nothing is bought before that`;
    return { state: 'Pending', message };
  }
  const retry = (message: string): WorkAnswer => ({ state: 'Retry', message });
  // The job would run in the hub itself, whose capacity no bought cluster increases.
  if (passed === undefined)
    return retry('Coppice buys clusters for MultiKueue only: its ClusterQueue names no AdmissionCheck of MultiKueue');
  if (!say) return retry(noPolicy(hubName));
  const pods = podsOf(workload, '');
  if (!pods) return retry('what its pods ask for cannot be read');
  if (pods.length === 0) return { state: 'Ready', message: 'it has no pods that need room' };
  const [{ problem }] = pods as [Demand];
  if (problem !== undefined) return retry(`nothing is bought for it: ${problem}`);
  return say(sourceOf(workload).source);
}

const noPolicy = (hubName: string): string => `no BurstPolicy names Hub ${hubName}, so nobody would buy room`;

/** All entries of Coppice's checks: an apply removes those it leaves out. */
function answerPart(
  { metadata, status }: DispatchedWorkload,
  own: readonly string[],
  { state, message }: WorkAnswer,
  now: Date,
): { part: StatusPart; isNews: boolean }[] {
  const words = message.slice(0, MOST_WORDS);
  const ours = (status?.admissionChecks ?? []).filter(({ name }) => own.includes(name));
  const isOpen = (one: CheckState) => one.state === 'Pending';
  if (!ours.some((one) => isOpen(one) && (one.state !== state || one.message !== words))) return [];
  const entryOf = (one: CheckState) => {
    const { name, lastTransitionTime = rfc3339(now) } = one;
    if (!isOpen(one)) return { name, state: one.state, message: one.message ?? '', lastTransitionTime };
    return {
      name,
      state,
      message: words,
      lastTransitionTime: state === one.state ? lastTransitionTime : rfc3339(now),
      ...(state === 'Retry' && { requeueAfterSeconds: retryAfter(one) }),
    };
  };
  const { name, namespace, uid, resourceVersion } = metadata;
  const object = {
    apiVersion: KUEUE_API_VERSION,
    kind: WORKLOADS.kind,
    metadata: {
      name,
      ...(namespace && { namespace }),
      ...(uid && { uid }),
      ...(resourceVersion && { resourceVersion }),
    },
    status: { admissionChecks: ours.map(entryOf) },
  };
  return [{ part: { resource: WORKLOADS, object }, isNews: state !== 'Pending' }];
}

const retryAfter = ({ retryCount = 0 }: CheckState): number =>
  retryCount === 0 ? 0 : Math.min(LONGEST_RETRY_S, SECOND_RETRY_S * 2 ** Math.min(retryCount - 1, 10));

/**
 * Condition Active of an AdmissionCheck: Kueue reserves no quota by an inactive check, so nothing would be answered.
 */
function activePart(
  { metadata: { name, uid }, spec, status }: AdmissionCheck,
  hubName: string,
  isServed: boolean,
  now: Date,
): StatusPart[] {
  const known = findCondition(status?.conditions, 'Active');
  const serves = `Coppice answers, as BurstPolicies of Hub ${hubName} decide`;
  const said: Pick<SaidAs<'AdmissionCheck', 'Active'>, 'status' | 'reason' | 'message'> = spec?.parameters
    ? { status: 'False', reason: 'BadParameters', message: 'it takes no parameters: remove spec.parameters' }
    : isServed
      ? { status: 'True', reason: 'Active', message: serves }
      : { status: 'False', reason: 'NoPolicy', message: noPolicy(hubName) };
  // Several hubs of one API server may share the check: while one serves it, the others neither repeat nor revoke
  // it.
  const isTheirs =
    said.reason !== 'BadParameters' && known?.status === 'True' && (isServed || known.message !== serves);
  if (isTheirs || (known?.status === said.status && known.reason === said.reason)) return [];
  const conditions = setCondition(known && [known], { type: 'Active', ...said }, now);
  const object = {
    apiVersion: KUEUE_API_VERSION,
    kind: ADMISSIONCHECKS.kind,
    metadata: { name, ...(uid && { uid }) },
    status: { conditions },
  };
  return [{ resource: ADMISSIONCHECKS, object }];
}
