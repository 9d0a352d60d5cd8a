import { findCondition } from '../../api/conditions.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { PROVISION_MS } from '../../burst/nodes/grow.ts';
import { asksForOthers } from '../../capacity/condition.ts';
import type { Node } from '../../kube/resources.ts';
import { SETTLE_MS } from './alike.ts';

/** What it asks for is sold out, and it may ask for something else. */
const DEPLETED = 'ERR_INFRA_RESOURCES_DEPLETED';
/** Of a cluster that waits for its machines: with these it will not come by itself, and another candidate may. */
const HOPELESS = new Set([DEPLETED, 'ERR_INFRA_QUOTA_EXCEEDED', 'ERR_INFRA_UNAUTHENTICATED', 'ERR_INFRA_UNAUTHORIZED']);

/** A hub has placed on nodes that have come what it places there by then, or never will. */
export const PLACED_MS = 5 * 60_000;

/** Why a cluster will not come, as far as it says so. */
export function failureOf({ metadata, status }: WorkerCluster): string | undefined {
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
 * Until when nodes are waited for that a cluster lacks when it joins, milliseconds since the epoch: clouds make one pool after the other.
 * Where it has none, or where no more are to be had, something else is tried sooner. Pure.
 * @param failure why no more are to be had; undefined: nothing says so
 */
export const nodesUntil = (joinedAt: string, hasNodes: boolean, failure: string | undefined): number =>
  Date.parse(joinedAt) + (hasNodes && failure === undefined ? PROVISION_MS : SETTLE_MS);

/**
 * When its hub has placed work on a cluster that was bought or woken for it, or never will: some time after all its nodes are there, or
 * when these are not waited for any more. Pure.
 * @param joinedAt absent: it has not joined
 * @param wanted how many nodes it is to have
 * @param nodes those that are Ready
 * @param failure why no more of them come; undefined: nothing says so
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
  // Its owner may write any time into its nodes.
  return Math.min(last, nodesUntil(joinedAt, true, failure)) + PLACED_MS;
}

function readySince({ status }: Pick<Node, 'status'>): number[] {
  const since = Date.parse(status?.conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime ?? '');
  return Number.isNaN(since) ? [] : [since];
}
