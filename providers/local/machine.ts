import { LABELS } from '../../operator/api/group.ts';
import { conditionIsTrue, type Pod } from '../../operator/kube/resources.ts';
import type { Machine, MachinePhase } from '../contract.ts';

/** Machine of a machine pod. */
export function machineOf(pod: Pod): Machine {
  const machine: Machine = {
    name: pod.metadata.name,
    pool: pod.metadata.labels?.[LABELS.pool] ?? '',
    nodeName: pod.metadata.name,
    phase: phaseOf(pod),
    ready: !pod.metadata.deletionTimestamp && conditionIsTrue(pod, 'Ready'),
    createdAt: pod.metadata.creationTimestamp ?? '',
  };
  return pod.status?.podIP ? { ...machine, address: pod.status.podIP } : machine;
}

/** Waiting reasons of containers that do not resolve by themselves. */
const HOPELESS = [
  'CrashLoopBackOff',
  'ErrImageNeverPull',
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'CreateContainerConfigError',
];

function phaseOf(pod: Pod): MachinePhase {
  if (pod.metadata.deletionTimestamp) return 'Terminating';
  const { phase, containerStatuses } = pod.status ?? {};
  if (phase === 'Failed' || phase === 'Succeeded') return 'Failed';
  if (containerStatuses?.some(({ state }) => HOPELESS.includes(state?.waiting?.reason ?? ''))) return 'Failed';
  return phase === 'Running' ? 'Running' : 'Pending';
}
