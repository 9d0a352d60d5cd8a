import { ANNOTATIONS, LABELS, ROLES } from '../../api/group.ts';
import type { Pod } from '../../kube/resources.ts';

/** A shoot's pod in the seed that cannot start by itself. */
export interface PodProblem {
  readonly pod: string;
  /** Kubernetes' reason: ErrImagePull, CrashLoopBackOff, Unschedulable and the like. */
  readonly reason: string;
  /** A clause for people. */
  readonly message: string;
  /** A worker machine; otherwise part of the control plane. */
  readonly machine: boolean;
}

/** Reason of a pod whose image is being built. */
export const IMAGE_IS_MADE = 'ImageIsMade';
/** Reason of a pod whose image build failed and will be retried. */
const IMAGE_CANNOT_BE_MADE = 'ImageCannotBeMade';
/** Marker of a full seed in messages. */
const IS_FULL = 'the seed is full';
/** Longest message of kubelet or scheduler, characters. */
const LONGEST = 300;
/** Most reported reasons. */
const MOST_TOLD = 5;
/** kubelet alternates between these: reporting each would cause writes. */
const PULLS = ['ErrImagePull', 'ImagePullBackOff'];
/** Container reasons that do not resolve by waiting. */
const STUCK = [
  'CrashLoopBackOff',
  'InvalidImageName',
  'ErrImageNeverPull',
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
];

/** Pods that cannot start with reasons, by name. Pure. Excludes slow pods, except while an image is built. */
export function podProblems(pods: readonly Pod[]): PodProblem[] {
  const lasting = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const machines = lasting.filter(isMachine);
  const fit = { placed: machines.filter(({ spec }) => spec.nodeName).length, all: machines.length };
  return lasting
    .flatMap((pod) => {
      const machine = isMachine(pod);
      const why = whyStuck(pod, machine ? fit : undefined);
      return why ? [{ pod: pod.metadata.name, machine, ...why }] : [];
    })
    .sort((a, b) => a.pod.localeCompare(b.pod));
}

/** Reasons of a condition whose pods cannot start. */
export type PodReason = 'PodsCannotStart' | 'SeedFull' | typeof IMAGE_IS_MADE | typeof IMAGE_CANNOT_BE_MADE;

/** Our reason for a problem; Kubernetes' reason is in the message. Pure. */
export function reasonOfPod({ reason, message }: PodProblem): PodReason {
  if (reason === IMAGE_IS_MADE || reason === IMAGE_CANNOT_BE_MADE) return reason;
  return reason === 'Unschedulable' && message.includes(IS_FULL) ? 'SeedFull' : 'PodsCannotStart';
}

const isMachine = ({ metadata }: Pod): boolean => metadata.labels?.[LABELS.role] === ROLES.machine;

/** Scheduled machines of a cluster, and their total. */
interface Fit {
  readonly placed: number;
  readonly all: number;
}

/** Text about problems: one clause per group of similar pods, naming the first. There may be hundreds. */
export function problemsText(problems: readonly PodProblem[]): string {
  const alike = Map.groupBy(problems, ({ reason, message }) => `${reason}: ${message}`);
  const clauses = [...alike].map(([why, pods]) => {
    const more = pods.length > 1 ? ` and ${pods.length - 1} more` : '';
    return `pod ${pods[0]!.pod}${more} cannot start: ${why}`;
  });
  const untold = clauses.length > MOST_TOLD ? [`${clauses.length - MOST_TOLD} more reasons, see the pods`] : [];
  return [...clauses.slice(0, MOST_TOLD), ...untold].join('; ');
}

function whyStuck(
  { metadata, spec, status }: Pod,
  fit: Fit | undefined,
): Pick<PodProblem, 'reason' | 'message'> | undefined {
  const placed = status?.conditions?.find(({ type }) => type === 'PodScheduled');
  if (placed?.status === 'False' && placed.reason === 'Unschedulable')
    return { reason: placed.reason, message: bounded(whyUnschedulable(placed.message, fit)) };
  for (const container of [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]) {
    const { reason = '', message } = container.state?.waiting ?? {};
    // Image pulls give up before a long build ends, and retry.
    const making = ['ContainerCreating', ...PULLS].includes(reason) && imageMaking(metadata.annotations);
    if (making) return making;
    if (PULLS.includes(reason)) {
      const image = [...(spec.initContainers ?? []), ...spec.containers].find(({ name }) => name === container.name);
      return { reason: PULLS[0]!, message: `image ${image?.image ?? container.name} cannot be pulled` };
    }
    const ended = container.lastState?.terminated;
    if (STUCK.includes(reason))
      return {
        reason,
        message: bounded(
          ended ? `container ${container.name} ended with code ${ended.exitCode}` : (message ?? container.name),
        ),
      };
  }
  return undefined;
}

/** kube-scheduler's message without its preemption part, which never applies in a seed. */
function whyUnschedulable(message = 'no node of the seed fits it', fit?: Fit): string {
  const said = message.replace(/\.? (no new claims to deallocate, )?preemption: .*$/s, '');
  if (!said.includes('Insufficient')) return said;
  if (!fit?.placed) return `${said}: ${IS_FULL}, so ask for fewer or smaller machines, or give it more nodes`;
  // Other clusters of the seed use the rest.
  return `${said}: ${IS_FULL}, and has room for ${fit.placed} of the ${fit.all} machines of this cluster; scale it to ${fit.placed}, or give the seed more nodes`;
}

/** The garden's text about an image that it builds. */
function imageMaking(
  annotations: Pod['metadata']['annotations'] = {},
): Pick<PodProblem, 'reason' | 'message'> | undefined {
  const { [ANNOTATIONS.imageFailure]: failure, [ANNOTATIONS.imageProgress]: progress } = annotations;
  if (failure !== undefined) return { reason: IMAGE_CANNOT_BE_MADE, message: bounded(failure) };
  return progress === undefined ? undefined : { reason: IMAGE_IS_MADE, message: bounded(progress) };
}

const bounded = (text: string): string => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);
