import { rfc3339 } from '../../api/conditions.ts';
import { configurationProblem } from '../../api/errors.ts';
import type { Hub, HubSpec } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { OpenCluster } from '../../clusters/open-clusters.ts';
import { seedIdentityOf } from '../../clusters/seed-access.ts';
import type { ApiServerEndpoint, ForeignEntry, HubType, Identity, Member } from '../../hubs/contract.ts';
import { memberName } from '../../hubs/member-name.ts';
import { keyOf } from '../../kube/resources.ts';
import { foreignEntryOf, noteOwner, takeOver } from './adoption.ts';
import { boundTo, dueIdentities, renewCredentials } from './credentials.ts';
import type { MembershipDependencies } from './dependencies.ts';
import { drainTimeoutMs } from './drain-time.ts';
import type { HubConnection } from './hub-connections.ts';
import { identityObjects } from './identity-objects.ts';
import {
  type EmptyingVerdict,
  type JoinVerdict,
  judgeEmptying,
  judgeJoin,
  judgeSleep,
  type KeptAwake,
} from './judge.ts';
import { memberEndpointOf, memberOf } from './member.ts';
import { madeFor } from './ownership.ts';
import { placedOn } from './placed.ts';
import { type MembershipReceipt, noteSteps } from './receipt.ts';
import { readerOf, TwoSides } from './two-sides.ts';

/** Inputs of a join with both ends reachable. */
export interface JoinInputs {
  readonly membership: Membership;
  readonly hub: Hub;
  readonly type: HubType;
  readonly cluster: WorkerCluster;
  readonly connection: HubConnection;
  readonly open: OpenCluster;
  /** False: the cluster does not answer now; only the hub is maintained. */
  readonly answers: boolean;
  readonly asleep: boolean;
  /** It waits warm: complete, but not opened. */
  readonly warm: boolean;
  /** Its BurstPolicy wants it emptied. */
  readonly emptying: boolean;
  /** Whether it can take work. */
  readonly usable: boolean;
}

/** Progress of a join. */
export interface JoinOutcome {
  readonly verdict: JoinVerdict;
  readonly receipt: MembershipReceipt;
  /** Whether all due credentials were renewed. */
  readonly isWhole: boolean;
  /** A foreign entry that stays foreign: nothing was made. */
  readonly observed?: ForeignEntry;
  /** Absent: no wake hold. */
  readonly awake?: KeptAwake | undefined;
  /** Progress of emptying; absent: not requested. */
  readonly emptying?: EmptyingVerdict | undefined;
}

/** Most rounds per call: identities, credentials, hub, capacity, open; each may enable the next. */
const MOST_ROUNDS = 8;

/** The hub's endpoint for its members. */
export const hubEndpoint = ({ client }: HubConnection, { member }: HubSpec): ApiServerEndpoint => ({
  server: client.server,
  ca: client.ca,
  ...(member?.proxyURL && { proxyURL: member.proxyURL }),
});

/**
 * Advances a join as far as possible now. Idempotent: maintains a joined cluster. Everything is recorded before it is
 * made.
 */
