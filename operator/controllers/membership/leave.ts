import { findCondition } from '../../api/conditions.ts';
import { ANNOTATIONS } from '../../api/group.ts';
import type { HubSpec } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import { isAttached, type WorkerCluster } from '../../api/workercluster.ts';
import type { OpenCluster } from '../../clusters/open-clusters.ts';
import type { Contents, HubType, Member, Place, Trace, WantedObject } from '../../hubs/contract.ts';
import { keyOf, NAMESPACES } from '../../kube/resources.ts';
import { dueIdentities, renewCredentials } from './credentials.ts';
import type { MembershipDependencies } from './dependencies.ts';
import { drainTimeoutMs } from './drain-time.ts';
import { withdrawExports } from './exports.ts';
import { BY_CLUSTER, clusterOf } from './holds.ts';
import type { HubConnection } from './hub-connections.ts';
import { identityObjects } from './identity-objects.ts';
import { hubEndpoint } from './join.ts';
import { judgeLeave, LEAVE_STAGES, type LeaveStage, type LeaveVerdict, type LeaveView } from './judge.ts';
import { memberOf } from './member.ts';
import { ownWorkIn } from './own-work.ts';
import { madeFor } from './ownership.ts';
import { placedOn } from './placed.ts';
import { type MembershipReceipt, noteSteps, placeOfObject, samePlace } from './receipt.ts';
import { readerOf, TwoSides } from './two-sides.ts';

/** Facts about a leaving cluster. */
export interface LeaveInputs {
  readonly membership: Membership;
  readonly spec: HubSpec;
  readonly type: HubType;
  readonly receipt: MembershipReceipt;
  readonly cluster: WorkerCluster | undefined;
  readonly connection: HubConnection;
  /** Absent: it does not answer. */
  readonly open: OpenCluster | undefined;
}

/** State of a leave after one check. `gone`: nothing is left. */
export interface LeaveOutcome {
  readonly verdict: LeaveVerdict;
  readonly gone: boolean;
  /** Reason to wait of the next step. */
  readonly waiting: string;
  /** Work that no hub placed and that ends with the cluster, as text; reported once before withdrawal. */
  readonly ends?: readonly string[];
}

/** Whether the cluster itself is destroyed: objects inside need no clean-up and must not delay it. */
export const clusterGoes = (cluster: WorkerCluster | undefined): boolean =>
  cluster === undefined ||
  (cluster.metadata.deletionTimestamp !== undefined &&
    (!isAttached(cluster) || cluster.metadata.annotations?.[ANNOTATIONS.destroyed] === 'true') &&
    (cluster.spec.adopt === undefined || cluster.spec.adopt.deletionPolicy === 'Delete'));

/** Whether a leave may be forced after its timeout: by the Hub or by a person only. */
export const isForced = ({ metadata }: Membership, { drain }: HubSpec): boolean =>
  drain?.force === true || metadata.annotations?.[ANNOTATIONS.forceLeave] === 'true';

/**
 * Advances a leave as far as possible now: keeps new work away, drains, withdraws, and deletes what the receipt lists.
 * Idempotent.
 */
export async function leave(
  deps: MembershipDependencies,
  inputs: LeaveInputs,
  signal: AbortSignal,
): Promise<LeaveOutcome> {
  const { membership, spec, type, cluster, connection, open } = inputs;
  let { receipt } = inputs;
  const sides = new TwoSides(
    { hub: connection.client, member: open?.client },
    madeFor(deps.gardenID, membership, receipt),
    () => deps.now(),
  );
  const [hub, inside] = [readerOf(connection.client, signal), open && readerOf(open.client, signal)];
  const leaving = () =>
    memberOf(receipt, hubEndpoint(connection, spec), { cluster, open, profiles: deps.profiles, closed: 'Leaving' });
  const member = leaving();
  // A cluster that was never opened has no work.
  const wasOpen = receipt.opened === true;
  let seen = await type.observe(hub, inside, member, spec);
  const write = async (wanted: readonly WantedObject[], how: 'apply' | 'change') => {
    const next = noteSteps(receipt, wanted, []);
    if (next !== receipt) await deps.receipts.save(keyOf(membership), next, receipt, signal);
    receipt = next;
    let changed = false;
    for (const one of wanted) if (sides.has(one.on)) changed = (await sides[how](one, signal)) || changed;
    if (changed) seen = await type.observe(hub, inside, member, spec);
  };
  // A drain may outlast tokens, without which the hub cannot move work.
  const renew = async () => {
    const known = type
      .identities(member, spec)
      .filter(({ name, on }) => sides.has(on) && member.credentials[name] !== undefined);
    const ending = dueIdentities(known, receipt.credentials, deps.now(), () => undefined);
    if (ending.length === 0) return;
    const credentials = await renewCredentials(sides, ending, receipt.credentials, deps.now(), signal);
    const next = { ...receipt, credentials };
    await deps.receipts.save(keyOf(membership), next, receipt, signal);
    receipt = next;
    const handing = type.join(leaving(), spec, seen).filter((step) => step.type === 'CredentialsReady');
    await write(
      handing.flatMap(({ apply = [] }) => apply.filter(({ shared }) => !shared)),
      'change',
    );
  };
  // An entry already withdrawn by an earlier operator is not recreated to be closed.
  if (wasOpen && type.cordon) await write(type.cordon(member, spec, seen), 'change');
  const view = viewOf(deps, inputs, member, seen);
  let verdict = judgeLeave(view, deps.now());
  // Last, and only for a cluster to be destroyed: otherwise its exports are intended.
  let ends: readonly string[] = [];
  if (verdict.withdraw && clusterGoes(cluster) && open && inside && !isReached(membership, 'Withdrawn', 'False')) {
    const exported = await withdrawExports({ member, hub, inside, client: open.client }, signal);
    ends = await ownWorkIn(spec, inside, open.pods.list());
    const { otherWork, allowDelete } = spec.drain ?? {};
    // Whether the work may end with the cluster is its owner's decision.
    const ownWork = otherWork === 'Hold' && !allowDelete ? ends : [];
    verdict = judgeLeave({ ...view, exported, ownWork }, deps.now());
  }
  if (!verdict.withdraw) await renew();
  if (wasOpen && verdict.drain && !verdict.drained && type.drain) await write(type.drain(member, spec, seen), 'apply');
  if (!verdict.withdraw) return { verdict, gone: false, waiting: verdict.waiting };
  const force = verdict.overdue && isForced(membership, spec);
  const whole = { spec, type, receipt, member, seen, goes: clusterGoes(cluster) };
  const waiting = await withdraw(sides, whole, force, signal);
  return { verdict, gone: waiting === undefined, waiting: waiting ?? '', ends };
}

