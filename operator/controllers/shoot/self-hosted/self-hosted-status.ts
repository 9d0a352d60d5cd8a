import { LABELS } from '../../../api/group.ts';
import { COMPONENTS, controlPlaneMachineName } from '../../../api/names.ts';
import { controlPlaneMembers, controlPlaneWorker, type Shoot, type ShootStatus } from '../../../api/shoot.ts';
import { clusterResource } from '../../../clusters/capacity.ts';
import { conditionIsTrue, type Node, type Pod } from '../../../kube/resources.ts';
import { say } from '../../conditions.ts';
import type { Operation } from '../operation.ts';
import { type RunningFacts, runningFacts, runningStatus } from '../status.ts';

/** What kubeadm runs on each machine of a control plane, as static pods `<component>-<node>` in kube-system. */
const STATIC_PODS = ['etcd', COMPONENTS.apiServer, COMPONENTS.controllerManager, COMPONENTS.scheduler];

/** kubeadm's last mark on a machine that has become part of the control plane. */
export const JOINED_LABEL = 'node-role.kubernetes.io/control-plane';

/** status of a Shoot whose control plane is on machines of its own, as the caches show it. */
export async function selfHostedStatus(op: Operation, shoot: Shoot, now: Date): Promise<ShootStatus> {
  const facts = await runningFacts(op, shoot);
  if (!op.provider.controlPlaneGroup) return statusOnMachines({ ...facts, serves: serves(op) }, now);
  const pool = controlPlaneWorker(shoot.spec)?.name;
  const names = (facts.inside?.nodes ?? [])
    .filter(({ metadata }) => metadata.labels?.[LABELS.pool] === pool)
    .map(({ metadata }) => metadata.name);
  return statusOnMachines({ ...facts, serves: () => true, names }, now);
}

/** Whether a machine of the control plane is up and its API server answers, by its pod in the seed. */
export const serves =
  ({ seed, values }: Operation) =>
  (machine: string): boolean => {
    const pod = seed.pods.get(`${values.namespace}/${machine}`);
    return pod !== undefined && pod.metadata.deletionTimestamp === undefined && conditionIsTrue(pod, 'Ready');
  };

/** What is seen of a shoot whose control plane is on machines of its own, for its status. */
export interface SelfHostedFacts extends RunningFacts {
  /** Whether a machine is up, by name: its node and pods keep saying so for a while after it has gone. */
  readonly serves: (machine: string) => boolean;
  /** Machines of the control plane that are there, where they are not numbered. */
  readonly names?: readonly string[];
}

/** status of a Shoot whose control plane is on machines of its own, pure. What its nodes have is not counted as room for workloads. */
export function statusOnMachines(facts: SelfHostedFacts, now: Date): ShootStatus {
  const { inside, shoot } = facts;
  const desired = controlPlaneMembers(shoot.spec);
  const pool = controlPlaneWorker(shoot.spec)?.name ?? '';
  const names = facts.names ?? Array.from({ length: desired }, (_, ordinal) => controlPlaneMachineName(pool, ordinal));
  const ofEach = inside ? names.map((name) => wanting(name, facts.serves, inside.nodes, inside.pods)) : [];
  const missing = [
    ...ofEach.flat(),
    ...(names.length < desired ? [`${desired - names.length} of ${desired} machines`] : []),
  ];
  const ready = ofEach.filter((what) => what.length === 0).length;
  const healthy = !inside
    ? say('ControlPlaneHealthy', false, 'NotReady', 'to be seen once the API server answers')
    : missing.length === 0
      ? say('ControlPlaneHealthy', true, 'AllReady', 'etcd, API server, controller manager and scheduler are ready')
      : say('ControlPlaneHealthy', false, 'NotReady', `not ready: ${missing.join(', ')}`);
  const forWorkloads = inside?.nodes.filter((node) => node.metadata.labels?.[LABELS.pool] !== pool) ?? [];
  const resource = inside && clusterResource(forWorkloads, inside.pods.filter(runsOn(forWorkloads)));
  return runningStatus(facts, { healthy, desired, ready, resource }, now);
}

const runsOn = (nodes: readonly Node[]) => {
  const names = new Set(nodes.map((node) => node.metadata.name));
  return (pod: Pod) => names.has(pod.spec.nodeName ?? '');
};

/** What of a machine of a control plane is not there or not ready, in words. */
export function wanting(
  name: string,
  isUp: (machine: string) => boolean,
  nodes: readonly Node[],
  pods: readonly Pod[],
): string[] {
  if (!isUp(name)) return [`machine ${name}`];
  const node = nodes.find(({ metadata }) => metadata.name === name);
  if (!node || !conditionIsTrue(node, 'Ready')) return [`node ${name}`];
  const isReady = (pod: string) =>
    pods.some(
      (found) =>
        found.metadata.name === pod && found.metadata.namespace === 'kube-system' && conditionIsTrue(found, 'Ready'),
    );
  return STATIC_PODS.map((component) => `${component}-${name}`).filter((pod) => !isReady(pod));
}
