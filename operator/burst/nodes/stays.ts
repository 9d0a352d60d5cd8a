import type { Node, Pod } from '../../kube/resources.ts';
import { isMovable } from '../demand.ts';

const CA = 'cluster-autoscaler.kubernetes.io';
/** Karpenter's, on a node or a pod: `true`, or, on a pod, for how long; a time is taken for `true`, since nobody keeps when pods began. */
const DO_NOT_DISRUPT = 'karpenter.sh/do-not-disrupt';
/** Annotations of nodes that are read. */
export const NODE_MARKS = [`${CA}/scale-down-disabled`, DO_NOT_DISRUPT];
const SAFE_TO_EVICT = `${CA}/safe-to-evict`;

/** Why a node must not be emptied, whoever has room; undefined: it may. Pure. */
export function whyNodeStays(node: Node, pods: readonly Pod[]): string | undefined {
  const marks = node.metadata.annotations ?? {};
  const mark = NODE_MARKS.find((key) => isSet(marks[key]));
  if (mark) return `its annotation ${mark} says so`;
  for (const pod of pods) {
    const why = isMovable(pod) && !pod.metadata.deletionTimestamp && whyPodStays(pod);
    if (why) return `pod ${pod.metadata.namespace}/${pod.metadata.name} ${why}`;
  }
  return undefined;
}

const isSet = (value: string | undefined): boolean => value !== undefined && value !== 'false';

function whyPodStays({ metadata }: Pod): string | undefined {
  const marks = metadata.annotations ?? {};
  if (isSet(marks[DO_NOT_DISRUPT])) return `has annotation ${DO_NOT_DISRUPT}`;
  if (marks[SAFE_TO_EVICT] === 'false') return `has annotation ${SAFE_TO_EVICT}: "false"`;
  if (marks[SAFE_TO_EVICT] === 'true') return undefined;
  const owner = (metadata.ownerReferences ?? []).find(({ controller }) => controller);
  if (!owner) return 'was made by nobody who would make it again';
  // Its work would begin anew.
  return owner.kind === 'Job' ? 'is of a Job that has not ended' : undefined;
}
