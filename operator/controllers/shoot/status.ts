import type { Machine, Pool } from '../../../providers/contract.ts';
import type { MadeOf } from '../../api/acted.ts';
import { findCondition } from '../../api/conditions.ts';
import type { LastError, LastOperation } from '../../api/meta.ts';
import { COMPONENTS } from '../../api/names.ts';
import { controlPlaneMembers, hasServed, type Shoot, type ShootStatus, unactedFields } from '../../api/shoot.ts';
import { clusterResource } from '../../clusters/capacity.ts';
import {
  conditionIsTrue,
  type Deployment,
  keyOf,
  type Node,
  type Pod,
  type StatefulSet,
} from '../../kube/resources.ts';
import { KONNECTIVITY_AGENT_APP } from '../../shoot/konnectivity-agent.ts';
import { endpointURL, namedURL } from '../../shoot/values.ts';
import { say, withConditions } from '../conditions.ts';
import { type DNSOutcome, recordsCondition } from './dns/dns-outcome.ts';
import { outcomesOf } from './dns/dns-records.ts';
import { driftCondition } from './drift/drift.ts';
import { rollLines } from './machines/roll.ts';
import { strayNodes } from './machines/stray-nodes.ts';
import type { Operation } from './operation.ts';
import { type PodProblem, podProblems, problemsText } from './pod-problems.ts';

/** Reason of condition EveryNodeReady while there are Nodes whose machines have gone: the next reconcile takes them away. */
export const NODES_LEAVING = 'NodesLeaving';

type Said = ReturnType<typeof say>;

/** What is known of every shoot, whatever stands behind it. */
export interface CommonFacts {
  readonly shoot: Shoot;
  readonly technicalID: string;
  readonly seedName: string | undefined;
  readonly version: string | undefined;
  /** Ranges in use. */
  readonly networks?: { readonly pods: string; readonly services: string };
  readonly endpoint: string | undefined;
  /** URLs by names that lead to the endpoint, by whose domain they are in. */
  readonly named?: readonly { name: string; url: string }[];
  readonly pools: readonly Pool[];
  readonly madeOf?: MadeOf;
  readonly operation: LastOperation | undefined;
  readonly errors: readonly LastError[];
  readonly observedGeneration: number | undefined;
}

/** What is seen of a shoot whose control plane runs somewhere. */
export interface RunningFacts extends CommonFacts {
  /** Whether the admin's kubeconfig was seen to work and the API server is still in touch; undefined: nobody has asked it yet. */
  readonly usable: { ok: boolean; message: string } | undefined;
  /** Absent while there is no line to the API server: then nothing is known about nodes. */
  readonly inside: { nodes: readonly Node[]; pods: readonly Pod[]; machines: readonly Machine[] } | undefined;
  /** Whether API servers reach the cluster through a tunnel; absent: directly. */
  readonly tunnel?: boolean | undefined;
  /** Whether nothing of the cluster can be reached, since its nodes run no pods; absent: no. */
  readonly nothingRuns?: boolean | undefined;
  /** What of the system components an admission policy of the cluster refused; absent: nothing. */
  readonly systemRefused?: string | undefined;
  /** Pods in the seed that cannot start. */
  readonly problems?: readonly PodProblem[];
  /** One line for each drain that goes on. */
  readonly draining: readonly string[];
  /** What became of the names of the API server. */
  readonly records?: readonly DNSOutcome[];
  /** Condition Drifted; absent: nobody has looked yet, or there is nothing to be looked at. */
  readonly drift?: Said | undefined;
  /** Condition of its backups; absent: it has none. */
  readonly backup?: Said | undefined;
}

/** What is seen of a shoot with a hosted control plane, for its status. */
export interface ShootFacts extends RunningFacts {
  readonly etcd: StatefulSet | undefined;
  readonly apiServer: Deployment | undefined;
  readonly controllerManager: Deployment | undefined;
  readonly scheduler: Deployment | undefined;
}

