import type { Node } from '../../kube/resources.ts';

/**
 * Taints by which clouds, or their agents, announce that a machine ends within minutes. Rebalance recommendations do
 * not count.
 */
export const INTERRUPTION_TAINTS = [
  'cloud.google.com/impending-node-termination',
  'aws-node-termination-handler/spot-itn',
];
/** The same as a condition: Azure's node problem detector. */
const CONDITION = 'PreemptionScheduled';

/** The taint or condition that announces the interruption of a node; undefined: none. Pure. */
export function whyInterrupted({ spec, status }: Node): string | undefined {
  const taint = spec.taints?.find(({ key }) => INTERRUPTION_TAINTS.includes(key));
  if (taint) return `taint ${taint.key}`;
  const isSaid = status?.conditions?.some(({ type, status: is }) => type === CONDITION && is === 'True');
  return isSaid ? `condition ${CONDITION}` : undefined;
}
