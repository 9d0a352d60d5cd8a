import { fitPod } from '../burst/fit/pod.ts';
import { type HubWork, MOST_DEMANDS } from '../controllers/burst/hub-work.ts';
import type { Heard } from '../controllers/burst/world.ts';
import { customKinds } from './kinds.ts';
import type { Simulation } from './state.ts';
import type { WorkGroup } from './work-model.ts';

/** Workloads that the hub cannot place: replicas of a workload together, each job separately. */
export function hubSays(simulation: Simulation): Heard {
  const { groups } = simulation.work!;
  const kindOf = customKinds(simulation);
  const waits = [...groups.values()].filter(({ cluster, waitingCount }) => cluster === undefined && waitingCount > 0);
  const sources = waits.flatMap((group) => sourcesOf(group).map((one) => ({ group, ...one })));
  const parts = lookedAt(sources).map(({ group, source, count }) => ({
    source,
    namespace: 'default',
    count,
    asked: {
      cpu: group.size.cpu,
      memory: group.size.memory,
      ...(group.size.gpu !== undefined && { gpu: group.size.gpu }),
    },
    // Not `group.pod`, which belongs to this group alone: the planner merges equal workloads.
    pod: fitPod(group.object),
    each: `${group.size.cpu} CPU, ${group.size.memory} memory`,
    accepts: group.accepts,
    customKind: kindOf(group.kind),
    priority: group.priority,
  }));
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

interface Source {
  readonly source: string;
  readonly count: number;
  readonly since: number;
}

/** The operator's limit of demands: the longest waiting. */
const lookedAt = <T extends Source>(sources: readonly T[]): readonly T[] =>
  sources.length <= MOST_DEMANDS ? sources : sources.toSorted((a, b) => a.since - b.since).slice(0, MOST_DEMANDS);

/**
 * One source per job, as in a hub, where each job is an object placed alone: of many jobs that come together a cluster
 * may take a part. Jobs that run first have the highest numbers, so that the others keep theirs.
 */
function sourcesOf({ name, size, isJobs, waiting, waitingCount }: WorkGroup): Source[] {
  const whose = `${name} (${size.cpu} CPU, ${size.memory})`;
  if (!isJobs) return [{ source: whose, count: waitingCount, since: waiting[0]!.since }];
  const byMoment = new Map<number, number>();
  for (const { since, count } of waiting) byMoment.set(since, (byMoment.get(since) ?? 0) + count);
  return [...byMoment].flatMap(([moment, count]) =>
    Array.from({ length: Math.min(count, MOST_DEMANDS) }, (_, index) => ({
      source: `${whose} of second ${moment / 1000}, job ${count - index}`,
      count: 1,
      since: moment,
    })),
  );
}
