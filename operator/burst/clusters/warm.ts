import { type Chosen, chooseLeast } from './choose.ts';
import type { CandidateView, ClustersView, OwnCluster, WarmCluster } from './model.ts';
import { cheapestOf } from './offer.ts';
import type { Alternative, ClusterRemoval } from './plan-model.ts';
import { type Replicas, Room, totalOf } from './room.ts';

/** A waiting cluster that is to take work, without a reason yet. */
export interface ChosenWarm {
  readonly warm: WarmCluster;
  /** Replicas that it takes. */
  readonly count: number;
}

/** Waiting clusters, highest priority first. */
export function inOrder({ warm = [], candidates }: ClustersView): WarmCluster[] {
  const priority = ({ candidate }: WarmCluster) => candidates.find(({ name }) => name === candidate)?.priority ?? 0;
  return [...warm].sort((a, b) => priority(b) - priority(a) || (a.name < b.name ? -1 : 1));
}

/** How much of the work a waiting cluster would take. */
export function takenByWarm(
  { supply, keepsFrom }: WarmCluster,
  wanted: readonly Replicas[],
): { count: number; left: Replicas[] } {
  const isKept = ({ work }: Replicas) => keepsFrom?.(work) !== undefined;
  const tried = wanted.filter((one) => !isKept(one));
  const room = new Room(
    [supply],
    tried.map(({ work }) => work),
  );
  const { left } = room.fillWhole(tried);
  return { count: totalOf(tried) - totalOf(left), left: [...left, ...wanted.filter(isKept)] };
}

/** Warm clusters to open for the work, and the rest. They are paid for already. */
export function openFor(view: ClustersView, wanted: readonly Replicas[]): { chosen: ChosenWarm[]; left: Replicas[] } {
  const chosen: ChosenWarm[] = [];
  let left = [...wanted];
  for (const one of inOrder(view)) {
    if (left.length === 0) break;
    if (one.waking) continue;
    const taken = takenByWarm(one, left);
    if (taken.count > 0) chosen.push({ warm: one, count: taken.count });
    left = taken.left;
  }
  return { chosen, left };
}

/** Ways in which clusters wait. */
export type Wait = 'warm' | 'asleep';
const WAITS: readonly Wait[] = ['warm', 'asleep'];

/** Verbs of waiting, for people. */
export const WORDS: Readonly<Record<Wait, { one: string; many: string }>> = {
  warm: { one: 'waits warm', many: 'wait warm' },
  asleep: { one: 'waits asleep', many: 'wait asleep' },
};

const wantedOf = (candidate: CandidateView, wait: Wait): number => candidate[wait] ?? 0;

const waitsOf =
  ({ name }: CandidateView, wait: Wait) =>
  ({ warm, sleeps, candidate, phase }: OwnCluster): boolean =>
    warm === true && (sleeps === true) === (wait === 'asleep') && candidate === name && phase !== 'Leaving';

/** Clusters with work that will sleep when idle: they need no replacement. */
const inUseOf =
  ({ name, revision }: CandidateView) =>
  (one: OwnCluster): boolean =>
    !one.warm && one.candidate === name && one.revision === revision && one.phase !== 'Leaving';

/** Clusters to buy as reserve; or the reason per candidate. */
export function chooseWarm(
  view: ClustersView,
  now: number,
): {
  chosen: { candidate: CandidateView; wait: Wait; cluster: Chosen }[];
  refused: { candidate: string; wait: Wait; why: Alternative[] }[];
} {
  const chosen: { candidate: CandidateView; wait: Wait; cluster: Chosen }[] = [];
  const refused: { candidate: string; wait: Wait; why: Alternative[] }[] = [];
  for (const candidate of view.candidates)
    for (const wait of WAITS) {
      const returns = wait === 'asleep' ? view.clusters.filter(inUseOf(candidate)).length : 0;
      const there = view.clusters.filter(waitsOf(candidate, wait)).length;
      if (there + returns >= wantedOf(candidate, wait)) continue;
      const { name, cannotSleep, unused } = candidate;
      const whyNot = wait === 'asleep' && cannotSleep !== undefined ? cannotSleep : unused?.why;
      const cluster =
        whyNot !== undefined
          ? { alternatives: [{ candidate: name, whyNot }] }
          : chooseLeast(view, now, [withANode(candidate)]);
      // One per cycle: the next cycle knows the rest of the budget.
      if ('candidate' in cluster) return { chosen: [{ candidate, wait, cluster }], refused };
      refused.push({ candidate: name, wait, why: cluster.alternatives });
    }
  return { chosen, refused };
}

/** Waiting clusters to give back: surplus ones, and one of an outdated template once all are there. */
export function warmToGo({ clusters, candidates }: ClustersView): ClusterRemoval[] {
  const known = new Set(candidates.map(({ name }) => name));
  const orphaned = clusters.filter(
    ({ warm, candidate, phase }) => warm && phase !== 'Leaving' && !known.has(candidate),
  );
  const gone = orphaned.map(({ name }) => removal(name, 'the policy has its candidate no longer'));
  const tooMany = candidates.flatMap((candidate) =>
    WAITS.flatMap((wait): ClusterRemoval[] => {
      const isOld = ({ revision }: OwnCluster) => candidate.revision !== undefined && revision !== candidate.revision;
      const its = clusters
        .filter(waitsOf(candidate, wait))
        .sort((a, b) => Number(isOld(b)) - Number(isOld(a)) || b.at - a.at || (a.name < b.name ? -1 : 1));
      const wanted = wantedOf(candidate, wait);
      if (its.length > wanted) {
        const why = `more clusters ${WORDS[wait].many} than the ${wanted} that candidate ${candidate.name} asks for`;
        return its.slice(0, its.length - wanted).map(({ name }) => removal(name, why));
      }
      const [first] = its;
      const inUse = wait === 'asleep' ? clusters.filter(inUseOf(candidate)).length : 0;
      const areReady = its.length + inUse >= wanted && its.every(({ phase }) => phase === 'Joined');
      if (!first || !isOld(first) || !areReady || candidate.problem !== undefined) return [];
      return [removal(first.name, `it ${WORDS[wait].one}, and its template has changed: another one is made`)];
    }),
  );
  return [...gone, ...tooMany];
}

/** Ensures at least one node, because a hub places nothing on a cluster without nodes. */
export function withANode(candidate: CandidateView): CandidateView {
  const { offer, steady } = candidate;
  return {
    ...candidate,
    offer: offerWithANode(offer),
    ...(steady && { steady: { ...steady, offer: offerWithANode(steady.offer) } }),
  };
}

function offerWithANode(offer: CandidateView['offer']): CandidateView['offer'] {
  if (!offer || offer.pools.some(({ minimum }) => minimum > 0)) return offer;
  const cheapest = cheapestOf(offer.pools.filter(({ most }) => most > 0));
  return { ...offer, pools: offer.pools.map((pool) => (pool === cheapest ? { ...pool, minimum: 1 } : pool)) };
}

const removal = (name: string, why: string): ClusterRemoval => ({ name, why, isFailure: false });
