import { isDeepStrictEqual } from 'node:util';
import { findCondition } from '../../api/conditions.ts';
import type { Membership } from '../../api/membership.ts';
import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import { hubType } from '../../hubs/index.ts';
import { isNotFound } from '../../kube/errors.ts';
import { keyOf, MEMBERSHIPS } from '../../kube/resources.ts';
import { say } from '../conditions.ts';
import { spread } from '../spread.ts';
import type { MembershipDependencies } from './dependencies.ts';
import { whyUnreachable } from './dialing.ts';
import { clusterOf } from './holds.ts';
import { hubEndpoint, type JoinOutcome, join } from './join.ts';
import { leaveHub } from './leave-hub.ts';
import { LOOK_AGAIN_MS, type Next, SLACK_MS } from './look-again.ts';
import { answers, endpointOf, isAsleep, isEmptied, isSilent, isWarm, whyNotUsable } from './member.ts';
import { labelsOf } from './member-labels.ts';
import type { MembershipReceipt } from './receipt.ts';
import { newlyDone, OBSERVED, parkedConditions, stepConditions, type Told, toldOfOthers } from './status.ts';
import { carried, tell, tellFailure } from './tell.ts';

const RENEW_AGAIN_MS = 60_000;
/** What nobody hears of (in the member, and kinds of the hub that are not watched) is looked at as often. It costs reads, and no write. */
const LOOK_THROUGH_MS = 15 * 60_000;
/** Nobody tells when what somebody else has made is gone, or when its Hub lets us own it. */
const OBSERVE_AGAIN_MS = 60_000;
/** Longest that a timer of Node's can wait. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const PARKED = {
  FallingAsleep: 'the cluster is to sleep, and the hub moves work away first',
  Asleep: 'the cluster sleeps: the hub places nothing on it until it wakes',
  Waking: 'the cluster wakes: it is opened to work when it has new credentials and a node that runs pods',
  Emptying: 'its BurstPolicy has the hub move all work away, and may give the cluster back then',
};
const WARM = 'the cluster waits warm, closed to work: its BurstPolicy opens it when work needs it';
const CONFIGURATION = 'ERR_CONFIGURATION_PROBLEM';

/** Joins clusters to hubs and has them leave: observe, plan, act for one Membership at a time. */
export class MembershipController {
  readonly #deps: MembershipDependencies;
  /** What a membership rested on when all was as it should be, by its UID: as long as nothing of it changes nobody is asked. */
  readonly #settled = new Map<string, { readonly rests: unknown; readonly until: number }>();
  /** The last look at each, by its UID: one during which something changed in the hub says nothing of what is there now. */
  readonly #looks = new Map<string, { isOld: boolean }>();

  constructor(deps: MembershipDependencies) {
    this.#deps = deps;
  }