/** What an operation knows of its shoot; `shoot` as it is now. */
export const commonFacts = (op: Operation, shoot: Shoot, endpoint: string | undefined): CommonFacts => ({
  shoot,
  technicalID: op.values.namespace,
  seedName: op.seed.name,
  version: op.values.version,
  networks: op.values.networks,
  endpoint,
  pools: op.pools,
  madeOf: { inCloud: op.provider.inCloud },
  operation: op.state.operation,
  errors: [...op.state.errors.values()],
  observedGeneration: op.state.settledGeneration ?? shoot.status?.observedGeneration,
});

/** What an operation knows of a shoot whose control plane runs somewhere; `shoot` as it is now. */
export async function runningFacts(op: Operation, shoot: Shoot): Promise<RunningFacts> {
  const { state, values } = op;
  const { connection } = state;
  const records = outcomesOf({ ...op, shoot });
  const named = records
    .filter(({ ready }) => ready)
    .map(({ domain, host }) => ({ name: domain, url: namedURL(host, values) }));
  return {
    ...commonFacts(op, shoot, values.addresses.apiServer ? endpointURL(values) : undefined),
    usable: state.usable,
    inside: connection?.line.answers
      ? {
          nodes: connection.nodes.list(),
          pods: connection.pods.list(),
          machines: await op.provider.listMachines(op.context()),
        }
      : undefined,
    problems: podProblems(op.seed.podsOf(keyOf(shoot))),
    ...(values.machinesOutside && { tunnel: true }),
    ...(values.clusterNetwork === 'none' && { nothingRuns: true }),
    ...(state.systemRefused && { systemRefused: state.systemRefused }),
    draining: [...state.draining.values()],
    ...(records.length > 0 && { records, named }),
    drift: driftCondition(op, shoot),
    backup: op.world.backups.condition(shoot),
  };
}

/** status of a Shoot with a hosted control plane, as the caches show it. */
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
  return shootStatus(facts, now);
}

/** status of a Shoot with a hosted control plane, pure. */
export function shootStatus(facts: ShootFacts, now: Date): ShootStatus {
  const members = controlPlaneMembers(facts.shoot.spec);
  const ready = Math.min(facts.etcd?.status?.readyReplicas ?? 0, facts.apiServer?.status?.readyReplicas ?? 0);
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
  const healthy =
    unavailable.length === 0
      ? say('ControlPlaneHealthy', true, 'AllReady', 'etcd, API server, controller manager and scheduler are ready')
      : say(
          'ControlPlaneHealthy',
          false,
          'NotReady',
          `not ready: ${unavailable.map(([name, wanted, have]) => `${name} (${have ?? 0} of ${wanted})`).join(', ')}`,
        );
  const resource = facts.inside && clusterResource(facts.inside.nodes, facts.inside.pods);
  return runningStatus(facts, { healthy, desired: members, ready, resource }, now);
}

/** What is told of a control plane that runs, wherever it does. */
export interface ControlPlaneSeen {
  /** Condition ControlPlaneHealthy. */
  readonly healthy: Said;
  readonly desired: number;
  readonly ready: number;
  /** What there is for workloads; undefined: nothing is known about nodes. */
  readonly resource: ShootStatus['resource'];
}

