import { COMPONENTS } from '../../../api/names.ts';
import { controlPlaneMembers, type Shoot, type ShootStatus } from '../../../api/shoot.ts';
import { type CountedResources, countInSteps, countResources } from '../../../clusters/capacity.ts';
import type { Deployment, StatefulSet } from '../../../kube/resources.ts';
import { stepOwnerOf, tenantSteps } from '../../../kube/tenant-steps.ts';
import { say } from '../../conditions.ts';
import { codesOfRefusal } from '../../problematic-webhook.ts';
import type { Operation } from '../operation.ts';
import { type RunningFacts, runningFacts } from '../status/facts.ts';
import { runningStatus } from '../status/running-status.ts';
import { because } from '../tasks/blocked-inside.ts';

/** Observed state of a shoot with hosted control plane. */
export interface ShootFacts extends RunningFacts {
  readonly etcd: StatefulSet | undefined;
  readonly apiServer: Deployment | undefined;
  readonly controllerManager: Deployment | undefined;
  readonly scheduler: Deployment | undefined;
}

/** Status of a Shoot with hosted control plane, from the caches. */
export async function hostedStatus(op: Operation, shoot: Shoot, now: Date): Promise<ShootStatus> {
  const { seed, values } = op;
  const ns = values.namespace;
  const facts: ShootFacts = {
    ...(await runningFacts(op, shoot)),
    etcd: seed.statefulSets.get(`${ns}/${COMPONENTS.etcd}`),
    apiServer: seed.deployments.get(`${ns}/${COMPONENTS.apiServer}`),
    controllerManager: seed.deployments.get(`${ns}/${COMPONENTS.controllerManager}`),
    scheduler: seed.deployments.get(`${ns}/${COMPONENTS.scheduler}`),
  };
  const step = stepOwnerOf(shoot, 'status');
  const counted = facts.inside && (await tenantSteps.run(step, countInSteps(facts.inside.nodes, facts.inside.pods)));
  return tenantSteps.measure(step, () => hostedShootStatus(facts, now, counted));
}

/**
 * Status of a Shoot with hosted control plane. Pure. @param counted resources inside of the cluster; absent: counted
 * here
 */
export function hostedShootStatus(
  facts: ShootFacts,
  now: Date,
  counted: CountedResources | undefined = facts.inside && countResources(facts.inside.nodes, facts.inside.pods),
): ShootStatus {
  const members = controlPlaneMembers(facts.shoot.spec);
  const ready = Math.min(facts.etcd?.status?.readyReplicas ?? 0, facts.apiServer?.status?.readyReplicas ?? 0);
  const unavailable = [
    [COMPONENTS.etcd, members, facts.etcd?.status?.readyReplicas] as const,
    [COMPONENTS.apiServer, members, facts.apiServer?.status?.readyReplicas] as const,
    [
      COMPONENTS.controllerManager,
      facts.controllerManager?.spec.replicas || 1,
      facts.controllerManager?.status?.readyReplicas,
    ] as const,
    [COMPONENTS.scheduler, facts.scheduler?.spec.replicas || 1, facts.scheduler?.status?.readyReplicas] as const,
  ].filter(([, wanted, have]) => (have ?? 0) < wanted);
  const blocked = facts.blocked?.get('control-plane');
  const healthy =
    unavailable.length === 0
      ? say('ControlPlaneHealthy', true, 'AllReady', 'etcd, API server, controller manager and scheduler are ready')
      : say(
          'ControlPlaneHealthy',
          false,
          'NotReady',
          `not ready: ${unavailable.map(([name, wanted, have]) => `${name} (${have ?? 0} of ${wanted})`).join(', ')}${because(blocked)}`,
          codesOfRefusal(blocked ?? ''),
        );
  return runningStatus(facts, { healthy, desired: members, ready, ...counted }, now);
}