export async function join(
  deps: MembershipDependencies,
  inputs: JoinInputs,
  signal: AbortSignal,
): Promise<JoinOutcome> {
  const { membership, type, connection, open, cluster } = inputs;
  const inside = inputs.answers ? open.client : undefined;
  const key = keyOf(membership);
  const spec = inputs.hub.spec;
  let receipt = await begun(deps, inputs, signal);
  let saved = receipt;
  const sides = new TwoSides(
    { hub: connection.client, member: inside },
    madeFor(deps.gardenID, membership, receipt),
    () => deps.now(),
    true,
  );
  const [hub, reader] = [readerOf(connection.client, signal), inside && readerOf(inside, signal)];
  const save = async () => {
    if (receipt !== saved) await deps.receipts.save(key, receipt, saved, signal);
    saved = receipt;
  };
  const memberAs = (closed: Member['closed']) =>
    memberOf(receipt, hubEndpoint(connection, spec), { cluster, open, profiles: deps.profiles, closed });
  const foreignEntry = await foreignEntryOf(type, hub, { member: () => memberAs('Initializing'), spec, receipt });
  if (foreignEntry && spec.adoption === 'Observe')
    return { verdict: { acting: [], done: [] }, receipt, isWhole: true, observed: foreignEntry };
  if (foreignEntry) {
    receipt = noteOwner(receipt, foreignEntry);
    await save();
  }
  if (receipt.takingOver) {
    receipt = await takeOver(sides, receipt, signal);
    await save();
  }
  receipt = noteParking(
    noteEmptying(receipt, inputs.emptying && type.placedWork !== undefined),
    inputs.asleep,
    deps.now(),
  );
  for (let round = 0; ; round++) {
    const closed: Member['closed'] = !receipt.opened ? 'Initializing' : closedBy(receipt);
    const member = memberAs(closed);
    const identities = type.identities(member, spec).filter(({ on }) => sides.has(on));
    const seen = await type.observe(hub, reader, member, spec);
    const steps = type.join(member, spec, seen);
    const without = identities.filter(({ name }) => !member.credentials[name]).map(({ name }) => name);
    const verdict = judgeJoin(steps, without);
    if (!verdict.at && !receipt.opened && !inputs.warm) {
      // Nothing to wait for: new objects are created open, with one write of the receipt.
      receipt = { ...receipt, opened: true };
      continue;
    }
    const wanted = [
      ...identities.flatMap(identityObjects),
      ...verdict.acting.flatMap(({ apply = [] }) => apply),
    ].filter(({ on }) => sides.has(on));
    receipt = noteSteps(receipt, wanted, verdict.acting);
    await save();
    let changed = false;
    for (const one of wanted) changed = (await sides.apply(one, signal)) || changed;
    const touched = verdict.at ? type.release?.(member, spec, seen) : type.requeue?.(member, spec, seen);
    for (const one of touched ?? []) await sides.touch(one, signal);
    const lacking = dueIdentities(identities, receipt.credentials, deps.now(), (identity) => boundTo(sides, identity));
    const placed = () => placedOn(deps, { membership, spec, type, receipt, open }, member, seen);
    const emptying = receipt.parked === 'Emptying' ? judgeEmptying(placed()) : undefined;
    const awake = receipt.parked === 'FallingAsleep' ? whyAwake(deps, inputs, receipt, member, seen) : undefined;
    if (receipt.parked === 'FallingAsleep' && !awake) receipt = { ...receipt, parked: 'Asleep' };
    else if (awake?.drain || emptying?.reason === 'Draining') {
      const moving = type.drain?.(member, spec, seen).filter(({ on }) => sides.has(on)) ?? [];
      for (const one of moving) changed = (await sides.change(one, signal)) || changed;
    }
    if (lacking.length > 0) receipt = await withCredentials(sides, receipt, lacking, deps.now(), signal);
    else if (!verdict.at && receipt.parked === 'Waking' && inputs.usable && !changed) receipt = woken(receipt);
    const isSettled = !changed && receipt === saved;
    if (isSettled || round >= MOST_ROUNDS) {
      // Persists what the next round would have written.
      await save();
      return { verdict, receipt, isWhole: lacking.length === 0, awake, emptying };
    }
  }
}

/** The receipt with due credentials replaced; the same object without changes. */
async function withCredentials(
  sides: TwoSides,
  receipt: MembershipReceipt,
  lacking: readonly Identity[],
  now: Date,
  signal: AbortSignal,
): Promise<MembershipReceipt> {
  const credentials = await renewCredentials(sides, lacking, receipt.credentials, now, signal);
  return JSON.stringify(credentials) === JSON.stringify(receipt.credentials) ? receipt : { ...receipt, credentials };
}

function woken(receipt: MembershipReceipt): MembershipReceipt {
  const { parked: _, ...awake } = receipt;
  return awake;
}

