import type { Machine, Pool } from '../../../providers/contract.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import type { LastError, LastOperation } from '../../api/meta.ts';
import { COMPONENTS } from '../../api/names.ts';
import { controlPlaneMembers, type Shoot, type ShootStatus, unactedFields } from '../../api/shoot.ts';
import { conditionIsTrue, type Deployment, type Node, type Pod, type StatefulSet } from '../../kube/resources.ts';
import { say, withConditions } from '../conditions.ts';
import { clusterResource } from './cluster-resource.ts';

/** What is seen of a shoot, for its status. */
export interface ShootFacts {
  readonly shoot: Shoot;
  readonly profile: CloudProfile | undefined;
  readonly technicalID: string;
  readonly seedName: string | undefined;
  readonly version: string | undefined;
  readonly endpoint: string | undefined;
  readonly pools: readonly Pool[];
  /** Whether its machines are in an account of a cloud. */
  readonly inCloud?: boolean | undefined;
  readonly etcd: StatefulSet | undefined;
  readonly apiServer: Deployment | undefined;
  readonly controllerManager: Deployment | undefined;
  readonly scheduler: Deployment | undefined;
  /** Whether the admin's kubeconfig was seen to work and the API server is still in touch; undefined: not tried yet. */
  readonly usable: { ok: boolean; message: string } | undefined;
  /** Absent while there is no line to the API server: then nothing is known about nodes. */
  readonly inside: { nodes: readonly Node[]; pods: readonly Pod[]; machines: readonly Machine[] } | undefined;
  readonly operation: LastOperation | undefined;
  readonly errors: readonly LastError[];
  /** One line for each drain that goes on. */
  readonly draining: readonly string[];
  readonly observedGeneration: number | undefined;
}

/** status of a Shoot, pure. */
export function shootStatus(facts: ShootFacts, now: Date): ShootStatus {
  const { shoot, inside, pools } = facts;
  const before = shoot.status;
  const members = controlPlaneMembers(shoot.spec);
  const ready = Math.min(facts.etcd?.status?.readyReplicas ?? 0, facts.apiServer?.status?.readyReplicas ?? 0);
  const desired = pools.reduce((sum, pool) => sum + pool.count, 0);
  const readyNodes = inside?.nodes.filter((node) => conditionIsTrue(node, 'Ready')) ?? [];
  const machines = inside?.machines.filter((machine) => machine.phase !== 'Terminating') ?? [];
  const readyMachines = machines.filter((machine) =>
    readyNodes.some((node) => node.metadata.name === machine.nodeName),
  );

  const unavailable = [
    [COMPONENTS.etcd, members, facts.etcd?.status?.readyReplicas] as const,
    [COMPONENTS.apiServer, members, facts.apiServer?.status?.readyReplicas] as const,
    [
      COMPONENTS.controllerManager,
      facts.controllerManager?.spec.replicas ?? 1,
      facts.controllerManager?.status?.readyReplicas,
    ] as const,
    [COMPONENTS.scheduler, facts.scheduler?.spec.replicas ?? 1, facts.scheduler?.status?.readyReplicas] as const,
  ].filter(([, wanted, have]) => (have ?? 0) < wanted);
  const apiServer = facts.usable
    ? say(
        'APIServerAvailable',
        facts.usable.ok,
        facts.usable.ok ? 'AdminCanWrite' : 'NotReachable',
        facts.usable.message,
      )
    : say('APIServerAvailable', false, 'Starting', 'the API server is being started');
  const controlPlane =
    unavailable.length === 0
      ? say('ControlPlaneHealthy', true, 'AllReady', 'etcd, API server, controller manager and scheduler are ready')
      : say(
          'ControlPlaneHealthy',
          false,
          'NotReady',
          `not ready: ${unavailable.map(([name, wanted, have]) => `${name} (${have ?? 0} of ${wanted})`).join(', ')}`,
        );
  const everyNode = nodesCondition(facts, desired, machines.length, readyMachines.length);
  const system = systemCondition(facts, desired);
  const unacted = unactedFields(shoot.spec, facts.inCloud);
  const errors = facts.errors.length > 0;
  const all = [apiServer, controlPlane, everyNode, system];
  const wrong = all.find((condition) => condition.status !== 'True');
  const isReady = !wrong && facts.observedGeneration === shoot.metadata.generation;
  const codes = [...new Set(facts.errors.flatMap((error) => error.codes ?? []))];
  const readyCondition = isReady
    ? say('Ready', true, 'ClusterReady', 'the control plane serves, all nodes are Ready')
    : errors
      ? say('Ready', false, 'OperationFailed', facts.errors.map((error) => error.description).join('; '), codes)
      : say('Ready', false, wrong?.reason ?? 'Reconciling', wrong?.message ?? 'the change is being carried out');

  return {
    conditions: withConditions(
      before?.conditions,
      [
        readyCondition,
        ...all,
        facts.draining.length > 0 ? say('Draining', true, 'ScaleIn', facts.draining.join('; ')) : undefined,
        unacted.length > 0
          ? say('AllFieldsActedOn', false, 'KeptOnly', `kept but not acted on yet: ${unacted.join(', ')}`)
          : undefined,
      ],
      now,
    ),
    technicalID: facts.technicalID,
    ...(shoot.metadata.uid && { uid: shoot.metadata.uid }),
    ...(facts.seedName && { seedName: facts.seedName }),
    ...(facts.version && { kubernetesVersion: facts.version }),
    ...(facts.endpoint && {
      advertisedAddresses: [{ name: 'internal', url: facts.endpoint, application: 'kube-apiserver' }],
    }),
    controlPlane: { desired: members, ready },
    nodes: { desired, current: machines.length, ready: readyMachines.length },
    workers: pools.map((pool) => ({
      name: pool.name,
      desired: pool.count,
      current: machines.filter((machine) => machine.pool === pool.name).length,
      ready: readyMachines.filter((machine) => machine.pool === pool.name).length,
    })),
    ...(inside
      ? { resource: clusterResource(inside.nodes, inside.pods) }
      : before?.resource && { resource: before.resource }),
    ...(facts.operation && { lastOperation: facts.operation }),
    lastErrors: [...facts.errors],
    ...(facts.observedGeneration !== undefined && { observedGeneration: facts.observedGeneration }),
  };
}

