import type { Problem } from '../../../providers/contract.ts';
import { saysKept } from '../../api/acted.ts';
import { rfc3339 } from '../../api/conditions.ts';
import { type Cron, isTimeZone, lastTime, nextTime, parseCron } from '../../api/cron.ts';
import type { WorkerCluster, WorkerClusterStatus } from '../../api/workercluster.ts';
import type { KnownSleepOrder, SleepOrder } from '../../capacity/sleep-order.ts';
import { problem } from '../spec-problems.ts';

/** Whether a cluster is to sleep, and when that may change by itself. */
interface Sleep {
  readonly asleep: boolean;
  /** For status: by it the next decision knows what this one has seen. Absent: nobody says anything about sleep. */
  readonly status: WorkerClusterStatus['hibernation'];
  /** The next time of its schedules. */
  readonly next: Date | undefined;
  /** Who else than the spec has decided it; absent: nobody. */
  readonly order?: SleepOrder;
}

type Schedule = NonNullable<NonNullable<WorkerCluster['spec']['hibernation']>['schedules']>[number];

/**
 * Whether the cluster is to sleep now. An order of the operator holds until it is taken back, whatever schedules say; who changes `enabled` after
 * it has the last word: a person who is there knows more than a policy. Pure.
 * @param given what is stored; `unknown`: what held before goes on
 */
export function sleepOf(cluster: WorkerCluster, now: Date, given: KnownSleepOrder = 'none'): Sleep {
  const known = cluster.status?.hibernation;
  const said = sleepBySpec(cluster, now);
  const before = known?.order && { asleep: known.asleep, at: known.since, by: known.order.by, why: known.order.why };
  const order = given === 'unknown' ? before : given === 'none' ? undefined : given;
  const saidAt = said.status?.enabledAt;
  if (!order || (saidAt !== undefined && Date.parse(saidAt) > Date.parse(order.at))) return said;
  const { asleep, at, by, why } = order;
  const otherwise = { otherwise: said.asleep, otherwiseSince: said.status?.since ?? at };
  return {
    asleep,
    status: { ...said.status, asleep, since: at, order: { by, why, ...otherwise } },
    next: said.next,
    order,
  };
}

/** Whether `enabled` was told to be kept and not acted on, and is as it was: what ran all the while goes on until somebody changes it. */
export const keepsEnabled = ({ spec, status }: Pick<WorkerCluster, 'spec' | 'status'>): boolean =>
  spec.hibernation?.enabled === true &&
  status?.hibernation?.asleep !== true &&
  saysKept(status?.conditions, 'SpecAccepted', 'hibernation.enabled');

/**
 * As the spec has it: what was said last holds, be it by a schedule or by somebody who changed `enabled`. So
 * who wakes a cluster by hand has it until its schedule next says otherwise, as in Gardener, whose controller writes `enabled`
 * itself; here the spec stays the user's.
 */
function sleepBySpec({ spec: { hibernation }, status, metadata }: WorkerCluster, now: Date): Sleep {
  if (!hibernation) return { asleep: false, status: undefined, next: undefined };
  const before = withoutOrder(status?.hibernation);
  const { enabled } = hibernation;
  // An operator before this one did not act on it: what ran all the while does not end because of a newer one.
  const isKept = before === undefined && saysKept(status?.conditions, 'SpecAccepted', 'hibernation');
  const isSaid = before === undefined || before.enabled !== enabled;
  // Times that came before the cluster, or before the word of somebody, are past.
  const since =
    before === undefined && !isKept
      ? new Date(metadata.creationTimestamp ?? now)
      : isSaid
        ? now
        : new Date(before.since);
  const said = isSaid ? { asleep: !isKept && (enabled ?? false), since } : { asleep: before.asleep, since };
  const times = (hibernation.schedules ?? []).flatMap((schedule) => [
    ...timesOf(schedule, schedule.start, true, now),
    ...timesOf(schedule, schedule.end, false, now),
  ]);
  const past = times.filter(({ last }) => last !== undefined && last > since);
  // Of a start and an end at the same minute the end wins: a cluster that wakes for nothing is the lesser evil.
  const latest = past.sort((a, b) => +a.last! - +b.last! || Number(b.asleep) - Number(a.asleep)).at(-1);
  const { asleep, since: at } = latest ? { asleep: latest.asleep, since: latest.last! } : said;
  const coming = times.flatMap(({ next }) => (next ? [+next] : []));
  const enabledAt = before !== undefined && isSaid ? rfc3339(now) : before?.enabledAt;
  return {
    asleep,
    status: {
      asleep,
      since: rfc3339(at),
      ...(enabled !== undefined && { enabled }),
      ...(enabledAt !== undefined && { enabledAt }),
    },
    next: coming.length > 0 ? new Date(Math.min(...coming)) : undefined,
  };
}

/** What was seen of the spec. */
function withoutOrder(known: WorkerClusterStatus['hibernation']): typeof known {
  if (!known?.order) return known;
  const { order, ...others } = known;
  return { ...others, asleep: order.otherwise, since: order.otherwiseSince };
}

/** Who else than the spec has decided about its sleep, for the end of a sentence. */
export const toldBy = (order: SleepOrder | undefined): string =>
  order ? `; ${order.by} ${order.asleep ? 'put it to sleep' : 'keeps it awake'}: ${order.why}` : '';

function timesOf({ location = 'UTC' }: Schedule, text: string | undefined, asleep: boolean, now: Date) {
  const cron: Cron | undefined = text === undefined ? undefined : parseCron(text);
  if (!cron || !isTimeZone(location)) return [];
  return [{ asleep, last: lastTime(cron, location, now), next: nextTime(cron, location, now) }];
}

/** What of the schedules cannot be understood. */
export function hibernationProblems({ spec: { hibernation } }: WorkerCluster): Problem[] {
  return (hibernation?.schedules ?? []).flatMap((schedule, index) => {
    const field = `hibernation.schedules[${index}]`;
    const wrong = (['start', 'end'] as const).filter((end) => {
      const text = schedule[end];
      return text !== undefined && parseCron(text) === undefined;
    });
    const { location = 'UTC' } = schedule;
    return [
      ...wrong.map((end) =>
        problem(`${field}.${end}`, `"${schedule[end]}" is no cron expression of five fields such as "0 20 * * 1-5"`),
      ),
      ...(isTimeZone(location)
        ? []
        : [problem(`${field}.location`, `there is no time zone "${location}": write one such as Europe/Berlin`)]),
    ];
  });
}