/** Why a hub keeps a cluster awake, and whether it moves work away now. */
function whyAwake(
  deps: MembershipDependencies,
  { membership, hub, type, cluster, open }: JoinInputs,
  receipt: MembershipReceipt,
  member: Member,
  seen: unknown,
): KeptAwake | undefined {
  const { spec } = hub;
  const placed = placedOn(deps, { membership, spec, type, receipt, open }, member, seen);
  const since = Date.parse(cluster.status?.hibernation?.since ?? '') || 0;
  const ends = new Date(since + drainTimeoutMs(spec));
  const why = judgeSleep({ ...placed, ends }, deps.now());
  return why === undefined ? undefined : { why, drain: placed.noRoom === undefined };
}

/**
 * The receipt of a cluster that falls asleep or wakes; the same object otherwise. Pure. On wake-up, rotate all tokens
 * before the cluster accepts work: old ones may have expired or leaked.
 */
export function noteParking(receipt: MembershipReceipt, asleep: boolean, now: Date): MembershipReceipt {
  const sleeps = receipt.parked === 'Asleep' || receipt.parked === 'FallingAsleep';
  if (!receipt.opened || asleep === sleeps) return receipt;
  // Nothing was placed on it since it woke.
  if (asleep) return { ...receipt, parked: receipt.parked === 'Waking' ? 'Asleep' : 'FallingAsleep' };
  const credentials = receipt.credentials.map((one) => (one.renewAt ? { ...one, renewAt: rfc3339(now) } : one));
  return { ...receipt, parked: 'Waking', credentials };
}

/** The receipt of a cluster that is to be emptied, or no longer; the same object without a change. Pure. */
export function noteEmptying(receipt: MembershipReceipt, isEmptied: boolean): MembershipReceipt {
  if (isEmptied) return receipt.opened && !receipt.parked ? { ...receipt, parked: 'Emptying' } : receipt;
  if (receipt.parked !== 'Emptying') return receipt;
  const { parked: _, ...open } = receipt;
  return open;
}

function closedBy({ parked }: MembershipReceipt): Member['closed'] {
  return parked === 'Emptying' ? 'Leaving' : parked && 'Asleep';
}

/** Receipt of this join: the stored one, or a new one that is not stored yet. */
async function begun(
  deps: MembershipDependencies,
  { membership, hub, type, connection, cluster, open, answers }: JoinInputs,
  signal: AbortSignal,
): Promise<MembershipReceipt> {
  const { namespace = '', name, uid = '' } = membership.metadata;
  const known = deps.receipts.get(keyOf(membership)) ?? (await deps.receipts.read(keyOf(membership), signal));
  const where = { namespace, name: cluster.metadata.name };
  const id = answers ? await memberIdentity(open, signal) : undefined;
  const ofHub = { name: hub.metadata.name, identity: connection.identity, spec: hub.spec };
  if (known) {
    if (
      known.membership.uid !== uid ||
      (id !== undefined && known.member.id !== id) ||
      known.hub.identity !== connection.identity
    )
      throw configurationProblem(
        `the receipt of Membership ${namespace}/${name} is of another hub or cluster than it is now`,
        'Delete the Membership: what was made before is taken away, and a new one is made.',
      );
    const endpoint = memberEndpointOf(hub.spec, where, open);
    // Stored together with the next note.
    return deps.receipts.madeFrom({ ...known, hub: ofHub, member: { ...known.member, endpoint } }, known);
  }
  if (id === undefined) throw new Error('a join begins only when the cluster answers');
  const first: MembershipReceipt = {
    membership: { namespace, name, uid },
    cluster: where.name,
    hub: ofHub,
    member: {
      name: memberName(namespace, where.name, type.nameLimit),
      id,
      endpoint: memberEndpointOf(hub.spec, where, open),
    },
    places: [],
    credentials: [],
  };
  return deps.receipts.madeFrom(first, undefined);
}

const identities = new WeakMap<OpenCluster, string>();

/** Cached per connection: a cluster's identity cannot change during one. */
async function memberIdentity(open: OpenCluster, signal: AbortSignal): Promise<string> {
  const known = identities.get(open) ?? (await seedIdentityOf(open.client, signal));
  identities.set(open, known);
  return known;
}