const isReached = ({ status }: Membership, stage: LeaveStage, by: 'True' | 'False' = 'True'): boolean =>
  findCondition(status?.conditions, stage)?.status === by;

function viewOf(deps: MembershipDependencies, inputs: LeaveInputs, member: Member, seen: unknown): LeaveView {
  const { membership, spec, type, receipt } = inputs;
  const siblings = deps.memberships
    .byIndex(BY_CLUSTER, clusterOf(membership))
    .filter((one) => one.metadata.deletionTimestamp && one.metadata.uid !== membership.metadata.uid);
  return {
    ...placedOn(deps, { membership, spec, type, receipt, open: inputs.open }, member, seen),
    allowDelete: spec.drain?.allowDelete === true,
    began: new Date(membership.metadata.deletionTimestamp ?? 0),
    timeoutMs: drainTimeoutMs(spec),
    force: isForced(membership, spec),
    others: siblings.map((one) => ({
      hub: `Hub ${one.spec.hub}`,
      reached: LEAVE_STAGES.filter((stage) => isReached(one, stage)),
    })),
  };
}

/** The recorded place, or one within a recorded namespace: nothing else is deleted. */
const toGo = (
  { places }: MembershipReceipt,
  place: Place | Trace,
): (Place & Partial<Pick<Trace, 'labels'>>) | undefined =>
  places.find((one) => samePlace(one, place)) ??
  ('labels' in place &&
  places.some(
    ({ on, resource, name }) => resource.kind === NAMESPACES.kind && on === place.on && name === place.namespace,
  )
    ? place
    : undefined);

/** Deletes everything in a recorded namespace that is still the same. */
async function empty(
  sides: TwoSides,
  { places }: MembershipReceipt,
  { on, resource, within }: Contents,
  signal: AbortSignal,
): Promise<void> {
  const namespace = places.find((one) => samePlace(one, { on, resource: NAMESPACES, name: within }));
  if (namespace && sides.has(on)) await sides.empty(namespace, resource, signal);
}

/** A withdrawal from a hub. */
export interface LeavingMember {
  readonly spec: HubSpec;
  readonly type: HubType;
  readonly receipt: MembershipReceipt;
  readonly member: Member;
  /** Observation of the hub's type. */
  readonly seen: unknown;
  /** See clusterGoes. */
  readonly goes: boolean;
}

/**
 * Deletes in the hub's order, then everything else in the receipt, last made first. @returns the reason to wait;
 * undefined: all is gone
 */
export async function withdraw(
  sides: TwoSides,
  { spec, type, receipt, member, seen, goes }: LeavingMember,
  force: boolean,
  signal: AbortSignal,
): Promise<string | undefined> {
  const remove = async (place: MembershipReceipt['places'][number], forced: boolean) => {
    if (place.on === 'member' && (goes || (force && !sides.has('member')))) return undefined;
    if (!sides.has(place.on))
      return `the cluster does not answer, and ${place.resource.kind} ${place.name} is left in it`;
    return sides.remove(place, forced, signal);
  };
  const kept = type.identities(member, spec).flatMap(identityObjects).map(placeOfObject);
  const isIdentity = (place: MembershipReceipt['places'][number]) => kept.some((one) => samePlace(one, place));
  for (const { apply = [], sweep = [], places, waiting, force: forced = [] } of type.leave(member, spec, seen)) {
    if (waiting !== undefined && !force) return waiting;
    for (const one of apply) if (sides.has(one.on)) await sides.change(one, signal);
    // In parallel: a hub may have hundreds, each slow.
    let waits: string | undefined;
    for (const trace of sweep) waits = (await remove(trace, force)) ?? waits;
    for (const place of places) {
      const known = toGo(receipt, place);
      const left = known && (await remove(known, false));
      if (left === undefined) continue;
      waits ??= left;
      if (!force) continue;
      for (const one of [...forced, place]) {
        if ('within' in one) await empty(sides, receipt, one, signal);
        else {
          const noted = toGo(receipt, one);
          if (noted) await remove(noted, true);
        }
      }
    }
    if (waits !== undefined && !force) return waits;
  }
  const rest = [...receipt.places].reverse();
  // Identities last: agents on the other side may still work with them.
  for (const place of [...rest.filter((one) => !isIdentity(one)), ...rest.filter(isIdentity)]) {
    const left = await remove(place, force);
    if (left !== undefined) return left;
  }
  return undefined;
}
