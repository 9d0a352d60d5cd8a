import { LABELS } from '../../../api/group.ts';
import { controlPlaneMembers, controlPlaneWorker, type Shoot, type ShootStatus } from '../../../api/shoot.ts';
import { countResources } from '../../../clusters/capacity.ts';
import type { Node, Pod } from '../../../kube/resources.ts';
import { ownerOf, tenantSteps } from '../../../kube/tenant-steps.ts';
import { say } from '../../conditions.ts';
import type { Operation } from '../operation.ts';
import { type RunningFacts, runningFacts } from '../status/facts.ts';
import { runningStatus } from '../status/running-status.ts';
import type { ControlPlaneInfrastructure } from './infrastructure.ts';
import { wanting } from './not-ready.ts';

/** kubeadm's last mark on a machine that has become part of the control plane. */
export const JOINED_LABEL = 'node-role.kubernetes.io/control-plane';

/** status of a Shoot whose control plane is on machines of its own, as the caches show it. */
export async function selfHostedStatus(
  op: Operation,
  infrastructure: ControlPlaneInfrastructure,
  shoot: Shoot,
  now: Date,
): Promise<ShootStatus> {
  const facts = await runningFacts(op, shoot);
  const names = infrastructure.names(facts.inside?.nodes ?? [], controlPlaneMembers(shoot.spec));
  const seen = { ...facts, isUp: infrastructure.isUp(op), names };
  return tenantSteps.measure(ownerOf(shoot, 'status'), () => statusOnMachines(seen, now));
}

/** What is seen of a shoot whose control plane is on machines of its own, for its status. */
export interface SelfHostedFacts extends RunningFacts {
  /** See ControlPlaneInfrastructure, which says both. */
  readonly isUp: (machine: string) => boolean;
  readonly names: readonly string[];
}

/** status of a Shoot whose control plane is on machines of its own, pure. What its nodes have is not counted as room for workloads. */
export function statusOnMachines(facts: SelfHostedFacts, now: Date): ShootStatus {
  const { inside, isUp, names, shoot } = facts;
  const desired = controlPlaneMembers(shoot.spec);
  const pool = controlPlaneWorker(shoot.spec)?.name ?? '';
  const ofEach = inside ? names.map((name) => wanting(name, isUp, inside.nodes, inside.pods)) : [];
  const missing = [
    ...ofEach.flat(),
    ...(names.length < desired ? [`${desired - names.length} of ${desired} machines`] : []),
  ];
  const ready = ofEach.filter((what) => what.length === 0).length;
  const healthy = !inside
    ? say('ControlPlaneHealthy', false, 'NotReady', 'unknown until the API server answers')
    : missing.length === 0
      ? say('ControlPlaneHealthy', true, 'AllReady', 'etcd, API server, controller manager and scheduler are ready')
      : say('ControlPlaneHealthy', false, 'NotReady', `not ready: ${missing.join(', ')}`);
  const forWorkloads = inside?.nodes.filter((node) => node.metadata.labels?.[LABELS.pool] !== pool) ?? [];
  const counted = inside && countResources(forWorkloads, inside.pods.filter(runsOn(forWorkloads)));
  return runningStatus(facts, { healthy, desired, ready, ...counted }, now);
}

const runsOn = (nodes: readonly Node[]) => {
  const names = new Set(nodes.map((node) => node.metadata.name));
  return (pod: Pod) => names.has(pod.spec.nodeName ?? '');
};
