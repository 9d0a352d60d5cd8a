import { OTHERS_ANNOTATIONS } from '../../api/group.ts';
import { isMovable } from '../../kube/pods.ts';
import type { Node, Pod } from '../../kube/resources.ts';

const { doNotDisrupt, safeToEvict, scaleDownDisabled } = OTHERS_ANNOTATIONS;

/** Why a node must not be drained, whatever room there is; undefined: it may. Pure. */
export function whyNodeStays(node: Node, pods: readonly Pod[]): string | undefined {
  const marks = node.metadata.annotations ?? {};
  const mark = [scaleDownDisabled, doNotDisrupt].find((key) => isSet(marks[key]));
  if (mark) return `its annotation ${mark} says so`;
  for (const pod of pods) {
    const why = isMovable(pod) && !pod.metadata.deletionTimestamp && whyPodStays(pod);
    if (why) return `pod ${pod.metadata.namespace}/${pod.metadata.name} ${why}`;
  }
  return undefined;
}

const isSet = (value: string | undefined): boolean => value !== undefined && value !== 'false';

/** Why a pod must not be moved, the end of a sentence; undefined: it may. Pure. */
export function whyPodStays({ metadata }: Pod): string | undefined {
  const marks = metadata.annotations ?? {};
  // A duration counts as `true`: pods' start times are not tracked.
  if (isSet(marks[doNotDisrupt])) return `has annotation ${doNotDisrupt}`;
  if (marks[safeToEvict] === 'false') return `has annotation ${safeToEvict}: "false"`;
  if (marks[safeToEvict] === 'true') return undefined;
  const owner = (metadata.ownerReferences ?? []).find(({ controller }) => controller);
  if (!owner) return 'has no controller that would create it again';
  // A Job's pod would start its work again.
  return owner.kind === 'Job' ? 'is of a Job that has not ended' : undefined;
}
