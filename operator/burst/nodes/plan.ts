import type { Steps } from '../../kube/steps.ts';
import type { FitPod } from '../fit/model.ts';
import { withShare } from '../fit/pack.ts';
import { type GrowthDecision, type GrowView, planGrowthInSteps } from './grow.ts';
import type { NodeView } from './model.ts';
import { planShrinkageInSteps, type Shrinkage, type ShrinkView } from './shrink.ts';

/** Inputs of a decision about a cluster's nodes. */
export interface NodesView
  extends Omit<GrowView, 'emptying'>,
    Pick<ShrinkView, 'unneededSince' | 'waitMs' | 'whyBlocked'> {
  readonly nodes: readonly NodeView[];
  /** Names of existing nodes that are not Ready: they may count as supply, but no running pod is moved there. */
  readonly notReady: readonly string[];
  /**
   * Whether nodes may be removed: not for providers that cannot remove a named one, nor while something else removes
   * machines.
   */
  readonly mayTakeNodes: boolean;
}

/** Decision about a cluster's nodes. */
export interface NodesPlan {
  readonly growth: GrowthDecision;
  readonly shrinkage: Shrinkage;
}

/** Share of a decision's work limit for growth: unservable pods must not prevent the removal of unneeded nodes. */
const GROWTH_SHARE = 3 / 4;

const NOTHING: Shrinkage = { unneeded: [], begin: [], keep: [], held: [], pinned: [] };

/**
 * Decides about a cluster's nodes: more for waiting pods, fewer when unneeded. Pure, with pauses; `state` is restored at
 * the end, and must not be used before.
 */
export function* planNodesInSteps(view: NodesView): Steps<NodesPlan> {
  const { state, nodes, pools, mayTakeNodes } = view;
  const emptying = nodes.filter(({ isEmptying }) => isEmptying).map(({ name }) => name);
  const growth = yield* withShare(state, GROWTH_SHARE, () =>
    state.whatIfInSteps(() => planGrowthInSteps({ ...view, emptying })),
  );
  if (!mayTakeNodes) return { growth, shrinkage: NOTHING };
  const replicas = new Map(view.demands.flatMap(({ keys, replica }) => keys.map((key) => [key, replica] as const)));
  const kept = new Set(growth.keep);
  // Running pods can move to existing nodes only.
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
