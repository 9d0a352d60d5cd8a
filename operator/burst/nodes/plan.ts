import { atOnce, type Steps } from '../../kube/steps.ts';
import type { FitPod } from '../fit/model.ts';
import { withShare } from '../fit/pack.ts';
import { type Growth, type GrowView, planGrowthInSteps } from './grow.ts';
import type { NodeView } from './model.ts';
import { planShrinkageInSteps, type Shrinkage, type ShrinkView } from './shrink.ts';

/** All that a decision about the nodes of a cluster rests on. */
export interface NodesView
  extends Omit<GrowView, 'emptying'>,
    Pick<ShrinkView, 'unneededSince' | 'waitMs' | 'whyBlocked'> {
  readonly nodes: readonly NodeView[];
  /** Names of nodes that are there and not Ready: they may count as what is to come, but nobody is moved there. */
  readonly notReady: readonly string[];
  /** Whether nodes may be taken away at all: named ones, by who makes them, and not while something else takes machines away. */
  readonly mayTakeNodes: boolean;
}

/** What is to be done about the nodes of a cluster. */
export interface NodesPlan {
  readonly growth: Growth;
  readonly shrinkage: Shrinkage;
}

/** Share of the work of a decision that growth may take: pods that nobody can serve must not keep nodes that nobody needs. */
const GROWTH_SHARE = 3 / 4;

const NOTHING: Shrinkage = { unneeded: [], begin: [], keep: [], held: [], pinned: [] };

/** Decides about the nodes of a cluster: more for pods that wait, fewer where nobody needs them. Pure; `state` is left as it was. */
export const planNodes = (view: NodesView): NodesPlan => atOnce(planNodesInSteps(view));

/** The same, with pauses. Nobody else may use `state` until it has ended. */
export function* planNodesInSteps(view: NodesView): Steps<NodesPlan> {
  const { state, nodes, pools, mayTakeNodes } = view;
  const emptying = nodes.filter(({ isEmptying }) => isEmptying).map(({ name }) => name);
  const growth = yield* withShare(state, GROWTH_SHARE, () =>
    state.whatIfInSteps(() => planGrowthInSteps({ ...view, emptying })),
  );
  if (!mayTakeNodes) return { growth, shrinkage: NOTHING };
  const replicas = new Map(view.demands.flatMap(({ keys, replica }) => keys.map((key) => [key, replica] as const)));
  const kept = new Set(growth.keep);
  // What is yet to come is no room that a running pod could be moved to.
  const shrinkage = yield* state.whatIfInSteps(function* () {
    for (const name of view.notReady) state.removeNode(name);
    for (const [key, node] of growth.placed) if (state.node(node)) state.place(replicas.get(key) as FitPod, node);
    return yield* planShrinkageInSteps({
      ...view,
      pools: pools.filter(({ name }) => !growth.sizes.some(({ pool }) => pool === name)),
      nodes: nodes.filter(({ name }) => !kept.has(name)),
      hasWork: growth.hasWork,
      reserved: new Set(growth.placed.values()),
      isUnsettled: growth.ordered.size > 0 || growth.sizes.length > 0 || growth.placed.size > 0,
    });
  });
  return { growth, shrinkage };
}
