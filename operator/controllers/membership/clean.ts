import { errorText } from '../../api/errors.ts';
import type { HubSpec } from '../../api/hub.ts';
import type { Place } from '../../hubs/contract.ts';
import { hubType } from '../../hubs/index.ts';
import { memberName } from '../../hubs/member-name.ts';
import type { KubeClient } from '../../kube/client.ts';
import { sleep } from '../../kube/clock.ts';
import { CLUSTERROLEBINDINGS, CLUSTERROLES, SECRETS, SERVICEACCOUNTS } from '../../kube/resources.ts';
import type { Audit, LookedAt } from './audit.ts';
import { hubEndpoint } from './join.ts';
import { type LeavingMember, withdraw } from './leave.ts';
import { isLive, isOurs, type LeftOver, placeOfLeftOver, whatOf } from './left-overs.ts';
import { memberOf } from './member.ts';
import type { LabelledOwner } from './ownership.ts';
import { type MembershipReceipt, samePlace } from './receipt.ts';
import { readerOf, TwoSides } from './two-sides.ts';

/** Polling interval during deletions. */
const LOOK_AGAIN_MS = 500;
/** Identity objects, deleted last, because agents may still work with them. */
const IDENTITY = [SECRETS, CLUSTERROLEBINDINGS, CLUSTERROLES, SERVICEACCOUNTS].map(({ plural }) => plural);

/** Options of a clean-up. */
interface CleanOptions {
  /** Called before each membership. */
  readonly told: (owner: LabelledOwner, where: string) => void;
  /** Time for a hub's finalizers, milliseconds; then they are removed if the cluster is gone. */
  readonly patienceMs: number;
  readonly now: () => Date;
}

/**
 * Deletes an audit's leftovers, per membership in its hub's order; only objects that still have the membership's label.
 * Objects without this garden's mark stay. @returns what could not be deleted, with reasons: sentences
 */
export async function cleanUpMembership(
  garden: KubeClient,
  audit: Audit,
  { told, patienceMs, now }: CleanOptions,
  signal: AbortSignal,
): Promise<string[]> {
  const problems: string[] = [];
  const ours = audit.leftOvers.filter(isOurs);
  for (const [where, side] of audit.lookedAt) {
    const here = ours.filter((one) => one.where === where || isReceiptOf(side, one, audit));
    for (const uid of new Set(here.map(({ owner }) => owner.membership))) {
      const left = here.filter(({ owner }) => owner.membership === uid);
      const { owner } = left[0]!;
      told(owner, where);
      try {
        const pass = await passOver(audit, side, left, now, signal);
        const mayForce = !isLive(owner, audit.knows.clusters);
        const waiting = await insist(pass, { ends: +now() + patienceMs, now, mayForce }, signal);
        if (waiting !== undefined) problems.push(waiting);
      } catch (error) {
        signal.throwIfAborted();
        problems.push(`${whatOf(left[0]!)} of ${where}: ${errorText(error)}`);
      }
    }
  }
  // Only the receipt shows what a hub made by itself: keep it for an unreadable hub.
  const done = ours.filter((one) => [...audit.lookedAt.values()].some((side) => isReceiptOf(side, one, audit)));
  if (problems.length === 0)
    for (const { name, namespace } of done) await garden.delete(SECRETS, name, namespace, { signal });
  return problems;
}

/** Whether it is the receipt of a membership in this hub. */
const isReceiptOf = ({ on, identity }: LookedAt, { on: kept, owner }: LeftOver, { knows }: Audit): boolean =>
  on === 'hub' &&
  kept === 'garden' &&
  knows.receipts.some(
    ({ receipt }) => receipt.membership.uid === owner.membership && receipt.hub.identity === identity,
  );

type Pass = (force: boolean) => Promise<string | undefined>;

async function insist(
  pass: Pass,
  { ends, now, mayForce }: { ends: number; now: () => Date; mayForce: boolean },
  signal: AbortSignal,
): Promise<string | undefined> {
  for (;;) {
    const isOver = +now() >= ends;
    const waiting = await pass(isOver && mayForce);
    if (waiting === undefined || isOver) return waiting;
    await sleep(LOOK_AGAIN_MS, signal);
  }
}

