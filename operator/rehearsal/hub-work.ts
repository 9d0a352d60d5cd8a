import type { HubWork } from '../controllers/burst/hub-work.ts';
import type { Heard } from '../controllers/burst/world.ts';
import { customKinds } from './kinds.ts';
import type { Simulation } from './state.ts';
import type { WorkGroup } from './work-model.ts';

/** What the hub has no place for: replicas of a workload together, jobs by the moment in which they came. */
export function hubSays(simulation: Simulation): Heard {
  const { groups } = simulation.work!;
  const kindOf = customKinds(simulation);
  const waits = [...groups.values()].filter(({ cluster, waitingCount }) => cluster === undefined && waitingCount > 0);
  const parts = waits.flatMap((group) =>
    sourcesOf(group).map(({ source, count }) => ({
      source,
      namespace: 'default',
      count,
      asked: {
        cpu: group.size.cpu,
        memory: group.size.memory,
        ...(group.size.gpu !== undefined && { gpu: group.size.gpu }),
      },
      pod: group.pod,
      each: `${group.size.cpu} CPU, ${group.size.memory} memory`,
      accepts: group.accepts,
      customKind: kindOf(group.kind),
      priority: group.priority,
    })),
  );
  return {
    demands: parts.map(({ source, count, asked }) => ({ source, count, each: asked })),
    work: (waits, now) =>
      parts.map((part): HubWork => {
        const { since = now, unchangedSince = now } = waits.get(part.source) ?? {};
        return { ...part, since, unchangedSince };
      }),
    unread: [],
  };
}

function sourcesOf({ name, size, isJobs, waiting, waitingCount }: WorkGroup): { source: string; count: number }[] {
  const whose = `${name} (${size.cpu} CPU, ${size.memory})`;
  if (!isJobs) return [{ source: whose, count: waitingCount }];
  const byMoment = new Map<number, number>();
  for (const { since, count } of waiting) byMoment.set(since, (byMoment.get(since) ?? 0) + count);
  return [...byMoment].map(([moment, count]) => ({ source: `${whose} of second ${moment / 1000}`, count }));
}
