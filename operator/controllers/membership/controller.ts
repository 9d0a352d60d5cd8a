import { isDeepStrictEqual } from 'node:util';
import { findCondition } from '../../api/conditions.ts';
import type { Hub } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import type { OpenCluster } from '../../clusters/open-clusters.ts';
import { hubType } from '../../hubs/index.ts';
import { keyOf, MEMBERSHIPS } from '../../kube/resources.ts';
import { say } from '../conditions.ts';
import { spreadInterval } from '../spread.ts';
import type { MembershipDependencies } from './dependencies.ts';
import { whyUnreachable } from './dialing.ts';
import { clusterOf } from './holds.ts';
import { hubEndpoint, type JoinInputs, type JoinOutcome, join } from './join.ts';
import { hasJoined, toldOfJoin, waitsWarm } from './join-status.ts';
import { leaveHub } from './leave-hub.ts';
import { LOOK_AGAIN_MS, type Next, SLACK_MS } from './look-again.ts';
import { isAnswering, isAsleep, isEmptied, isSilent, isWarm, memberEndpointOf, whyNotUsable } from './member.ts';
import { labelsOf } from './member-labels.ts';
import type { MembershipReceipt } from './receipt.ts';
import { newlyDone, OBSERVED, type Told, toldOfOthers } from './status.ts';
import { carryConditions, tellMembership, tellMembershipFailure } from './tell.ts';

/** Facts about a membership before hub or cluster is asked. */
interface MembershipView {
  readonly membership: Membership;
  readonly cluster: WorkerCluster;
  readonly hub: Hub | undefined;
  readonly open: OpenCluster | undefined;
  /** It has joined. */
  readonly isIn: boolean;
  /** A foreign entry exists in the hub. */
  readonly isObserved: boolean;
  /** Whether the cluster's API server answers. */
  readonly answers: boolean;
  /** Why the cluster cannot take work yet; undefined: it can. */
  readonly notUsable: string | undefined;
  /** Why no cluster can join the hub now; undefined: clusters can. */
  readonly problem: string | undefined;
}

/** Reads caches only. */
function observeMembership(
  deps: MembershipDependencies,
  membership: Membership,
  cluster: WorkerCluster,
): MembershipView {
  const { spec, status } = membership;
  const hub = deps.hubs.get(spec.hub);
  const open = deps.openClusters.get(clusterOf(membership));
  const hubReady = findCondition(hub?.status?.conditions, 'Ready');
  const problem = !hub
    ? `Hub ${spec.hub} does not exist`
    : hubReady?.status !== 'True'
      ? `clusters cannot join Hub ${spec.hub} now: ${hubReady?.message ?? 'the operator has not checked it yet'}`
      : undefined;
  return {
    membership,
    cluster,
    hub,
    open,
    isIn: status?.state === 'Joined' || status?.state === 'Asleep',
    isObserved: findCondition(status?.conditions, OBSERVED) !== undefined,
    answers: isAnswering(cluster, open),
    notUsable: whyNotUsable(cluster, open),
    problem,
  };
}

/** Whether there is nothing to do or report. Pure. @param receipt absent: nothing was made */
function isNothingNew(view: MembershipView, receipt: MembershipReceipt | undefined): boolean {
  // A first status for a cluster that is still being made would cost a write without information.
  if (view.notUsable && !view.membership.status?.conditions && !receipt) return true;
  // After a restart its connection is not open yet.
  if (view.isIn && !view.open && !isSilent(view.cluster)) return true;
  // Others maintain their entry of a silent cluster.
  return view.isObserved && !view.answers;
}

/** Status of a join that waits for its hub or its cluster. Pure. */
function toldOfWait({ membership, isIn, problem, notUsable }: MembershipView): Told {
  const { hub } = membership.spec;
  const usable = say(
    'HubUsable',
    !problem,
    problem ? 'NotUsable' : 'Usable',
    problem ?? `clusters can join Hub ${hub}`,
  );
  return {
    state: isIn ? membership.status!.state! : 'Pending',
    waiting: problem ?? notUsable!,
    conditions: [...carryConditions(membership), usable],
  };
}

