import { rfc3339 } from '../../api/conditions.ts';
import { configurationProblem } from '../../api/errors.ts';
import type { Hub, HubSpec } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { OpenCluster } from '../../clusters/open-clusters.ts';
import { identityOf } from '../../clusters/seed-access.ts';
import type { Endpoint, ForeignEntry, HubType, Identity, Member } from '../../hubs/contract.ts';
import { memberName } from '../../hubs/member-name.ts';
import { keyOf } from '../../kube/resources.ts';
import { foreignEntryOf, owning, takeOver } from './adoption.ts';
import { boundTo, due, renewed } from './credentials.ts';
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
import { endpointOf, memberOf } from './member.ts';
import { madeFor } from './ownership.ts';
import { placedOn } from './placed.ts';
import { type MembershipReceipt, noting } from './receipt.ts';
import { readerOf, TwoSides } from './two-sides.ts';

/** Both ends of a join that can be reached. */
export interface JoinInputs {
  readonly membership: Membership;
  readonly hub: Hub;
  readonly type: HubType;
  readonly cluster: WorkerCluster;
  readonly connection: HubConnection;
  readonly open: OpenCluster;
  /** False: it does not answer for the moment; only what is in the hub is seen to. */
  readonly answers: boolean;
  readonly asleep: boolean;
  /** It waits warm: all is made, and it is not opened for work. */
  readonly warm: boolean;
  /** Its BurstPolicy wants its work moved away. */
  readonly emptying: boolean;
  /** Whether it can take work. */
  readonly usable: boolean;
}

/** How far a join has come. */
export interface JoinOutcome {
  readonly verdict: JoinVerdict;
  readonly receipt: MembershipReceipt;
  /** Whether all credentials could be had that are to be made or replaced. */
  readonly isWhole: boolean;
  /** Somebody else has put the cluster into the hub, and it is to stay theirs: nothing was made. */
  readonly observed?: ForeignEntry;
  /** Absent: nothing keeps it awake. */
  readonly awake?: KeptAwake | undefined;
  /** How far it is emptied; absent: it is not to be. */
  readonly emptying?: EmptyingVerdict | undefined;
}

/** Identities, credentials, hub, capacity, open: each round may make the next one possible. */
const MOST_ROUNDS = 8;

/** Where the hub is, as its members reach it. */
export const hubEndpoint = ({ client }: HubConnection, { member }: HubSpec): Endpoint => ({
  server: client.server,
  ca: client.ca,
  ...(member?.proxyURL && { proxyURL: member.proxyURL }),
});

/**
 * Takes a join as far as it goes now. Idempotent: of a cluster that has joined it sees to it that all is as it should be. What is made is
 * written down before.
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
    receipt = owning(receipt, foreignEntry);
    await save();
  }
  if (receipt.takingOver) {
    receipt = await takeOver(sides, receipt, signal);
    await save();
  }
  receipt = parked(emptied(receipt, inputs.emptying && type.placedWork !== undefined), inputs.asleep, deps.now());
  for (let round = 0; ; round++) {
    const closed: Member['closed'] = !receipt.opened ? 'Initializing' : closedBy(receipt);
    const member = memberAs(closed);
    const identities = type.identities(member, spec).filter(({ on }) => sides.has(on));
    const seen = await type.observe(hub, reader, member, spec);
    const steps = type.join(member, spec, seen);
    const without = identities.filter(({ name }) => !member.credentials[name]).map(({ name }) => name);
    const verdict = judgeJoin(steps, without);
    if (!verdict.at && !receipt.opened && !inputs.warm) {
      // Nothing is left to wait for: what is not there yet is made open at once, and both are one write of the receipt.
      receipt = { ...receipt, opened: true };
      continue;
    }
    const wanted = [
      ...identities.flatMap(identityObjects),
      ...verdict.acting.flatMap(({ apply = [] }) => apply),
    ].filter(({ on }) => sides.has(on));
    receipt = noting(receipt, wanted, verdict.acting);
    await save();
    let changed = false;
    for (const one of wanted) changed = (await sides.apply(one, signal)) || changed;
    const touched = verdict.at ? type.release?.(member, spec, seen) : type.requeue?.(member, spec, seen);
    for (const one of touched ?? []) await sides.touch(one, signal);
    const lacking = due(identities, receipt.credentials, deps.now(), (identity) => boundTo(sides, identity));
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
      // What the next round would have written down with its own.
      await save();
      return { verdict, receipt, isWhole: lacking.length === 0, awake, emptying };
    }
  }
}

/** The receipt with credentials in place of those that are due; the very same where none has changed. */
async function withCredentials(
  sides: TwoSides,
  receipt: MembershipReceipt,
  lacking: readonly Identity[],
  now: Date,
  signal: AbortSignal,
): Promise<MembershipReceipt> {
  const credentials = await renewed(sides, lacking, receipt.credentials, now, signal);
  return JSON.stringify(credentials) === JSON.stringify(receipt.credentials) ? receipt : { ...receipt, credentials };
}

function woken(receipt: MembershipReceipt): MembershipReceipt {
  const { parked: _, ...awake } = receipt;
  return awake;
}

/** Why a hub keeps a cluster awake that is to sleep, and whether it is to move work away now. */
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
 * The receipt of a cluster that falls asleep or wakes; the same object where it does neither. Pure. Who wakes has all tokens replaced before
 * work comes: those from before may have ended, or been seen by somebody while nobody looked.
 */
export function parked(receipt: MembershipReceipt, asleep: boolean, now: Date): MembershipReceipt {
  const sleeps = receipt.parked === 'Asleep' || receipt.parked === 'FallingAsleep';
  if (!receipt.opened || asleep === sleeps) return receipt;
  // Since it woke nothing was placed on it.
  if (asleep) return { ...receipt, parked: receipt.parked === 'Waking' ? 'Asleep' : 'FallingAsleep' };
  const credentials = receipt.credentials.map((one) => (one.renewAt ? { ...one, renewAt: rfc3339(now) } : one));
  return { ...receipt, parked: 'Waking', credentials };
}

/** The receipt of a cluster that is to be emptied, or is not any more; the same object where nothing changes. Pure. */
export function emptied(receipt: MembershipReceipt, isEmptied: boolean): MembershipReceipt {
  if (isEmptied) return receipt.opened && !receipt.parked ? { ...receipt, parked: 'Emptying' } : receipt;
  if (receipt.parked !== 'Emptying') return receipt;
  const { parked: _, ...open } = receipt;
  return open;
}

function closedBy({ parked }: MembershipReceipt): Member['closed'] {
  return parked === 'Emptying' ? 'Leaving' : parked && 'Asleep';
}

/** The receipt that this join goes by: as it was written, or a new one that is not written yet. */
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
    const endpoint = endpointOf(hub.spec, where, open);
    // Not written for its own sake: it goes with whatever is noted next.
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
      endpoint: endpointOf(hub.spec, where, open),
    },
    places: [],
    credentials: [],
  };
  return deps.receipts.madeFrom(first, undefined);
}

const identities = new WeakMap<OpenCluster, string>();

/** Asked once for each connection: a cluster does not become another one while it lasts. */
async function memberIdentity(open: OpenCluster, signal: AbortSignal): Promise<string> {
  const known = identities.get(open) ?? (await identityOf(open.client, signal));
  identities.set(open, known);
  return known;
}
