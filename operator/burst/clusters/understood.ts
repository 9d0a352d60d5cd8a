import { z } from 'zod';
import { parseMoney } from '../../cost/money.ts';

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

const purchase = z.looseObject({
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

const wake = z.looseObject({
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
});

const rest = z.looseObject({
  failures: count,
  until: time,
  why: z.string(),
  revision: z.string().optional(),
  orderedAt: time.optional(),
  unusedSeconds: z.number().nonnegative().optional(),
});

/** The form of a receipt of a BurstPolicy. A later Coppice may add fields: they are kept as they are. */
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
 * Why what is stored as the receipt of a BurstPolicy cannot be acted on; undefined: it can. What it says of money that runs would otherwise be
 * taken for nothing. Pure.
 */
export function whyNotUnderstood(stored: unknown): string | undefined {
  const issue = receipt.safeParse(stored).error?.issues[0];
  return issue && `${issue.path.join('.') || 'it'}: ${issue.message}`;
}
