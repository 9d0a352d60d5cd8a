import type { BurstPolicySpec } from '../../api/burstpolicy.ts';
import { isTimeZone, lastTime, nextTime, parseCron } from '../../api/cron.ts';
import { parseDuration } from '../../api/duration.ts';
import type { Peak } from '../../burst/clusters/model.ts';

/**
 * Current and next peaks of a schedule, followed by the permanent minimum, for which clusters of peaks count too. Pure.
 * @param now milliseconds since the epoch
 */
export function peaksOf(
  { schedule = [], minimumClusters = 0 }: Pick<BurstPolicySpec, 'schedule' | 'minimumClusters'>,
  now: number,
): Peak[] {
  const least: Peak = {
    name: '',
    candidate: undefined,
    clusters: minimumClusters,
    from: 0,
    until: Number.POSITIVE_INFINITY,
    isMinimum: true,
  };
  const peaks = schedule.flatMap(
    ({ name, start, duration, timeZone = 'UTC', leadTime, candidate, clusters }): Peak[] => {
      const cron = parseCron(start);
      const length = parseDuration(duration);
      // The CRD's pattern also accepts backward ranges.
      if (!cron || length === undefined || !isTimeZone(timeZone)) return [];
      const lead = leadTime === undefined ? 0 : (parseDuration(leadTime) ?? 0);
      const at = new Date(now + lead);
      const last = lastTime(cron, timeZone, at);
      const isOn = last !== undefined && now < +last + length;
      const begin = isOn ? last : nextTime(cron, timeZone, at);
      return begin ? [{ name, candidate, clusters, from: +begin - lead, until: +begin + length }] : [];
    },
  );
  return minimumClusters > 0 ? [...peaks, least] : peaks;
}
