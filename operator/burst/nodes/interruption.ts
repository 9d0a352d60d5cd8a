import type { Node } from '../../kube/resources.ts';

/** Taints by which clouds, or programs that ask them, say that a machine ends within minutes. Advice to rebalance is none. */
export const INTERRUPTION_TAINTS = [
  'cloud.google.com/impending-node-termination',
  'aws-node-termination-handler/spot-itn',
];
/** The same as a condition: Azure's node problem detector. */
const CONDITION = 'PreemptionScheduled';

/** By what a cloud says that it takes the machine of a node away soon, whoever runs there; undefined: it says nothing. Pure. */
export function whyInterrupted({ spec, status }: Node): string | undefined {
  const taint = spec.taints?.find(({ key }) => INTERRUPTION_TAINTS.includes(key));
  if (taint) return `taint ${taint.key}`;
  const isSaid = status?.conditions?.some(({ type, status: is }) => type === CONDITION && is === 'True');
  return isSaid ? `condition ${CONDITION}` : undefined;
}
