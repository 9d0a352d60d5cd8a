import { findCondition } from '../../api/conditions.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { PROVISION_MS } from '../../burst/nodes/grow.ts';
import { asksForOthers } from '../../capacity/condition.ts';
import type { Node } from '../../kube/resources.ts';
import { SETTLE_MS } from './alike.ts';

/** Sold out; another choice may succeed. */
const DEPLETED = 'ERR_INFRA_RESOURCES_DEPLETED';
/** Error codes with which a waiting cluster will not come, while another candidate may. */
const HOPELESS = new Set([DEPLETED, 'ERR_INFRA_QUOTA_EXCEEDED', 'ERR_INFRA_UNAUTHENTICATED', 'ERR_INFRA_UNAUTHORIZED']);

/** Time for a hub to place work on new nodes; later it never will. */
export const PLACED_MS = 5 * 60_000;

/** Reported failure of a cluster that will not come. */
export function arrivalFailureOf({ metadata, status }: WorkerCluster): string | undefined {
  const accepted = findCondition(status?.conditions, 'SpecAccepted');
  if (accepted?.status === 'False' && status?.observedGeneration === metadata.generation) return accepted.message;
  const hopeless = [
    ...(status?.conditions ?? []).filter((one) => one.status === 'False'),
    ...(status?.lastErrors ?? []),
  ];
  const isDepleted = !asksForOthers(status?.conditions);
  const isHopeless = (code: string) => HOPELESS.has(code) && (code !== DEPLETED || isDepleted);
  const found = hopeless.find(({ codes }) => codes?.some(isHopeless));
  return found && ('description' in found ? found.description : found.message);
}

/**
 * Until when missing nodes of a joined cluster are awaited, milliseconds since the epoch: clouds make pools
 * sequentially. Shorter without nodes or after a failure. Pure.
 * @param failure why no more can be had; undefined: none known
 */
export const nodesUntil = (joinedAt: string, hasNodes: boolean, failure: string | undefined): number =>
  Date.parse(joinedAt) + (hasNodes && failure === undefined ? PROVISION_MS : SETTLE_MS);

/**
 * Deadline for a hub to place the intended work on a cluster: some time after all nodes exist or are no longer awaited.
 * Pure.
 * @param joinedAt absent: it has not joined
 * @param wanted desired nodes
 * @param nodes Ready nodes
 * @param failure why no more come; undefined: none known
 */
export function placedBy(
  joinedAt: string | undefined,
  wanted: number,
  nodes: readonly Pick<Node, 'status'>[],
  failure: string | undefined,
): number | undefined {
  if (joinedAt === undefined) return undefined;
  if (nodes.length < wanted) return nodesUntil(joinedAt, nodes.length > 0, failure);
  const last = Math.max(Date.parse(joinedAt), ...nodes.flatMap(readySince));
  // Its owner controls its nodes' timestamps.
  return Math.min(last, nodesUntil(joinedAt, true, failure)) + PLACED_MS;
}

function readySince({ status }: Pick<Node, 'status'>): number[] {
  const since = Date.parse(status?.conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime ?? '');
  return Number.isNaN(since) ? [] : [since];
}
