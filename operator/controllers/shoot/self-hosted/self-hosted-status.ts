import { LABELS } from '../../../api/group.ts';
import { controlPlaneMembers, controlPlaneWorker, type Shoot, type ShootStatus } from '../../../api/shoot.ts';
import { type CountedResources, countInSteps, countResources } from '../../../clusters/capacity.ts';
import type { Node, Pod } from '../../../kube/resources.ts';
import { stepOwnerOf, tenantSteps } from '../../../kube/tenant-steps.ts';
import { say } from '../../conditions.ts';
import type { Operation } from '../operation.ts';
import { type RunningFacts, runningFacts } from '../status/facts.ts';
import { runningStatus } from '../status/running-status.ts';
import type { ControlPlaneInfrastructure } from './infrastructure.ts';
import { missingParts } from './not-ready.ts';

/** kubeadm's final label on a joined control plane node. */
export const JOINED_LABEL = 'node-role.kubernetes.io/control-plane';

/** Status of a Shoot with a self-hosted control plane, from the caches. */
export async function selfHostedStatus(
  op: Operation,
  infrastructure: ControlPlaneInfrastructure,
  shoot: Shoot,
  now: Date,
): Promise<ShootStatus> {
  const facts = await runningFacts(op, shoot);
  const names = infrastructure.names(facts.inside?.nodes ?? [], controlPlaneMembers(shoot.spec));
  const seen = { ...facts, isUp: infrastructure.isUp(op), names };
  const step = stepOwnerOf(shoot, 'status');
  const room = roomOf(seen);
  const counted = room && (await tenantSteps.run(step, countInSteps(room.nodes, room.pods)));
  return tenantSteps.measure(step, () => statusOnMachines(seen, now, counted));
}

/** Observed state of a shoot with a self-hosted control plane. */
interface SelfHostedFacts extends RunningFacts {
  /** See ControlPlaneInfrastructure for both. */
  readonly isUp: (machine: string) => boolean;
  readonly names: readonly string[];
}

/**
 * Status of a Shoot with a self-hosted control plane. Pure. Control plane nodes are not counted as room for workloads.
 * @param counted resources for workloads; absent: counted here
 */
export function statusOnMachines(facts: SelfHostedFacts, now: Date, counted = countedIn(facts)): ShootStatus {
  const { inside, isUp, names, shoot } = facts;
  const desired = controlPlaneMembers(shoot.spec);
  const ofEach = inside ? names.map((name) => missingParts(name, isUp, inside.nodes, inside.pods)) : [];
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
  return runningStatus(facts, { healthy, desired, ready, ...counted }, now);
}

/** Worker nodes with their pods; undefined: unknown. */
function roomOf({ inside, shoot }: SelfHostedFacts): { nodes: readonly Node[]; pods: readonly Pod[] } | undefined {
  if (!inside) return undefined;
  const pool = controlPlaneWorker(shoot.spec)?.name ?? '';
  const nodes = inside.nodes.filter((node) => node.metadata.labels?.[LABELS.pool] !== pool);
  return { nodes, pods: inside.pods.filter(runsOn(nodes)) };
}

function countedIn(facts: SelfHostedFacts): CountedResources | undefined {
  const room = roomOf(facts);
  return room && countResources(room.nodes, room.pods);
}

const runsOn = (nodes: readonly Node[]) => {
  const names = new Set(nodes.map((node) => node.metadata.name));
  return (pod: Pod) => names.has(pod.spec.nodeName ?? '');
};