/** Inputs of a joined membership. Pure. */
const restsOf = (
  { profiles }: Pick<MembershipDependencies, 'profiles'>,
  { membership, cluster, answers, notUsable }: MembershipView,
  hub: Hub,
  open: OpenCluster,
) => ({
  cluster: labelsOf(cluster, hub.spec, { open, profile: profiles.get(profileNameOf(cluster)) }),
  ranges: cluster.status?.networking,
  nodes: shapeOf(open),
  hub: hub.metadata.generation,
  answers,
  sleep: [isAsleep(cluster), isEmptied(cluster), notUsable],
  before: membership.status,
});

/** Facts about its nodes that hubs are shown. */
const shapeOf = (open: OpenCluster): unknown => ({
  server: open.server,
  nodes: open.nodes
    .list()
    .map(({ metadata, status }) => [metadata.name, status?.allocatable?.cpu, status?.allocatable?.memory])
    .sort(),
});

const RENEW_AGAIN_MS = 60_000;
/** Interval of checking what is not watched (the member, some kinds of the hub). Costs reads only. */
const LOOK_THROUGH_MS = 15 * 60_000;
/** Interval of checking a foreign entry or the Hub's policy, which cause no event. */
const OBSERVE_AGAIN_MS = 60_000;
const CONFIGURATION = 'ERR_CONFIGURATION_PROBLEM';

/** Joins clusters to hubs and lets them leave: observes, plans and acts for one Membership at a time. */
export class MembershipController {
  readonly #deps: MembershipDependencies;
  /** Inputs of settled memberships, by UID: nothing is requested while they are unchanged. */
  readonly #settled = new Map<string, { readonly rests: unknown; readonly until: number }>();
  /** Last check by UID: outdated if the hub changed during it. */
  readonly #looks = new Map<string, { isOld: boolean }>();

  constructor(deps: MembershipDependencies) {
    this.#deps = deps;
  }

