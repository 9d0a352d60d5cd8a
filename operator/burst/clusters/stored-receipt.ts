import { z } from 'zod';
import { parseMoney } from '../../cost/money.ts';
import {
  type ClusterPhase,
  type ClusterPurchase,
  clusterWaitOf,
  emptyingSinceOf,
  haveCome,
  isUseless,
  type JoinedPhase,
  joinedAtOf,
  joinedPhase,
  type NodesPurchase,
  purchaseHasEnded,
  rejoinedAt,
  type SeenWork,
  type StandingPhase,
  type WakePurchase,
} from './purchases.ts';
import { type BurstReceipt, clustersIn, nodesIn, wakesIn } from './receipt.ts';

/**
 * The stored form of receipts. Earlier and later versions of Coppice read and write it: its fields never change, and
 * unknown fields are kept.
 */

/** Fields with the same name and meaning in the stored form. */
const SAME_RECEIPT = [
  'policy',
  'next',
  'spent',
  'rests',
  'startups',
  'wakings',
  'lastOut',
  'lastIn',
  'decisions',
] as const;
const SAME_CLUSTER = [
  'number',
  'name',
  'candidate',
  'at',
  'sources',
  'nodes',
  'mostNodes',
  'granted',
  'most',
  'rate',
  'rateSince',
  'cost',
  'billing',
  'uid',
  'wokenAt',
  'revision',
] as const;
const SAME_NODES = [
  'cluster',
  'uid',
  'pool',
  'entry',
  'at',
  'sources',
  'from',
  'to',
  'nodes',
  'each',
  'rate',
  'rateSince',
] as const;
const SAME_WAKE = ['cluster', 'uid', 'entry', 'at', 'sources', 'most', 'rate', 'rateSince', 'billing'] as const;

/** Stored ClusterPurchase. Money as decimals, times as RFC 3339. */
interface StoredCluster extends Pick<ClusterPurchase, (typeof SAME_CLUSTER)[number]> {
  /** The cluster waits, or will. */
  readonly warm?: true;
  /** The cluster waits asleep, or will. */
  readonly sleeps?: true;
  readonly awake?: string;
  readonly warmAt?: string;
  readonly joinedAt?: string;
  readonly worked?: true;
  readonly workedAt?: string;
  readonly useless?: true;
  readonly emptyingSince?: string;
  readonly leftAlone?: { readonly failures: number; readonly until: string };
  readonly leaving?: true;
  readonly leavingAt?: string;
}

/** Stored NodesPurchase. */
interface StoredGrowth extends Pick<NodesPurchase, (typeof SAME_NODES)[number]> {
  readonly came?: true;
  readonly failed?: true;
}

/** Stored WakePurchase. */
interface StoredWake extends Pick<WakePurchase, (typeof SAME_WAKE)[number]> {
  readonly joinedAt?: string;
  readonly worked?: true;
  readonly workedAt?: string;
  readonly ended?: true;
}

/** Stored BurstReceipt. */
export interface StoredReceipt extends Pick<BurstReceipt, (typeof SAME_RECEIPT)[number]> {
  readonly purchases: readonly StoredCluster[];
  /** Absent: none, as in older receipts. */
  readonly growths?: readonly StoredGrowth[];
  /** Absent: none, as in older receipts. */
  readonly wakes?: readonly StoredWake[];
}

const money = z.string().refine((text) => {
  try {
    return parseMoney(text) >= 0n;
  } catch {
    return false;
  }
}, 'is no amount of money');
const time = z.string().refine((text) => !Number.isNaN(Date.parse(text)), 'is no time');
const count = z.number().int().nonnegative();
const yes = z.literal(true).optional();
const texts = z.array(z.string());
const billing = z.looseObject({ machines: z.looseObject({}), controlPlane: z.looseObject({}).optional(), fee: money });
const times = z.record(z.string(), z.array(z.number().nonnegative()));

