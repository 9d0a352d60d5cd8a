import type { ClustersView, Limits } from './model.ts';
import { nodesText } from './words.ts';

/** How many more nodes the policy may have; Infinity without a limit. */
export const nodesLeft = ({
  limits: { maximumNodes = Number.POSITIVE_INFINITY },
  clusters,
  grownNodes = 0,
}: Pick<ClustersView, 'limits' | 'clusters' | 'grownNodes'>): number =>
  Math.max(0, maximumNodes - clusters.reduce((sum, { nodes = 0 }) => sum + nodes, grownNodes));

/** Rest of the node limit, as the end of a sentence. */
export const shortOfNodes = ({ maximumNodes }: Limits, left: number): string =>
  `of its ${nodesText(maximumNodes ?? 0)} (maximumNodes) the policy has ${left} left`;

/** Added nodes in clusters of others. In the policy's own clusters, growable pools count with their maximum already. */
export const nodesOfOthers = (
  growths: readonly { readonly entry?: string | undefined; readonly nodes: number }[],
): number => growths.reduce((sum, { entry, nodes }) => sum + (entry === undefined ? 0 : nodes), 0);