  /** An object of the membership has changed in the hub. */
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
      await deps.garden.delete(MEMBERSHIPS, name, namespace, { signal, preconditions: { ...(uid && { uid }) } });
      return {};
    }
    return this.#join(membership, cluster, signal);
  }

  async #join(membership: Membership, cluster: WorkerCluster, signal: AbortSignal): Promise<Next> {
    const deps = this.#deps;
    const view = observeMembership(deps, membership, cluster);
    const { hub, open, isIn, notUsable, problem } = view;
    if (isNothingNew(view, deps.receipts.get(keyOf(membership)))) return {};
    if (problem || !hub || !open || (notUsable && !isIn)) {
      await tellMembership(deps, membership, toldOfWait(view), signal);
      return {};
    }
    const { uid = '' } = membership.metadata;
    const rests = restsOf(deps, view, hub, open);
    const settled = isIn ? this.#stillSettled(membership, rests) : undefined;
    if (settled) return settled;
    this.#settled.delete(uid);
    const thisLook = { isOld: false };
    this.#looks.set(uid, thisLook);
    const hubName = hub.metadata.name;
    const type = hubType(hub.spec.type)!;
    const connection = await deps.connections.open(hubName, hub.spec, hub.status?.clusterIdentity, signal);
    const noLine = whyUnreachable(
      type.dials(hub.spec),
      { who: `Hub ${hubName}`, at: hubEndpoint(connection, hub.spec) },
      { who: `cluster ${clusterOf(membership)}`, at: memberEndpointOf(hub.spec, cluster.metadata, open) },
    );
    if (noLine) {
      const conditions = [...carryConditions(membership), say('LinePossible', false, 'CannotReach', noLine)];
      const state = membership.status?.state ?? 'Pending';
      await tellMembership(deps, membership, { state, waiting: noLine, conditions, codes: [CONFIGURATION] }, signal);
      return { requeueAfterMs: RENEW_AGAIN_MS };
    }
    // A foreign entry does not become ours by itself.
    const wasIn = isIn && !view.isObserved;
    const warm = isWarm(cluster);
    const inputs: JoinInputs = {
      membership,
      hub,
      type,
      cluster,
      connection,
      open,
      answers: view.answers,
      asleep: isAsleep(cluster),
      warm,
      emptying: isEmptied(cluster),
      usable: notUsable === undefined,
    };
    let outcome: JoinOutcome;
    try {
      outcome = await join(deps, inputs, signal);
    } catch (error) {
      await tellMembershipFailure(deps, membership, wasIn ? membership.status!.state! : 'Joining', error, signal);
      throw error;
    }
    if (outcome.observed) {
      await tellMembership(deps, membership, toldOfOthers(outcome.observed), signal);
      return { requeueAfterMs: spreadInterval(OBSERVE_AGAIN_MS, uid) };
    }
    const told = toldOfJoin(outcome, { wasIn, warm, silent: view.answers ? '' : notUsable! });
    if (!wasIn) this.#recordSteps(membership, hubName, outcome, told);
    const newest = await tellMembership(deps, membership, told, signal, outcome.receipt);
    const { isDue, next } = renewalOf(outcome.receipt, deps.now());
    const lookMs = spreadInterval(LOOK_THROUGH_MS, uid);
    // Removing its label triggers the next check.
    if (waitsWarm(outcome, warm)) return sooner(next, lookMs);
    const isUnderWay = outcome.awake !== undefined || outcome.emptying !== undefined || !(outcome.isWhole || isDue);
    if (!hasJoined(outcome) || isUnderWay) return { requeueAfterMs: LOOK_AGAIN_MS };
    if (!thisLook.isOld)
      this.#settled.set(uid, { rests: { ...rests, before: newest.status }, until: +deps.now() + lookMs });
    return sooner(next, lookMs);
  }

  /** When a settled membership with unchanged inputs is checked again; undefined: now. */
  #stillSettled(membership: Membership, rests: unknown): Next | undefined {
    const now = this.#deps.now();
    const renewal = renewalOf(this.#deps.receipts.get(keyOf(membership)), now);
    const settled = this.#settled.get(membership.metadata.uid ?? '');
    if (!settled || renewal.isDue || settled.until <= +now || !isDeepStrictEqual(settled.rests, rests))
      return undefined;
    return sooner(renewal.next, settled.until - +now);
  }

  /** Records an Event for newly done steps. */
  #recordSteps(membership: Membership, hubName: string, outcome: JoinOutcome, { conditions }: Told): void {
    const steps = newlyDone(membership, conditions);
    if (steps === '') return;
    const joined = hasJoined(outcome);
    const text = joined ? `the cluster has joined Hub ${hubName} as ${outcome.receipt.member.name}: ${steps}` : steps;
    this.#deps.recordEvent(membership, 'Normal', joined ? 'Joined' : 'Joining', text);
  }
}

/** When the first credential of a receipt is due. Pure. */
function renewalOf(receipt: MembershipReceipt | undefined, now: Date): { isDue: boolean; next: Next } {
  const times = (receipt?.credentials ?? []).flatMap(({ renewAt }) => (renewAt ? [Date.parse(renewAt)] : []));
  if (times.length === 0) return { isDue: receipt === undefined, next: {} };
  const inMs = Math.min(...times) - +now;
  // Renewal failed because the cluster did not answer.
  const nextMs = inMs <= 0 ? RENEW_AGAIN_MS : inMs + SLACK_MS;
  return { isDue: inMs <= 0, next: { requeueAfterMs: nextMs } };
}

const sooner = ({ requeueAfterMs = Number.POSITIVE_INFINITY }: Next, ms: number): Next => ({
  requeueAfterMs: Math.min(requeueAfterMs, ms + SLACK_MS),
});