/** One pass over a membership's leftovers in one API server. */
async function passOver(
  audit: Audit,
  side: LookedAt,
  left: readonly LeftOver[],
  now: () => Date,
  signal: AbortSignal,
): Promise<Pass> {
  const { owner } = left[0]!;
  const { on, client } = side;
  const sides = new TwoSides(
    { hub: client, member: on === 'member' ? client : undefined },
    { ...owner, garden: audit.knows.garden },
    now,
  );
  const places = inOrder(left.filter((one) => one.on !== 'garden')).map((one) => placeOfLeftOver({ ...one, on }));
  const leaving = on === 'hub' ? await asMember(audit, side, sides, owner, places, signal) : undefined;
  if (!leaving) return (force) => removeEach(sides, places, force, signal);
  return async (force) => {
    const { type, member, spec } = leaving;
    const seen = await type.observe(readerOf(client, signal), undefined, member, spec);
    return withdraw(sides, { ...leaving, seen }, force, signal);
  };
}

/**
 * The membership for its hub's type, to delete in that hub's order, with the hub's traces. undefined: another Hub, or a
 * foreign object with its name, which must not be touched.
 */
async function asMember(
  audit: Audit,
  { client, identity }: LookedAt,
  sides: TwoSides,
  owner: LabelledOwner,
  places: readonly Place[],
  signal: AbortSignal,
): Promise<LeavingMember | undefined> {
  const { knows } = audit;
  const known = knows.receipts.find(({ receipt }) => receipt.membership.uid === owner.membership)?.receipt;
  const hub = knows.hubs.find(
    ({ metadata, status }) => metadata.name === owner.hub && status?.clusterIdentity === identity,
  );
  const type = hub && hubType(hub.spec.type);
  if (!type || owner.cluster.name === '') return undefined;
  const receipt = known ?? receiptOf(owner, { name: hub.metadata.name, identity, spec: hub.spec }, type.nameLimit);
  const { spec } = hub;
  const whole = { cluster: undefined, open: undefined, profiles: NONE, closed: 'Leaving' } as const;
  const member = memberOf(receipt, hubEndpoint({ client, identity }, spec), whole);
  const seen = await type.observe(readerOf(client, signal), undefined, member, spec);
  for (const { places: wanted } of type.leave(member, spec, seen))
    for (const place of wanted) {
      if (place.on !== 'hub' || 'labels' in place) continue;
      const live = await client.getOrUndefined(place.resource, place.name, place.namespace, { signal });
      if (live && !sides.isOurs(live)) return undefined;
    }
  const traces = type.join(member, spec, seen).flatMap((step) => step.traces ?? []);
  const more = [...(known?.places ?? []).filter(({ on }) => on === 'hub'), ...traces];
  const all = [...places, ...more.filter((one) => !places.some((place) => samePlace(place, one)))];
  return { spec, type, member, seen, goes: true, receipt: { ...receipt, places: all } };
}

const NONE = { get: () => undefined };

/** A partial receipt from an object's labels. */
const receiptOf = (
  { membership, cluster, identity }: LabelledOwner,
  hub: { name: string; identity: string; spec: HubSpec },
  nameLimit: number,
): MembershipReceipt => ({
  membership: { namespace: cluster.namespace, name: '', uid: membership },
  cluster: cluster.name,
  hub,
  member: { name: memberName(cluster.namespace, cluster.name, nameLimit), id: identity, endpoint: { server: '' } },
  places: [],
  credentials: [],
});

/** Last made first, identity objects at the end; `withdraw` reverses a receipt's order itself. */
const inOrder = (left: readonly LeftOver[]): LeftOver[] =>
  [...left].sort((a, b) => rank(b) - rank(a) || (a.madeAt < b.madeAt ? -1 : a.madeAt > b.madeAt ? 1 : 0));

const rank = ({ resource }: LeftOver): number => IDENTITY.indexOf(resource.plural);

async function removeEach(
  sides: TwoSides,
  places: readonly Place[],
  force: boolean,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (const place of [...places].reverse()) {
    const left = await sides.remove(place, force, signal);
    if (left !== undefined) return left;
  }
  return undefined;
}
