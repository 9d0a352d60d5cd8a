import { type Chosen, chooseLeast } from './choose.ts';
import type { Alternative, CandidateView, ClustersView, OwnCluster, Removal, WarmCluster } from './model.ts';
import { withANode } from './peaks.ts';
import { type Replicas, Room } from './room.ts';

/** A warm cluster that is to take work, before it has a reason. */
export interface ChosenWarm {
  readonly warm: WarmCluster;
  /** Replicas that it takes. */
  readonly count: number;
}

/** Warm clusters that take it, those of the highest priority first, and what they leave. They are paid for already. */
export function openFor(
  { warm = [], candidates }: ClustersView,
  wanted: readonly Replicas[],
): { chosen: ChosenWarm[]; left: Replicas[] } {
  const priority = ({ candidate }: WarmCluster) => candidates.find(({ name }) => name === candidate)?.priority ?? 0;
  const chosen: ChosenWarm[] = [];
  let left = [...wanted];
  for (const one of [...warm].sort((a, b) => priority(b) - priority(a) || (a.name < b.name ? -1 : 1))) {
    if (left.length === 0) break;
    const before = left.reduce((sum, { count }) => sum + count, 0);
    const room = new Room(
      [one.supply],
      left.map(({ work }) => work),
    );
    const after = room.fill(left).left;
    const count = before - after.reduce((sum, { count: rest }) => sum + rest, 0);
    if (count > 0) chosen.push({ warm: one, count });
    left = after;
  }
  return { chosen, left };
}

const isWarmOf = ({ name }: CandidateView, { warm, candidate, phase }: OwnCluster): boolean =>
  warm === true && candidate === name && phase !== 'Leaving';

/** Clusters that are to wait warm and are not there; or why not, by candidate. */
export function chooseWarm(
  view: ClustersView,
  now: number,
): { chosen: { candidate: CandidateView; cluster: Chosen }[]; refused: { candidate: string; why: Alternative[] }[] } {
  const chosen: { candidate: CandidateView; cluster: Chosen }[] = [];
  const refused: { candidate: string; why: Alternative[] }[] = [];
  for (const candidate of view.candidates) {
    const there = view.clusters.filter((one) => isWarmOf(candidate, one)).length;
    if (there >= (candidate.warm ?? 0)) continue;
    const cluster = chooseLeast(view, now, [withANode(candidate)]);
    // One in each look: what it leaves of budgets is known in the next.
    if ('candidate' in cluster) return { chosen: [{ candidate, cluster }], refused };
    refused.push({ candidate: candidate.name, why: cluster.alternatives });
  }
  return { chosen, refused };
}

/**
 * Warm clusters that go: more of them than are asked for, and one of those that were made from a template that has changed since, when all of them
 * are there.
 */
export function warmToGo({ clusters, candidates }: ClustersView): Removal[] {
  const known = new Set(candidates.map(({ name }) => name));
  const orphaned = clusters.filter(
    ({ warm, candidate, phase }) => warm && phase !== 'Leaving' && !known.has(candidate),
  );
  const gone = orphaned.map(({ name }) => removal(name, 'the policy has its candidate no longer'));
  const tooMany = candidates.flatMap((candidate): Removal[] => {
    const isOld = ({ revision }: OwnCluster) => candidate.revision !== undefined && revision !== candidate.revision;
    const its = clusters
      .filter((one) => isWarmOf(candidate, one))
      .sort((a, b) => Number(isOld(b)) - Number(isOld(a)) || b.at - a.at || (a.name < b.name ? -1 : 1));
    const wanted = candidate.warm ?? 0;
    if (its.length > wanted) {
      const why = `more clusters wait warm than the ${wanted} that candidate ${candidate.name} asks for`;
      return its.slice(0, its.length - wanted).map(({ name }) => removal(name, why));
    }
    const [first] = its;
    const areReady = its.length === wanted && its.every(({ phase }) => phase === 'Joined');
    if (!first || !isOld(first) || !areReady || candidate.problem !== undefined) return [];
    return [removal(first.name, 'it waits warm, and its template has changed: another one is made')];
  });
  return [...gone, ...tooMany];
}

const removal = (name: string, why: string): Removal => ({ name, why, isFailure: false });
