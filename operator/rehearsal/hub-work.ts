import type { BurstMemory } from '../controllers/burst/memory.ts';
import type { HubWork } from '../controllers/burst/supply.ts';
import { customKinds } from './kinds.ts';
import type { Simulation } from './state.ts';
import type { WorkGroup } from './work-model.ts';

/** What the hub has no place for, as the planner takes it: replicas of a workload together, jobs by the moment in which they came. */
export function workOf(simulation: Simulation, memory: BurstMemory, hub: string, now: number): HubWork[] {
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
  const said = parts.map(({ source, namespace, count, asked }) => ({
    source,
    namespace,
    count,
    each: asked,
    since: '',
  }));
  const waiting = memory.waiting(hub, said, now);
  return parts.map((part): HubWork => {
    const { since = now, unchangedSince = now } = waiting.get(part.source) ?? {};
    return { ...part, since, unchangedSince };
  });
}

function sourcesOf({ name, size, isJobs, waiting, waitingCount }: WorkGroup): { source: string; count: number }[] {
  const whose = `${name} (${size.cpu} CPU, ${size.memory})`;
  if (!isJobs) return [{ source: whose, count: waitingCount }];
  const byMoment = new Map<number, number>();
  for (const { since, count } of waiting) byMoment.set(since, (byMoment.get(since) ?? 0) + count);
  return [...byMoment].map(([moment, count]) => ({ source: `${whose} of second ${moment / 1000}`, count }));
}