/** status of a Shoot whose control plane runs somewhere, pure. */
export function runningStatus(facts: RunningFacts, seen: ControlPlaneSeen, now: Date): ShootStatus {
  const { shoot, inside, pools } = facts;
  const before = shoot.status;
  const desired = desiredNodes(pools);
  const readyNodes = inside?.nodes.filter((node) => conditionIsTrue(node, 'Ready')) ?? [];
  const machines = inside?.machines.filter((machine) => machine.phase !== 'Terminating') ?? [];
  const readyMachines = machines.filter((machine) =>
    readyNodes.some((node) => node.metadata.name === machine.nodeName),
  );
  const { problems = [] } = facts;
  const ofControlPlane = problems.filter(({ machine }) => !machine);
  const serving = facts.usable
    ? say(
        'APIServerAvailable',
        facts.usable.ok,
        facts.usable.ok ? 'AdminCanWrite' : 'NotReachable',
        facts.usable.message,
      )
    : say('APIServerAvailable', false, 'Starting', 'the API server is being started');
  const standing = (condition: Said): Said => lastSaid(facts, condition.type) ?? condition;
  const apiServer = named(standing(serving), ofControlPlane);
  const healthy = named(seen.healthy, ofControlPlane);
  const rolling = rollLines(pools, machines, readyMachines);
  const observed = nodesCondition(facts, desired, machines.length, readyMachines.length, rolling.length > 0);
  const counted = inside ? observed : standing(observed);
  const strays = inside ? strayNodes(shoot, inside.nodes, inside.machines) : [];
  const everyNode = named(
    counted.status === 'True' && strays.length > 0
      ? say(
          'EveryNodeReady',
          false,
          NODES_LEAVING,
          `nodes without a machine are being taken away: ${strays.join(', ')}`,
        )
      : counted,
    problems.filter(({ machine }) => machine),
  );
  const system = inside ? systemCondition(facts, desired) : standing(systemCondition(facts, desired));
  const errors = facts.errors.length > 0;
  const all = [apiServer, healthy, everyNode, system];
  const wrong = all.find((condition) => condition.status !== 'True');
  const isReady = !wrong && facts.observedGeneration === shoot.metadata.generation;
  const codes = [...new Set(facts.errors.flatMap((error) => error.codes ?? []))];
  const readyCondition = isReady
    ? say('Ready', true, 'ClusterReady', 'the control plane serves, all nodes are Ready')
    : errors
      ? say('Ready', false, 'OperationFailed', facts.errors.map((error) => error.description).join('; '), codes)
      : say('Ready', false, wrong?.reason ?? 'Reconciling', wrong?.message ?? 'the change is being carried out');

  const conditions = [
    readyCondition,
    ...all,
    facts.draining.length > 0 ? say('Draining', true, 'ScaleIn', facts.draining.join('; ')) : undefined,
    rolling.length > 0 ? say('Rolling', true, 'MachinesOutdated', rolling.join('; ')) : undefined,
    recordsCondition(facts.records ?? [], shoot),
    facts.drift,
    facts.backup,
  ];
  const controlPlane = { desired: seen.desired, ready: seen.ready };
  const resource = seen.resource ?? before?.resource;
  const told = { controlPlane, machines, readyMachines, ...(resource && { resource }) };
  const status = statusOf(facts, told, conditions, now);
  // A line that is down is no loss of nodes: they are told as they were last seen.
  return inside || !before?.nodes ? status : { ...status, ...lastSeen(before, desired) };
}

/**
 * What was said last of a cluster that has served, while nobody has asked its API server yet: an operator that starts anew would otherwise
 * tell of an outage of each cluster.
 */
function lastSaid({ shoot, usable }: RunningFacts, type: string): Said | undefined {
  const last = usable || !hasServed(shoot) ? undefined : findCondition(shoot.status?.conditions, type);
  return last && { type, status: last.status, reason: last.reason, message: last.message };
}

/** The condition with the pods that keep it from being True, and Kubernetes' own word for it. */
const named = (condition: Said, [problem, ...more]: readonly PodProblem[]): Said =>
  condition.status === 'True' || !problem
    ? condition
    : {
        ...condition,
        reason: problem.reason,
        message: `${condition.message}; ${problemsText([problem, ...more])}`,
      };

const lastSeen = ({ nodes, workers }: ShootStatus, desired: number): Partial<ShootStatus> => ({
  ...(nodes && { nodes: { ...nodes, desired } }),
  ...(workers && { workers }),
});