const purchase = z
  .looseObject({
    number: count,
    name: z.string().min(1),
    candidate: z.string(),
    at: time,
    sources: texts,
    nodes: z.record(z.string(), count),
    mostNodes: count.optional(),
    granted: z.record(z.string(), z.looseObject({ nodes: count, each: money, raisedAt: time.optional() })).optional(),
    most: money,
    rate: money,
    rateSince: time,
    cost: money.optional(),
    billing: billing.optional(),
    uid: z.string().optional(),
    warm: yes,
    sleeps: yes,
    awake: money.optional(),
    wokenAt: time.optional(),
    revision: z.string().optional(),
    warmAt: time.optional(),
    joinedAt: time.optional(),
    worked: yes,
    workedAt: time.optional(),
    useless: yes,
    emptyingSince: time.optional(),
    leftAlone: z.looseObject({ failures: count, until: time }).optional(),
    leaving: yes,
    leavingAt: time.optional(),
  })
  .superRefine((one, context) => {
    const refuse = (field: keyof StoredCluster, message: string) =>
      context.addIssue({ code: 'custom', path: [field], message });
    if (one.sleeps && !one.warm) refuse('sleeps', 'contradicts warm, which is absent');
    if (one.sleeps && one.joinedAt !== undefined) refuse('joinedAt', 'contradicts sleeps');
    for (const field of ['emptyingSince', 'leftAlone', 'useless'] as const)
      if (one[field] !== undefined && (one.warm || one.joinedAt === undefined))
        refuse(field, one.warm ? 'contradicts warm' : 'contradicts joinedAt, which is absent');
    if (one.workedAt !== undefined && !one.worked) refuse('workedAt', 'contradicts worked, which is absent');
    if (one.leavingAt !== undefined && !one.leaving) refuse('leavingAt', 'contradicts leaving, which is absent');
  });

const growth = z.looseObject({
  cluster: z.string().min(1),
  uid: z.string(),
  pool: z.string(),
  entry: z.string().optional(),
  at: time,
  sources: texts,
  from: count,
  to: count,
  nodes: count,
  each: money,
  rate: money,
  rateSince: time,
  came: yes,
  failed: yes,
});

const wake = z
  .looseObject({
    cluster: z.string().min(1),
    uid: z.string(),
    entry: z.string(),
    at: time,
    sources: texts,
    most: money,
    rate: money,
    rateSince: time,
    billing: billing.optional(),
    joinedAt: time.optional(),
    worked: yes,
    workedAt: time.optional(),
    ended: yes,
  })
  .superRefine((one, context) => {
    if (one.workedAt !== undefined && !one.worked)
      context.addIssue({ code: 'custom', path: ['workedAt'], message: 'contradicts worked, which is absent' });
  });

const rest = z.looseObject({
  failures: count,
  until: time,
  why: z.string(),
  revision: z.string().optional(),
  orderedAt: time.optional(),
  unusedSeconds: z.number().nonnegative().optional(),
});

/** Schema of a stored receipt. Fields of later Coppice versions are kept. */
const receipt = z.looseObject({
  policy: z.looseObject({ namespace: z.string(), name: z.string(), uid: z.string() }),
  next: count,
  purchases: z.array(purchase),
  growths: z.array(growth).optional(),
  wakes: z.array(wake).optional(),
  spent: z.record(z.string(), money),
  rests: z.record(z.string(), rest),
  startups: times.optional(),
  wakings: times.optional(),
  lastOut: time.optional(),
  lastIn: time.optional(),
  decisions: z.array(z.looseObject({ at: time, action: z.string(), why: z.string() })),
});

/**
 * Why a stored receipt cannot be used; undefined: it can. Acting on a misread receipt would lose track of running
 * costs. Pure.
 */
export function whyNotUnderstood(stored: unknown): string | undefined {
  const issue = receipt.safeParse(stored).error?.issues[0];
  return issue && `${issue.path.join('.') || 'it'}: ${issue.message}`;
}

/** The fields that are present. */
const pick = <Form extends object, Field extends keyof Form>(form: Form, fields: readonly Field[]): Pick<Form, Field> =>
  Object.fromEntries(fields.flatMap((field) => (form[field] === undefined ? [] : [[field, form[field]]]))) as Pick<
    Form,
    Field
  >;

/**
 * Fields in the order in which they were read, so that unchanged content is stored byte for byte; includes fields of
 * later versions.
 * @param stored what was read. Absent: nothing
 */
function written<Form extends object>(fields: Form, stored: object | undefined, { shape }: { shape: object }): Form {
  const before = Object.entries(stored ?? {}).flatMap(([field, value]): [string, unknown][] => {
    if (field in fields) return [[field, fields[field as keyof Form]]];
    return field in shape ? [] : [[field, value]];
  });
  return { ...Object.fromEntries(before), ...fields };
}

/** @param stored content that whyNotUnderstood accepts */
export const readReceipt = (stored: StoredReceipt): BurstReceipt => ({
  ...pick(stored, SAME_RECEIPT),
  purchases: [
    ...stored.purchases.map(readCluster),
    ...(stored.growths ?? []).map(readNodes),
    ...(stored.wakes ?? []).map(readWake),
  ],
  stored,
});

