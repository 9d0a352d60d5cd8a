import { type Chosen, chooseLeast } from './choose.ts';
import type { Alternative, CandidateView, ClustersView, OwnCluster, Peak } from './model.ts';

/** What is done for peaks that are on. */
export interface ForPeaks {
  readonly chosen: readonly { readonly peak: Peak; readonly cluster: Chosen }[];
  readonly refused: readonly { readonly peak: Peak; readonly alternatives: readonly Alternative[] }[];
}

export const isOn = ({ from, until }: Peak, now: number): boolean => from <= now && now < until;

/** Clusters that count for a peak: those of its candidate. One that has failed does until it leaves, and its candidate rests. */
export const countsFor = ({ candidate }: Peak, one: OwnCluster): boolean =>
  one.phase !== 'Leaving' && (candidate === undefined || candidate === one.candidate);

/**
 * Clusters that peaks ask for and that are not there, within what the policy allows. One counts for each peak that is on: what peaks ask for is
 * the least, and not the sum.
 */
export function choosePeaks(view: ClustersView, now: number): ForPeaks {
  const chosen: { peak: Peak; cluster: Chosen }[] = [];
  const refused: { peak: Peak; alternatives: readonly Alternative[] }[] = [];
  let rest: ClustersView = { ...view, candidates: view.candidates.map(withANode) };
  for (const peak of view.peaks ?? []) {
    if (!isOn(peak, now)) continue;
    const isIts = ({ name }: { name: string }) => peak.candidate === undefined || peak.candidate === name;
    let missing = peak.clusters - rest.clusters.filter((one) => countsFor(peak, one)).length;
    for (; missing > 0; missing--) {
      const cluster = chooseLeast(rest, now, rest.candidates.filter(isIts));
      if (!('candidate' in cluster)) {
        refused.push({ peak, alternatives: cluster.alternatives });
        break;
      }
      chosen.push({ peak, cluster });
      rest = withOne(rest, cluster, now);
    }
  }
  return { chosen, refused };
}

/** A hub places nothing where there is no node. */
function withANode(candidate: CandidateView): CandidateView {
  const { offer } = candidate;
  if (!offer || offer.pools.some(({ minimum }) => minimum > 0)) return candidate;
  const [cheapest] = offer.pools
    .filter(({ most }) => most > 0)
    .sort((a, b) => Number((a.price ?? 0n) - (b.price ?? 0n)) || (a.name < b.name ? -1 : 1));
  const pools = offer.pools.map((pool) => (pool === cheapest ? { ...pool, minimum: 1 } : pool));
  return { ...candidate, offer: { ...offer, pools } };
}

/** As if it had been bought. */
function withOne(view: ClustersView, { candidate, price }: Chosen, now: number): ClustersView {
  const made: OwnCluster = {
    key: '',
    name: '',
    candidate,
    at: now,
    phase: 'Ordered',
    idleSince: undefined,
    hourly: price.most,
    billing: price.billing,
    failure: undefined,
  };
  const candidates = view.candidates.map((one) => (one.name === candidate ? { ...one, left: one.left - 1 } : one));
  return { ...view, candidates, clusters: [...view.clusters, made] };
}