/** What every shoot's status has, whatever stands behind it. */
export function statusOf(
  facts: CommonFacts,
  seen: {
    controlPlane: NonNullable<ShootStatus['controlPlane']>;
    machines: readonly Machine[];
    readyMachines: readonly Machine[];
    resource?: NonNullable<ShootStatus['resource']>;
  },
  conditions: Parameters<typeof withConditions>[1],
  now: Date,
): ShootStatus {
  const { shoot, pools } = facts;
  const { controlPlane, machines, readyMachines, resource } = seen;
  const unacted = unactedFields(shoot.spec, facts.madeOf);
  const inPool = (name: string, list: readonly Machine[]) => list.filter(({ pool }) => pool === name).length;
  return {
    conditions: withConditions(
      shoot.status?.conditions,
      [
        ...conditions,
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
    ...(facts.networks && {
      networking: { pods: [facts.networks.pods], services: [facts.networks.services] },
    }),
    ...(facts.endpoint && {
      advertisedAddresses: [{ name: 'internal', url: facts.endpoint }, ...(facts.named ?? [])].map((address) => ({
        ...address,
        application: 'kube-apiserver',
      })),
    }),
    controlPlane,
    nodes: { desired: desiredNodes(pools), current: machines.length, ready: readyMachines.length },
    workers: pools.map(({ name, count }) => ({
      name,
      desired: count,
      current: inPool(name, machines),
      ready: inPool(name, readyMachines),
    })),
    ...(resource && { resource }),
    ...(facts.operation && { lastOperation: facts.operation }),
    lastErrors: [...facts.errors],
    ...(facts.observedGeneration !== undefined && { observedGeneration: facts.observedGeneration }),
  };
}

/** How many nodes are asked for. */
export const desiredNodes = (pools: readonly Pool[]): number => pools.reduce((sum, pool) => sum + pool.count, 0);

/** Condition EveryNodeReady. @param rolling whether machines are being replaced, of which some come before others go */
export function nodesCondition(
  facts: Pick<RunningFacts, 'usable'> & { inside: unknown },
  desired: number,
  current: number,
  ready: number,
  rolling = false,
) {
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
  if (rolling && ready >= desired)
    return say('EveryNodeReady', true, 'AllReady', `all ${desired} nodes are Ready, while machines are replaced`);
  if (current > desired && !rolling)
    return say('EveryNodeReady', false, 'ScalingIn', `${current - desired} of ${current} nodes are being taken away`);
  return say(
    'EveryNodeReady',
    false,
    current < desired ? 'ScalingOut' : 'NotReady',
    `${ready} of ${desired} nodes are Ready`,
  );
}

function systemCondition(facts: RunningFacts, desired: number) {
  if (desired === 0) return say('SystemComponentsHealthy', true, 'NoNodes', 'without nodes no system components run');
  if (!facts.inside)
    return say(
      'SystemComponentsHealthy',
      facts.usable ? 'Unknown' : false,
      'NotObserved',
      'to be seen once the API server answers',
    );
  if (facts.systemRefused)
    return say(
      'SystemComponentsHealthy',
      false,
      'RefusedByAdmission',
      `an admission policy of the cluster refuses what the operator applies; leave kube-system out of it: ${facts.systemRefused}`,
    );
  const { pods } = facts.inside;
  const podsOf = (app: string) =>
    pods.filter((pod) => pod.metadata.labels?.['k8s-app'] === app && !pod.metadata.deletionTimestamp);
  const isReady = (pod: Pod) => conditionIsTrue(pod, 'Ready');
  const dns = podsOf('kube-dns');
  const agents = podsOf(KONNECTIVITY_AGENT_APP);
  if (!dns.some(isReady))
    return say('SystemComponentsHealthy', false, 'NotReady', `cluster DNS is not ready yet (${dns.length} pods)`);
  if (facts.tunnel && !agents.some(isReady))
    return say(
      'SystemComponentsHealthy',
      false,
      'TunnelDown',
      `no agent of the tunnel is connected to an API server (${agents.length} pods): kubectl logs, exec and port-forward, ` +
        'aggregated APIs and webhooks in the cluster do not work',
    );
  if (facts.nothingRuns)
    return say(
      'SystemComponentsHealthy',
      true,
      'Simulated',
      'nodes are simulated and run no pods: there is none that kubectl logs, exec and proxy, webhooks or aggregated APIs could reach',
    );
  const what = facts.tunnel ? 'cluster DNS serves, the tunnel from the API server is open' : 'cluster DNS serves';
  return say('SystemComponentsHealthy', true, 'Healthy', what);
}
