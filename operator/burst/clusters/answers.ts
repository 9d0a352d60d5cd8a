import type { Supply, WaitingWork } from './model.ts';
import type { WorkState, WorkVerdict } from './plan-model.ts';
import { Room, workLikeness } from './room.ts';
import { lookedAt } from './sources.ts';

/** Answer to a hub about work that it holds until there is room. */
interface WorkAnswer {
  /** Retry: no policy can serve the work now. */
  readonly state: 'Ready' | 'Pending' | 'Retry';
  readonly message: string;
}

/** Result of a policy's decision in this cycle. */
export interface PolicySaid {
  /** `namespace/name` */
  readonly policy: string;
  /** The policy only reports what it would do. */
  readonly isDryRun: boolean;
  /** Verdicts on the work that the policy serves. */
  readonly verdicts: readonly WorkVerdict[];
  readonly ordered: readonly OrderedCluster[];
}

/** A cluster that a policy has ordered and that has not joined yet. */
interface OrderedCluster {
  readonly name: string;
  readonly sources: readonly string[];
  /** RFC 3339 */
  readonly at: string;
  /** Median time until such clusters join, milliseconds; undefined: none has joined yet. */
  readonly startupMs: number | undefined;
}

/** States from which nothing follows for the work. */
const COMES_TO_NOTHING: readonly WorkState[] = ['Refused', 'Suspended'];

/**
 * Answers to a hub that places each source on one cluster, by source: Ready when existing nodes take all of it now,
 * Retry when no policy serves it. Pure.
 * @param supply clusters of the hub; ordered nodes do not count as room
 * @param said decisions of the hub's policies; undefined: not all could decide, so only Ready is answered
 */
export function answersTo(
  work: readonly WaitingWork[],
  supply: readonly Supply[],
  said: readonly PolicySaid[] | undefined,
  now: number,
): ReadonlyMap<string, WorkAnswer> {
  const roomy = fittingNow(work, supply, now);
  const answers = new Map<string, WorkAnswer>();
  for (const source of new Set(work.map((one) => one.source))) {
    const cluster = roomy.get(source);
    const answer: WorkAnswer | undefined = cluster
      ? { state: 'Ready', message: `there is room for its pods on WorkerCluster ${cluster}` }
      : said && without(source, said);
    if (answer) answers.set(source, answer);
  }
  return answers;
}

/** Sources that fit as a whole on existing nodes of one cluster, oldest first, with the cluster. */
function fittingNow(work: readonly WaitingWork[], supply: readonly Supply[], now: number): Map<string, string> {
  const room = new Room(
    supply.map((one) => ({ ...one, planned: [] })),
    work,
  );
  const likeness = workLikeness();
  const { sources } = lookedAt(work, () => true, now);
  const alike = Map.groupBy(sources, (one) => (one.length === 1 ? likeness(one[0]!) : one[0]!.source));
  const found = new Map<string, string>();
  for (const group of alike.values())
    for (const [[first], cluster] of room.fillOneEach(group)) found.set(first!.source, cluster);
  return found;
}

function without(source: string, said: readonly PolicySaid[]): WorkAnswer {
  const all = said.flatMap(({ policy, isDryRun, verdicts, ordered }) => {
    const verdict = verdicts.find((one) => one.source === source);
    if (!verdict) return [];
    const comes = !isDryRun && !COMES_TO_NOTHING.includes(verdict.state);
    const words = comes ? (orderedFor(source, ordered) ?? verdict.message) : verdict.message;
    return [{ comes, message: `BurstPolicy ${policy}${isDryRun ? ', a dry run' : ''}: ${words}` }];
  });
  const coming = all.filter(({ comes }) => comes);
  if (coming.length > 0) return { state: 'Pending', message: messageOf(coming) };
  return { state: 'Retry', message: messageOf(all) || 'no BurstPolicy of its Hub serves its namespace' };
}

const messageOf = (all: readonly { readonly message: string }[]): string =>
  all.map(({ message }) => message).join('; ');

/** The text stays the same until the cluster joins: a countdown would cause a write per second. */
function orderedFor(source: string, ordered: readonly OrderedCluster[]): string | undefined {
  const its = ordered.filter(({ sources }) => sources.includes(source));
  if (its.length === 0) return undefined;
  return its
    .map(({ name, at, startupMs }) => {
      const takes = startupMs === undefined ? '' : `, and such a cluster takes ${Math.ceil(startupMs / 1000)} s`;
      return `WorkerCluster ${name} was ordered for it at ${at}${takes}`;
    })
    .join('; ');
}
