import type { Reason } from '../../api/reasons.ts';
import { NOT_DEMAND } from '../../burst/demand.ts';
import { countOfGrowth, WAITS } from '../../burst/nodes/grow.ts';
import type { NodesPlan } from '../../burst/nodes/plan.ts';
import type { HeldNodes } from '../../burst/nodes/shrink.ts';
import { say } from '../conditions.ts';
import type { ClusterNodesSeen } from './observe.ts';

/** Condition of a WorkerCluster with pools that Coppice sizes: whether pending pods get nodes, and why not. */
export const AUTOSCALED = 'Autoscaled';

/** Most entries that are listed individually. */
const MOST_TOLD = 3;
const MOST_CHARACTERS = 300;

/**
 * Condition about a cluster's nodes. Pure.
 * @param emptying names of draining nodes, with the reason to wait
 * @param problems names of nodes that cannot be changed, with the API server's error
 */
export function autoscaledCondition(
  { ignored, noShrinking, tooLarge }: Pick<ClusterNodesSeen, 'ignored' | 'noShrinking' | 'tooLarge'>,
  { growth, shrinkage }: NodesPlan,
  emptying: ReadonlyMap<string, string>,
  problems: ReadonlyMap<string, string> = new Map(),
) {
  const waiting = growth.waiting
    .filter(({ reason }) => reason !== 'SystemOnly')
    .map(
      ({ who, pods, reason, detail }) =>
        `${countOfGrowth(pods, 'pod')} of ${who}: ${WAITS[reason]}${detail && ` (${detail})`}`,
    );
  const notDemand = ignored
    .filter(({ reason }) => reason !== 'BoundToNode')
    .map(({ reason, pods, example }) => `${countOfGrowth(pods, 'pod')}, for example ${example}: ${NOT_DEMAND[reason]}`);
  const bought = [
    ...growth.sizes.map(({ pool, count, why }) => `pool ${pool} gets ${countOfGrowth(count, 'node')}: ${why}`),
  ];
  const ordered = [...growth.ordered].map(([pool, nodes]) => `${countOfGrowth(nodes, 'node')} of pool ${pool} to come`);
  const going = [...emptying].map(([node, what]) => `node ${node} is being emptied: ${what}`);
  const held = shrinkage.held.map(heldBack);
  const pinned = shrinkage.pinned.map(({ node, why }) => `node ${node} is kept though there is room elsewhere: ${why}`);
  const unchanged = [...problems].map(([node, what]) => `node ${node} cannot be changed: ${what}`);
  const rest = [
    ...(unchanged.length > 0 ? [told(unchanged)] : []),
    ...(notDemand.length > 0 ? [`no node is bought for ${told(notDemand)}`] : []),
    ...(tooLarge.length > 0 ? [told(tooLarge)] : []),
    ...(noShrinking ? [noShrinking] : []),
    ...(held.length > 0 ? [told(held)] : []),
    ...(pinned.length > 0 ? [told(pinned)] : []),
  ];
  if (waiting.length > 0)
    return said(false, 'PodsWait', [`no node is bought for ${told(waiting)}`, ...bought, ...ordered, ...rest]);
  if (tooLarge.length > 0) return said(false, 'DaemonSetsTooLarge', [...bought, ...ordered, ...rest]);
  if (unchanged.length > 0) return said(false, 'NodesNotChanged', [...bought, ...ordered, ...rest]);
  if (bought.length + ordered.length > 0) return said(true, 'NodesOrdered', [...bought, ...ordered, ...rest]);
  if (going.length > 0) return said(true, 'NodesLeave', [told(going), ...rest]);
  if (held.length > 0) return said(true, 'NodesHeldBack', rest);
  return said(true, 'Settled', ['no pod is waiting for a node', ...rest]);
}

/** Text about nodes that a disruption budget keeps. */
export const heldBack = ({ pool, nodes, limit }: HeldNodes): string =>
  `pool ${pool} has ${countOfGrowth(nodes.length, 'unneeded node')}: ${limit.words} allows ${countOfGrowth(limit.nodes, 'node')} to be missing at once`;

const said = (status: boolean, reason: Reason<'WorkerCluster', 'Autoscaled'>, parts: readonly string[]) =>
  say(AUTOSCALED, status, reason, shortened(parts.join('. '), 3 * MOST_CHARACTERS));

const told = (lines: readonly string[]): string => {
  const shown = lines.slice(0, MOST_TOLD).map((line) => shortened(line, MOST_CHARACTERS));
  return lines.length > MOST_TOLD ? `${shown.join('; ')}; and ${lines.length - MOST_TOLD} more` : shown.join('; ');
};

const shortened = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 3)}...` : text);
