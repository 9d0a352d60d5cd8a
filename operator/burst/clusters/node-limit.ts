import type { ClustersView, Limits } from './model.ts';
import { nodesOf } from './words.ts';

/** How many more nodes the policy may have; infinity: any number. */
export const nodesLeft = ({
  limits: { maximumNodes = Number.POSITIVE_INFINITY },
  clusters,
  grownNodes = 0,
}: Pick<ClustersView, 'limits' | 'clusters' | 'grownNodes'>): number =>
  Math.max(0, maximumNodes - clusters.reduce((sum, { nodes = 0 }) => sum + nodes, grownNodes));

/** How many nodes are left, the end of a sentence. */
export const shortOfNodes = ({ maximumNodes }: Limits, left: number): string =>
  `of its ${nodesOf(maximumNodes ?? 0)} (maximumNodes) the policy has ${left} left`;

/** How many nodes these are of clusters of others. Of clusters of the policy itself a pool that may grow is counted at its largest already. */
export const nodesOfOthers = (
  growths: readonly { readonly entry?: string | undefined; readonly nodes: number }[],
): number => growths.reduce((sum, { entry, nodes }) => sum + (entry === undefined ? 0 : nodes), 0);
