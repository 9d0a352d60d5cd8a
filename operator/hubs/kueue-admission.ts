import { findCondition, rfc3339, setCondition } from '../api/conditions.ts';
import { ADMISSION_CONTROLLER } from '../api/group.ts';
import type { Condition } from '../api/meta.ts';
import type { SaidAs } from '../api/reasons.ts';
import type { KubeObject } from '../kube/resources.ts';
import type { Answer, Asking, Demand, DemandWatch, StatusPart } from './contract.ts';
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

/** Whoever reads a Workload reads all of it. */
const MOST_WORDS = 1000;
/**
 * Seconds until Kueue takes the quota back of a job that nothing is to be had for: at once, then one minute, two, four, five. Kueue 0.19
 * waits before it evicts, and not after: with a longest time of an hour one job would keep its quota from all others for that long.
 */
const SECOND_RETRY_S = 60;
const LONGEST_RETRY_S = 300;

/** The pods of a job are on its cluster within this time. */
const COMING_MS = 10_000;

/** An AdmissionCheck, as far as it is read here. */
export type AdmissionCheck = KubeObject & {
  spec?: { controllerName?: string; parameters?: object };
  status?: { conditions?: Condition[] };
};

type Say = Parameters<Asking['answers']>[0];

const namesBy = (checks: readonly AdmissionCheck[], controller: string): string[] =>
  checks.filter(({ spec }) => spec?.controllerName === controller).map(({ metadata }) => metadata.name);

/** Names of those that we answer for. */
export const ownChecks = (checks: readonly AdmissionCheck[]): string[] => namesBy(checks, ADMISSION_CONTROLLER);

/** Has checks of ours heard of that come, or that somebody changes. */
export const askWatch: DemandWatch = {
  resources: [ADMISSIONCHECKS],
  says: (object) => {
    const { spec } = object as AdmissionCheck;
    return spec?.controllerName === ADMISSION_CONTROLLER ? JSON.stringify(spec) : undefined;
  },
};

/**
 * What checks of ours ask of a hub. Jobs of other hubs of this API server are theirs: a job belongs to the hub by whose check it is
 * dispatched. Pure.
 * @param check name of the AdmissionCheck by which jobs of the hub are dispatched
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
        // It is there, whatever is known of where it fits.
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
      // What goes on, or gives its quota back, before words alone.
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
): Answer | undefined {
  const before = heldBefore(workload, passed, own);
  if (before.length > 0) {
    const message = `AdmissionCheck ${before.join(', ')} has to be Ready first: nothing is bought before that`;
    return { state: 'Pending', message };
  }
  const retry = (message: string): Answer => ({ state: 'Retry', message });
  // It would run in the hub, which no cluster that is bought makes larger.
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

/** All entries of ours, or those that are left out would go. */
function answerPart(
  { metadata, status }: DispatchedWorkload,
  own: readonly string[],
  { state, message }: Answer,
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

/** Kueue gives no quota by a check that is not active: nothing would be answered there. */
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
  // Several hubs of one API server may share it: as long as one serves it, none has to say so again, and none takes it back.
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