/** The stored form of a receipt. */
export function storedReceipt(from: BurstReceipt): StoredReceipt {
  const before = from.stored as StoredReceipt | undefined;
  const growths = nodesIn(from).map(storedNodes);
  const wakes = wakesIn(from).map(storedWake);
  const fields: StoredReceipt = {
    ...pick(from, SAME_RECEIPT),
    purchases: clustersIn(from).map(storedCluster),
    ...((growths.length > 0 || before?.growths) && { growths }),
    ...((wakes.length > 0 || before?.wakes) && { wakes }),
  };
  return written(fields, before, receipt);
}

const readCluster = (stored: StoredCluster): ClusterPurchase => ({
  kind: 'cluster',
  ...pick(stored, SAME_CLUSTER),
  phase: readPhase(stored),
  ...(stored.awake !== undefined && { awakeRate: stored.awake }),
  ...(stored.warmAt !== undefined && { readyAt: stored.warmAt }),
  ...readWork(stored),
  stored,
});

function readPhase(stored: StoredCluster): ClusterPhase {
  const before = readStanding(stored);
  const { leaving, leavingAt: at } = stored;
  return leaving ? { name: 'Leaving', before, ...(at !== undefined && { at }) } : before;
}

function readStanding(stored: StoredCluster): StandingPhase {
  const { warm, sleeps, joinedAt, useless, leftAlone, emptyingSince: since } = stored;
  if (sleeps) return { name: 'Asleep' };
  if (warm) return { name: 'Warm', ...(joinedAt !== undefined && { joinedAt }) };
  if (joinedAt === undefined) return { name: 'Coming' };
  const joined: JoinedPhase = {
    name: 'Joined',
    at: joinedAt,
    ...(useless && { isUseless: true }),
    ...(leftAlone && { leftAlone }),
  };
  return since === undefined ? joined : { name: 'Emptying', since, before: joined };
}

function storedCluster(from: ClusterPurchase): StoredCluster {
  const { phase, awakeRate, readyAt, work, stored } = from;
  const [wait, joinedAt, emptyingSince] = [clusterWaitOf(from), joinedAtOf(from), emptyingSinceOf(from)];
  const leftAlone = joinedPhase(from)?.leftAlone;
  const fields: StoredCluster = {
    ...pick(from, SAME_CLUSTER),
    ...(wait && { warm: true }),
    ...(wait === 'asleep' && { sleeps: true }),
    ...(awakeRate !== undefined && { awake: awakeRate }),
    ...(readyAt !== undefined && { warmAt: readyAt }),
    ...(joinedAt !== undefined && { joinedAt }),
    ...storedWork(work),
    ...(isUseless(from) && { useless: true }),
    ...(emptyingSince !== undefined && { emptyingSince }),
    ...(leftAlone && { leftAlone }),
    ...(phase.name === 'Leaving' && { leaving: true, ...(phase.at !== undefined && { leavingAt: phase.at }) }),
  };
  return written(fields, stored, purchase);
}

const readNodes = (stored: StoredGrowth): NodesPurchase => ({
  kind: 'nodes',
  ...pick(stored, SAME_NODES),
  phase: stored.came ? (stored.failed ? 'CameLate' : 'Came') : stored.failed ? 'Failed' : 'Coming',
  stored,
});

const storedNodes = (from: NodesPurchase): StoredGrowth =>
  written(
    {
      ...pick(from, SAME_NODES),
      ...(haveCome(from) && { came: true }),
      ...((from.phase === 'Failed' || from.phase === 'CameLate') && { failed: true }),
    },
    from.stored,
    growth,
  );

function readWake(stored: StoredWake): WakePurchase {
  const before = stored.joinedAt === undefined ? WAKING : ({ name: 'Joined', at: stored.joinedAt } as const);
  return {
    kind: 'wake',
    ...pick(stored, SAME_WAKE),
    phase: stored.ended ? { name: 'Ended', before } : before,
    ...readWork(stored),
    stored,
  };
}

const WAKING = { name: 'Waking' } as const;

function storedWake(from: WakePurchase): StoredWake {
  const joinedAt = rejoinedAt(from);
  const fields: StoredWake = {
    ...pick(from, SAME_WAKE),
    ...(joinedAt !== undefined && { joinedAt }),
    ...storedWork(from.work),
    ...(purchaseHasEnded(from) && { ended: true }),
  };
  return written(fields, from.stored, wake);
}

const readWork = ({ worked, workedAt: at }: Pick<StoredWake, 'worked' | 'workedAt'>): { work?: SeenWork } =>
  worked ? { work: at === undefined ? {} : { at } } : {};

const storedWork = (work: SeenWork | undefined): Pick<StoredWake, 'worked' | 'workedAt'> =>
  work ? { worked: true, ...(work.at !== undefined && { workedAt: work.at }) } : {};
