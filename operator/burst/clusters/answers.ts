import type { Supply, WaitingWork } from './model.ts';
import type { WorkState, WorkVerdict } from './plan-model.ts';
import { likenessOf, Room } from './room.ts';
import { lookedAt } from './sources.ts';

/** What a hub is told of work that it holds until there is room. */
export interface WorkAnswer {
  /** Retry: nothing is to be had for it now. */
  readonly state: 'Ready' | 'Pending' | 'Retry';
  readonly message: string;
}

/** What a policy has decided in this look. */
export interface PolicySaid {
  /** `namespace/name` */
  readonly policy: string;
  /** It only says what it would do. */
  readonly isDryRun: boolean;
  /** Of the work that it serves. */
  readonly verdicts: readonly WorkVerdict[];
  readonly ordered: readonly OrderedCluster[];
}

/** A cluster that a policy has ordered, and that is still to join. */
export interface OrderedCluster {
  readonly name: string;
  readonly sources: readonly string[];
  /** RFC 3339 */
  readonly at: string;
  /** How long such clusters take, milliseconds; undefined: none has come yet. */
  readonly startupMs: number | undefined;
}

/** Nothing comes of these; of all others something does, or is still to be decided. */
const COMES_TO_NOTHING: readonly WorkState[] = ['Refused', 'Suspended'];

/**
 * What a hub is told of work that it places on one cluster each, by source: Ready where nodes that are there take all of it now, Retry where no
 * policy does anything for it. Pure.
 * @param supply clusters of the hub; what is on its way there counts as no room
 * @param said by the policies of the hub; undefined: not all could decide, so nothing is told but that there is room
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

/** Sources that find room as a whole on the nodes of one cluster, the older ones first, and on which. */
function fittingNow(work: readonly WaitingWork[], supply: readonly Supply[], now: number): Map<string, string> {
  const room = new Room(
    supply.map((one) => ({ ...one, planned: [] })),
    work,
  );
  const likeness = likenessOf();
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

/** It says the same until the cluster has come: words that count seconds would be a write for each. */
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