  /** Something that belongs to the membership has changed in the hub. */
  hubChanged(uid: string): void {
    this.#settled.delete(uid);
    const look = this.#looks.get(uid);
    if (look) look.isOld = true;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Next> {
    const deps = this.#deps;
    const membership = deps.memberships.get(key);
    if (!membership) return {};
    const cluster = deps.clusters.get(clusterOf(membership));
    if (membership.metadata.deletionTimestamp) {
      this.#settled.delete(membership.metadata.uid ?? '');
      this.#looks.delete(membership.metadata.uid ?? '');
      return leaveHub(deps, membership, cluster, signal);
    }
    if (!cluster || cluster.metadata.deletionTimestamp) {
      const { name, namespace, uid } = membership.metadata;
      await deps.garden
        .delete(MEMBERSHIPS, name, namespace, { signal, preconditions: { ...(uid && { uid }) } })
        .catch((error: unknown) => {
          if (!isNotFound(error)) throw error;
        });
      return {};
    }
    return this.#join(membership, cluster, signal);
  }

  async #join(membership: Membership, cluster: WorkerCluster, signal: AbortSignal): Promise<Next> {
    const deps = this.#deps;
    const { hub: hubName } = membership.spec;
    const hub = deps.hubs.get(hubName);
    const open = deps.openClusters.get(clusterOf(membership));
    const before = membership.status;
    const isIn = before?.state === 'Joined' || before?.state === 'Asleep';
    const isObserved = findCondition(before?.conditions, OBSERVED) !== undefined;
    const type = hub && hubType(hub.spec.type);
    const hubReady = findCondition(hub?.status?.conditions, 'Ready');
    const notUsable = whyNotUsable(cluster, open);
    // The first word about a cluster that is still being made would be a write for each, and say nothing that it does not say itself.
    if (notUsable && !before && !deps.receipts.get(keyOf(membership))) return {};
    const problem = !hub
      ? `Hub ${hubName} does not exist`
      : hubReady?.status !== 'True'
        ? `clusters cannot join Hub ${hubName} now: ${hubReady?.message ?? 'the operator has not checked it yet'}`
        : undefined;
    // Its connection is not open yet after a start of the operator: nothing has changed for all that is known.
    if (isIn && !open && !isSilent(cluster)) return {};
    // What others made is theirs to look after while the cluster is silent.
    if (isObserved && !answers(cluster, open)) return {};
    if (problem || !open || (notUsable && !isIn)) {
      const conditions = [
        ...carried(membership),
        say('HubUsable', !problem, problem ? 'NotUsable' : 'Usable', problem ?? `clusters can join Hub ${hubName}`),
      ];
      await tell(
        deps,
        membership,
        { state: isIn ? before.state! : 'Pending', waiting: problem ?? notUsable!, conditions },
        signal,
      );
      return {};
    }
    const rests = {
      cluster: labelsOf(cluster, hub!.spec, { open, profile: deps.profiles.get(profileNameOf(cluster)) }),
      ranges: cluster.status?.networking,
      nodes: shapeOf(open),
      hub: hub!.metadata.generation,
      answers: answers(cluster, open),
      sleep: [isAsleep(cluster), isEmptied(cluster), notUsable],
      before,
    };
    const renewal = renewalOf(deps.receipts.get(keyOf(membership)), deps.now());
    const uid = membership.metadata.uid ?? '';
    const settled = this.#settled.get(uid);
    if (isIn && settled && !renewal.isDue && isDeepStrictEqual(settled.rests, rests) && settled.until > +deps.now())
      return sooner(renewal.next, settled.until - +deps.now());
    this.#settled.delete(uid);
    const thisLook = { isOld: false };
    this.#looks.set(uid, thisLook);
    const { client, identity } = await deps.connections.open(hubName, hub!.spec, hub!.status?.clusterIdentity, signal);
    const noLine = whyUnreachable(
      type!.dials(hub!.spec),
      { who: `Hub ${hubName}`, at: hubEndpoint({ client, identity }, hub!.spec) },
      { who: `cluster ${clusterOf(membership)}`, at: endpointOf(hub!.spec, cluster.metadata, open) },
    );
    if (noLine) {
      const conditions = [...carried(membership), say('LinePossible', false, 'CannotReach', noLine)];
      const told: Told = { state: before?.state ?? 'Pending', waiting: noLine, conditions, codes: [CONFIGURATION] };
      await tell(deps, membership, told, signal);
      return { requeueAfterMs: RENEW_AGAIN_MS };
    }
    const inputs = {
      membership,
      hub: hub!,
      type: type!,
      cluster,
      connection: { client, identity },
      open,
      answers: answers(cluster, open),
      asleep: isAsleep(cluster),
      warm: isWarm(cluster),
      emptying: isEmptied(cluster),
      usable: notUsable === undefined,
    };
    // Out of what others made nothing of ours comes by itself.
    const wasIn = isIn && !isObserved;
    let outcome: JoinOutcome;
    try {
      outcome = await join(deps, inputs, signal);
    } catch (error) {
      await tellFailure(deps, membership, wasIn ? before.state! : 'Joining', error, signal);
      throw error;
    }
    if (outcome.observed) {
      await tell(deps, membership, toldOfOthers(outcome.observed), signal);
      return { requeueAfterMs: spread(OBSERVE_AGAIN_MS, uid) };
    }
    const { verdict, receipt, isWhole, awake, emptying } = outcome;
    const conditions = [...stepConditions(verdict.done, verdict.at), ...parkedConditions(awake, emptying)];
    const joined = verdict.at === undefined && receipt.opened === true;
    const waitsWarm = inputs.warm && receipt.opened !== true;
    if (waitsWarm && verdict.at === undefined) conditions.push(say('Warm', true, 'WaitsWarm', WARM));
    const silent = inputs.answers ? '' : notUsable!;
    const told: Told = {
      state:
        receipt.parked === 'Asleep' || receipt.parked === 'Waking' ? 'Asleep' : joined || wasIn ? 'Joined' : 'Joining',
      waiting:
        verdict.at?.waiting ?? awake?.why ?? (receipt.parked ? PARKED[receipt.parked] : waitsWarm ? WARM : silent),
      conditions,
    };
    const fresh = newlyDone(membership, conditions);
    if (fresh !== '' && !wasIn) {
      const text = joined ? `the cluster has joined Hub ${hubName} as ${receipt.member.name}: ${fresh}` : fresh;
      deps.recordEvent(membership, 'Normal', joined ? 'Joined' : 'Joining', text);
    }
    const newest = await tell(deps, membership, told, signal, receipt);
    const { isDue, next } = renewalOf(receipt, deps.now());
    // It is looked at again when its label goes.
    if (waitsWarm && verdict.at === undefined) return sooner(next, spread(LOOK_THROUGH_MS, uid));
    if (!joined || awake !== undefined || emptying || !(isWhole || isDue)) return { requeueAfterMs: LOOK_AGAIN_MS };
    const lookMs = spread(LOOK_THROUGH_MS, uid);
    if (!thisLook.isOld)
      this.#settled.set(uid, { rests: { ...rests, before: newest.status }, until: +deps.now() + lookMs });
    return sooner(next, lookMs);
  }
}

/** What of its nodes a hub is shown. */
const shapeOf = (open: ReturnType<MembershipDependencies['openClusters']['get']>): unknown => ({
  server: open?.server,
  nodes: (open?.nodes.list() ?? [])
    .map(({ metadata, status }) => [metadata.name, status?.allocatable?.cpu, status?.allocatable?.memory])
    .sort(),
});

/** When the first credential of a receipt is to be replaced. Pure. */
function renewalOf(receipt: MembershipReceipt | undefined, now: Date): { isDue: boolean; next: Next } {
  const times = (receipt?.credentials ?? []).flatMap(({ renewAt }) => (renewAt ? [Date.parse(renewAt)] : []));
  if (times.length === 0) return { isDue: receipt === undefined, next: {} };
  const inMs = Math.min(...times) - +now;
  // One that is due and could not be had waits for a cluster that does not answer.
  const nextMs = inMs <= 0 ? RENEW_AGAIN_MS : Math.min(inMs + SLACK_MS, LONGEST_TIMER_MS);
  return { isDue: inMs <= 0, next: { requeueAfterMs: nextMs } };
}

const sooner = ({ requeueAfterMs = Number.POSITIVE_INFINITY }: Next, ms: number): Next => ({
  requeueAfterMs: Math.min(requeueAfterMs, ms + SLACK_MS),
});
