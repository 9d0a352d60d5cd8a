import type { Problem } from '../../../providers/contract.ts';
import { saysKept } from '../../api/acted.ts';
import { rfc3339 } from '../../api/conditions.ts';
import { type Cron, isTimeZone, lastTime, nextTime, parseCron } from '../../api/cron.ts';
import type { WorkerCluster, WorkerClusterStatus } from '../../api/workercluster.ts';
import type { KnownSleepOrder, SleepOrder } from '../../capacity/sleep-order.ts';
import { problem } from '../spec-problems.ts';

/** Whether a cluster must sleep, and the next change by time. */
interface Sleep {
  readonly asleep: boolean;
  /** For the status, from which the next decision continues. Absent: no hibernation settings. */
  readonly status: WorkerClusterStatus['hibernation'];
  /** Next time of its schedules. */
  readonly next: Date | undefined;
  /** The operator's order that decided it; absent: none. */
  readonly order?: SleepOrder;
}

type Schedule = NonNullable<NonNullable<WorkerCluster['spec']['hibernation']>['schedules']>[number];

/**
 * Whether the cluster must sleep now. An order of the operator holds until withdrawn, whatever schedules say; a later
 * change of `enabled` overrides it, because a person knows more than a policy. Pure.
 * @param given the stored order; `unknown`: the last decision continues
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

/**
 * Whether an older operator kept `enabled` without effect and it is unchanged since: a cluster that kept running stays
 * awake until somebody changes it.
 */
export const keepsEnabled = ({ spec, status }: Pick<WorkerCluster, 'spec' | 'status'>): boolean =>
  spec.hibernation?.enabled === true &&
  status?.hibernation?.asleep !== true &&
  saysKept(status?.conditions, 'SpecAccepted', 'hibernation.enabled');

/**
 * Sleep by the spec: the latest event wins, a schedule's time or a change of `enabled`. Waking a cluster by hand lasts
 * until its next scheduled time, as in Gardener, whose controller writes `enabled`; here the spec stays the user's.
 */
function sleepBySpec({ spec: { hibernation }, status, metadata }: WorkerCluster, now: Date): Sleep {
  if (!hibernation) return { asleep: false, status: undefined, next: undefined };
  const before = withoutOrder(status?.hibernation);
  const { enabled } = hibernation;
  // An older operator did not act on it: a running cluster must not stop because of an upgrade.
  const isKept = before === undefined && saysKept(status?.conditions, 'SpecAccepted', 'hibernation');
  const isSaid = before === undefined || before.enabled !== enabled;
  // Times before the cluster's creation, or before the last change of `enabled`, do not count.
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
  // For a start and an end in the same minute the end wins: waking for nothing is the lesser harm.
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

/** The last seen state of the spec. */
function withoutOrder(known: WorkerClusterStatus['hibernation']): typeof known {
  if (!known?.order) return known;
  const { order, ...others } = known;
  return { ...others, asleep: order.otherwise, since: order.otherwiseSince };
}

/** Who else decided about its sleep, as the end of a sentence. */
export const sleepToldBy = (order: SleepOrder | undefined): string =>
  order ? `; ${order.by} ${order.asleep ? 'put it to sleep' : 'keeps it awake'}: ${order.why}` : '';

function timesOf({ location = 'UTC' }: Schedule, text: string | undefined, asleep: boolean, now: Date) {
  const cron: Cron | undefined = text === undefined ? undefined : parseCron(text);
  if (!cron || !isTimeZone(location)) return [];
  return [{ asleep, last: lastTime(cron, location, now), next: nextTime(cron, location, now) }];
}

/** Invalid schedules. */
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
