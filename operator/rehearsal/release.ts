import { boughtNodes } from '../burst/clusters/kept.ts';
import { withMinimumsOf } from '../burst/clusters/offer.ts';
import { desiredSizes, isCoppices } from '../capacity/desired-sizes.ts';
import { isSettled } from '../controllers/burst/release-minimums.ts';
import { rewrite } from './places.ts';
import type { RehearsedPolicy } from './rehearsed-policy.ts';
import { dateOf, type Simulation } from './state.ts';

/** Has pools of clusters that are settled be as small as their template lets them be. */
export function releaseMinimums(simulation: Simulation, { policy, receipt }: RehearsedPolicy): void {
  for (const purchase of receipt.purchases) {
    const state = simulation.clusters.get(`${policy.metadata.namespace}/${purchase.name}`);
    const template = policy.spec.candidates.find(({ name }) => name === purchase.candidate)?.template.spec;
    if (!state?.object || !state.profile || !template) continue;
    if (!isSettled(purchase, +dateOf(simulation)) || state.nodes.size < boughtNodes(purchase)) continue;
    const { object: cluster, profile, decided } = state;
    const spec = withMinimumsOf(state.spec, { cluster, profile }, template, purchase.nodes);
    if (!spec) continue;
    // What a minimum has made of a pool stays until nobody needs it: the autoscaler of a garden has written it down.
    const size = { by: 'Coppice', why: 'within its minimum and maximum', at: dateOf(simulation).toISOString() };
    for (const { name, count } of desiredSizes({ cluster, profile, decided }).filter(isCoppices))
      if (!decided.has(name)) decided.set(name, { ...size, count });
    rewrite(simulation, state, spec);
  }
}