function nodesCondition(facts: ShootFacts, desired: number, current: number, ready: number) {
  if (!facts.inside) {
    // Without a line to the API server the last word stands, as Unknown: a seed's hiccup is no failure of nodes.
    return desired === 0
      ? say('EveryNodeReady', true, 'NoNodes', 'no nodes are asked for')
      : say(
          'EveryNodeReady',
          facts.usable ? 'Unknown' : false,
          'NotObserved',
          'nodes can be seen once the API server answers',
        );
  }
  if (desired === 0 && current === 0) return say('EveryNodeReady', true, 'NoNodes', 'no nodes are asked for');
  if (ready === desired && current === desired)
    return say('EveryNodeReady', true, 'AllReady', `all ${desired} nodes are Ready`);
  if (current > desired)
    return say('EveryNodeReady', false, 'ScalingIn', `${current - desired} of ${current} nodes are being taken away`);
  return say(
    'EveryNodeReady',
    false,
    current < desired ? 'ScalingOut' : 'NotReady',
    `${ready} of ${desired} nodes are Ready`,
  );
}

function systemCondition(facts: ShootFacts, desired: number) {
  if (desired === 0) return say('SystemComponentsHealthy', true, 'NoNodes', 'without nodes no system components run');
  if (!facts.inside)
    return say(
      'SystemComponentsHealthy',
      facts.usable ? 'Unknown' : false,
      'NotObserved',
      'to be seen once the API server answers',
    );
  const dns = facts.inside.pods.filter(
    (pod) => pod.metadata.labels?.['k8s-app'] === 'kube-dns' && !pod.metadata.deletionTimestamp,
  );
  const ready = dns.filter((pod) => conditionIsTrue(pod, 'Ready')).length;
  return ready > 0
    ? say('SystemComponentsHealthy', true, 'Healthy', 'cluster DNS serves')
    : say('SystemComponentsHealthy', false, 'NotReady', `cluster DNS is not ready yet (${dns.length} pods)`);
}
