import { type Chosen, chooseLeast } from './choose.ts';
import type { ClustersView, OwnCluster, Peak, WarmCluster } from './model.ts';
import type { Alternative } from './plan-model.ts';
import { mayWake } from './wake.ts';
import { withANode } from './warm.ts';

/** Actions for current peaks. */
interface ForPeaks {
  readonly openings: readonly { readonly peak: Peak; readonly warm: WarmCluster }[];
  readonly chosen: readonly { readonly peak: Peak; readonly cluster: Chosen }[];
  readonly refused: readonly { readonly peak: Peak; readonly alternatives: readonly Alternative[] }[];
}

export const isOn = ({ from, until }: Peak, now: number): boolean => from <= now && now < until;

/**
 * Whether a cluster counts for a peak: it is of the peak's candidate. A failed one counts until it leaves, while its
 * candidate rests.
 */
export const countsFor = ({ candidate }: Peak, one: OwnCluster): boolean =>
  one.phase !== 'Leaving' && !one.warm && (candidate === undefined || candidate === one.candidate);

/**
 * Clusters to add for peaks, within the policy's limits. One cluster counts for each current peak: peaks state
 * minimums, which do not add up.
 */
export function choosePeaks(view: ClustersView, now: number): ForPeaks {
  const chosen: { peak: Peak; cluster: Chosen }[] = [];
  const openings: { peak: Peak; warm: WarmCluster }[] = [];
  const refused: { peak: Peak; alternatives: readonly Alternative[] }[] = [];
  let rest: ClustersView = { ...view, candidates: view.candidates.map(withANode) };
  for (const peak of view.peaks ?? []) {
    if (!isOn(peak, now)) continue;
    const isIts = ({ name }: { name: string }) => peak.candidate === undefined || peak.candidate === name;
    let missing = peak.clusters - rest.clusters.filter((one) => countsFor(peak, one)).length;
    for (; missing > 0; missing--) {
      // Awake clusters first: they are there at once and cost nothing more. Clusters of others do not count for peaks.
      const warm = (view.warm ?? [])
        .filter(({ entry }) => entry === undefined)
        .sort((a, b) => Number(a.waking !== undefined) - Number(b.waking !== undefined))
        .find(
          (one) =>
            isIts({ name: one.candidate }) && !openings.some((other) => other.warm === one) && mayWake(rest, one, now),
        );
      if (warm) {
        openings.push({ peak, warm });
        const awake = { warm: false, ...(warm.waking && { hourly: warm.waking.most }) };
        const clusters = rest.clusters.map((one) => (one.name === warm.name ? { ...one, ...awake } : one));
        rest = { ...rest, clusters };
        continue;
      }
      const cluster = chooseLeast(rest, now, rest.candidates.filter(isIts));
      if (!('candidate' in cluster)) {
        refused.push({ peak, alternatives: cluster.alternatives });
        break;
      }
      chosen.push({ peak, cluster });
      rest = withOne(rest, cluster, now);
    }
  }
  return { openings, chosen, refused };
}

/** The view after this purchase. */
function withOne(view: ClustersView, { candidate, price, mostNodes }: Chosen, now: number): ClustersView {
  const made: OwnCluster = {
    key: '',
    name: '',
    candidate,
    at: now,
    phase: 'Ordered',
    idleSince: undefined,
    hourly: price.most,
    nodes: mostNodes,
    billing: price.billing,
    failure: undefined,
  };
  const candidates = view.candidates.map((one) => (one.name === candidate ? { ...one, left: one.left - 1 } : one));
  return { ...view, candidates, clusters: [...view.clusters, made] };
}
