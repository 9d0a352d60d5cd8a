import type { CloudPool, WantedCluster } from '../../../providers/cloud.ts';
import type { Problem } from '../../../providers/contract.ts';
import { gpusOf } from '../../api/gpu.ts';
import { LABELS } from '../../api/group.ts';
import { type DesiredPool, isSizedByCloud } from '../../api/pools.ts';
import type { ConditionType } from '../../api/reasons.ts';
import type { WorkerClusterSpec, WorkerClusterStatus } from '../../api/workercluster.ts';
import { presentSize } from '../../capacity/desired-sizes.ts';
import { type CountedResources, countResources } from '../../clusters/capacity.ts';
import { conditionIsTrue, type Node } from '../../kube/resources.ts';
import { allNodesReady, conditionBefore, type Said, say } from '../conditions.ts';
import { DRIFTED, driftedCondition } from '../drifted.ts';
import type { ManagedFacts } from '../managed/facts.ts';
import { adoptionOf } from '../managed/wish.ts';
import { resourcesCondition } from '../resources-condition.ts';
import { problem } from '../spec-problems.ts';
import { sleepToldBy } from './hibernation.ts';
import type { ModeStrategy, Observed, Settled, SizedView } from './view.ts';

/** The pool without nodes, in which an autoscaler adds none either. */
const atZero = (pool: CloudPool): CloudPool => ({ ...pool, minimum: 0, desired: 0 });

/** A cluster for the clouds' programs. Pure. */
function managedCluster(spec: WorkerClusterSpec, settled: Settled, asleep = false): WantedCluster {
  const { region, zones, version, ranges, profile } = settled;
  const adopt = adoptionOf(spec);
  // An adopted cluster without stated nodes gets no pool of ours.
  const isPoolless = adopt !== undefined && spec.pools === undefined && spec.dataPlaneNodes === undefined;
  const pools = (isPoolless ? [] : settled.pools).map((pool): CloudPool => {
    const type = profile.spec.machineTypes.find((known) => known.name === pool.machineType);
    const limited = Number.isFinite(pool.maximum);
    // A stated number is fixed; otherwise the cloud's autoscaler moves within the range.
    return {
      name: pool.name,
      machineType: pool.machineType,
      minimum: pool.minimum,
      maximum: Math.max(limited ? pool.maximum : 0, pool.count),
      ...(!isSizedByCloud(pool) && { desired: pool.count }),
      spot: pool.spot,
      gpu: gpusOf(type),
      architecture: type?.architecture === 'arm64' ? 'arm64' : 'amd64',
      // Identifies the pool, whatever the cloud calls its node groups.
      labels: { ...pool.labels, [LABELS.pool]: pool.name },
      taints: pool.taints,
      ...(pool.startupTaints?.length && { startupTaints: pool.startupTaints }),
      zones: pool.zones,
    };
  });
  return {
    region,
    zones: [...zones],
    // An adopted cluster without a stated version keeps its version.
    kubernetesVersion: adopt && !spec.kubernetes?.version ? '' : version,
    cidrs: { ...ranges },
    pools: asleep ? pools.map(atZero) : pools,
    authorizedNetworks: [...(spec.networking?.authorizedNetworks ?? [])],
    ...(adopt && { adopt }),
    ...(asleep && { asleep }),
  };
}

/** Longest pool name: node groups are named after it, and clouds limit them. */
const LONGEST_POOL_NAME = 12;
const CONDITIONS = [
  'InfrastructureReady',
  'APIServerAvailable',
  'EveryNodeReady',
  'CredentialsValid',
  DRIFTED,
  'Adopted',
  'Hibernated',
] as const;
const TO_MEND = 'Set spec.drift.policy to Mend, or annotate gardener.cloud/operation=reconcile to mend it once';

/** Mode Managed: the cloud's service (EKS, GKE, AKS) runs the control plane. */
export const managed: ModeStrategy = {
  limits({ cluster, provider, sizes }) {
    const problems: Problem[] = [];
    if (provider && !provider.managed)
      problems.push(problem('mode', `provider ${provider.name} has no managed service; use mode Hosted`));
    if (!cluster.spec.credentialsRef) {
      problems.push(
        problem(
          'credentialsRef',
          `mode Managed needs credentials: name a CredentialsBinding, or a Secret, of namespace ${cluster.metadata.namespace}`,
        ),
      );
    }
    if (cluster.spec.adopt && provider?.managed && !provider.managed.adopts)
      problems.push(problem('adopt', `provider ${provider.name} cannot take over clusters yet`));
    for (const pool of sizes) {
      if (pool.name.length > LONGEST_POOL_NAME)
        problems.push(problem('pools', `the name of pool ${pool.name} is longer than ${LONGEST_POOL_NAME} characters`));
    }
    return problems;
  },

  ask({ cluster, asleep }, settled) {
    const desired = managedCluster(cluster.spec, settled, asleep !== undefined);
    return { problems: settled.provider.managed!.validate(desired, settled.profile), managed: desired };
  },

  observe(view) {
    const facts = view.managed;
    if (!facts?.seen) return asBefore(view);
    const counted = facts.inside && countResources(facts.inside.nodes, facts.inside.pods);
    const essential = [infrastructure(facts), apiServer(facts), everyNode(view, facts)];
    const wrong = essential.find((condition) => condition.status !== 'True');
    return {
      exists: facts.exists,
      ready: wrong
        ? { ...wrong, type: 'Ready', status: 'False' }
        : say('Ready', true, 'ClusterReady', 'the control plane serves, all nodes are Ready'),
      // Not essential for Ready: missing credentials or drift do not stop a running cluster.
      conditions: [
        ...essential,
        facts.credentials,
        facts.drift && driftedCondition(facts.drift, TO_MEND),
        adoptedNote(view.cluster.spec, facts),
        hibernated(view),
        resourcesCondition(counted?.uncounted ?? []),
      ],
      errors: facts.errors,
      usable: facts.access !== undefined,
      status: {
        ...(facts.outputs && {
          kubernetesVersion: plainVersion(facts.outputs.version),
          endpoint: facts.outputs.endpoint,
          // One address that answers or does not, whatever members the cloud runs.
          controlPlane: { desired: 1, ready: facts.access?.ok ? 1 : 0 },
        }),
        ...nodesStatus(view, facts, counted),
        ...(facts.operation && { lastOperation: facts.operation }),
      },
    };
  },

  deletion({ managed: facts }) {
    if (facts?.gone) return { gone: true, begun: true, waiting: say('Deleting', true, 'Gone', 'nothing is left') };
    const codes = [...new Set(facts?.errors.flatMap((error) => error.codes ?? []))];
    const stuck = facts && facts.errors.length > 0;
    const message = stuck
      ? facts.errors.map((error) => error.description).join('; ')
      : (facts?.operation?.description ?? 'waiting for the cloud to delete the cluster');
    const begun = facts?.operation?.type === 'Delete';
    return { gone: false, begun, waiting: say('Deleting', true, stuck ? 'Stuck' : 'InProgress', message, codes) };
  },
};

/** After a restart the last status stays until the first observation. */
function asBefore({ cluster: { status, metadata } }: SizedView): Observed {
  const begun = status?.conditions?.some((condition) => condition.type === 'InfrastructureReady') ?? false;
  const before = <T extends ConditionType<'WorkerCluster'>>(type: T) =>
    conditionBefore('WorkerCluster', status?.conditions, type);
  const current = status?.observedGeneration === metadata.generation;
  const ready = before('Ready');
  return {
    exists: begun,
    ready:
      begun && ready && (current || ready.status === 'False')
        ? ready
        : say('Ready', false, 'Pending', 'queued: the operator is at work on other clusters'),
    conditions: CONDITIONS.map(before),
    errors: (status?.lastErrors ?? []).filter((error) => !error.taskID?.startsWith('spec.')),
    usable: false,
    status: {
      ...(status?.kubernetesVersion && { kubernetesVersion: status.kubernetesVersion }),
      ...(status?.endpoint && { endpoint: status.endpoint }),
      ...(status?.controlPlane && { controlPlane: status.controlPlane }),
      ...(status?.lastOperation && { lastOperation: status.lastOperation }),
      ...lastSeen(status),
    },
  };
}

function infrastructure({ exists, settled, errors, operation, outputs }: ManagedFacts) {
  if (settled) return say('InfrastructureReady', true, 'Applied', 'the cloud was changed to match the spec');
  const codes = [...new Set(errors.flatMap((error) => error.codes ?? []))];
  const failed = errors.length > 0 ? errors.map((error) => error.description).join('; ') : undefined;
  // Only while nothing can exist: after a loss of receipts this proves that nothing must be deleted.
  if (!exists)
    return say(
      'InfrastructureReady',
      false,
      'Pending',
      failed ?? 'queued: the operator is at work on other clusters',
      codes,
    );
  if (failed) return say('InfrastructureReady', false, 'Failed', failed, codes);
  const doing = outputs ? 'Updating' : 'Creating';
  return say(
    'InfrastructureReady',
    false,
    doing,
    operation?.description ?? 'queued: the operator is at work on other clusters',
  );
}

const apiServer = ({ access }: ManagedFacts) =>
  access
    ? say('APIServerAvailable', access.ok, access.ok ? 'AdminCanList' : 'NotReachable', access.message)
    : say('APIServerAvailable', false, 'Starting', 'there is no API server yet');

function everyNode(view: SizedView, { inside, access }: ManagedFacts) {
  if (!inside)
    return say('EveryNodeReady', access ? 'Unknown' : false, 'NotObserved', 'unknown until the API server answers');
  const { current, ready } = countNodes(view, inside.nodes);
  const { least, most } = wantedNodes(view, current);
  if (most === 0 && current === 0) return say('EveryNodeReady', true, 'NoNodes', 'the spec asks for no nodes');
  if (current < least) return say('EveryNodeReady', false, 'ScalingOut', `${ready} of ${least} nodes are Ready`);
  if (current > most)
    return say('EveryNodeReady', false, 'ScalingIn', `${current - most} of ${current} nodes are being removed`);
  return ready === current
    ? allNodesReady(current)
    : say('EveryNodeReady', false, 'NotReady', `${ready} of ${current} nodes are Ready`);
}

/**
 * Nodes that count. Excludes AKS's own extra ones, which would always be a surplus; includes those of an adopted
 * cluster.
 */
function countNodes({ cluster }: SizedView, all: readonly Node[]): { current: number; ready: number } {
  const isOurs = ({ metadata }: Node) => metadata.labels?.[LABELS.pool] !== undefined;
  const nodes = cluster.spec.adopt ? all : all.filter(isOurs);
  return { current: nodes.length, ready: nodes.filter((node) => conditionIsTrue(node, 'Ready')).length };
}

/** Allowed number of nodes: fixed, or the autoscaler's range with `most` clamped to its choice. */
function wantedNodes(view: SizedView, current: number): { least: number; most: number } {
  const { profile, sizes, asleep } = view;
  const foreign = foreignNodes(view);
  if (!profile && !asleep) return { least: current, most: current };
  const sum = (of: (pool: DesiredPool) => number) => sizes.reduce((total, pool) => total + of(pool), foreign);
  const least = sum((pool) => presentSize(pool, { asleep }).present);
  const most = asleep ? least : sum((pool) => (isSizedByCloud(pool) ? pool.maximum : pool.count));
  return { least, most: Math.min(most, Math.max(least, current)) };
}

/** Nodes of an adopted cluster that others manage. */
const foreignNodes = ({ cluster, managed: facts }: SizedView): number =>
  cluster.spec.adopt
    ? (facts?.inside?.nodes ?? []).filter(({ metadata }) => metadata.labels?.[LABELS.pool] === undefined).length
    : 0;

/** Condition Hibernated, once there are hibernation settings. */
function hibernated(view: SizedView): Said<'WorkerCluster'> | undefined {
  const { cluster, profile, managed: facts, asleep, ordered } = view;
  if (!cluster.spec.hibernation && !ordered) return undefined;
  const byOrder = sleepToldBy(ordered);
  if (view.keptAwake) return say('Hibernated', false, 'FallingAsleep', `${view.keptAwake.message}${byOrder}`);
  if (!asleep) return say('Hibernated', false, 'Awake', `the nodes match the spec${byOrder}`);
  const fee = profile?.spec.controlPlaneFee;
  const cost = fee ? `is still billed at ${fee.hourly} ${fee.currency} an hour` : 'is still billed';
  const left = (facts?.inside?.nodes.length ?? 0) - foreignNodes(view);
  return left > 0
    ? say('Hibernated', false, 'FallingAsleep', `${left} nodes are left${byOrder}`)
    : say(
        'Hibernated',
        true,
        'NoNodes',
        `its pools have no nodes; the cloud's control plane goes on, and ${cost}${byOrder}`,
      );
}

function adoptedNote(spec: WorkerClusterSpec, { outputs, planned }: ManagedFacts): Said<'WorkerCluster'> | undefined {
  const adopt = adoptionOf(spec);
  if (!adopt) return undefined;
  if (!outputs)
    return say(
      'Adopted',
      false,
      'Pending',
      planned ? `plan for taking over ${adopt.id}: ${planned}` : `${adopt.id} is being inspected`,
    );
  const then = adopt.deletionPolicy === 'Delete' ? 'is deleted with this object' : 'stays when this object is deleted';
  return say('Adopted', true, 'TakenOver', `${adopt.id} is taken over; it ${then}`);
}

function nodesStatus(
  view: SizedView,
  { inside }: ManagedFacts,
  counted: CountedResources | undefined,
): Partial<WorkerClusterStatus> {
  if (!inside || !counted) return lastSeen(view.cluster.status);
  const { current, ready } = countNodes(view, inside.nodes);
  return {
    nodes: { desired: wantedNodes(view, current).most, current, ready },
    dataPlaneNodes: current,
    resource: counted.resource,
  };
}

/** Nodes as last seen: a lost connection is no loss of nodes. */
const lastSeen = (status: WorkerClusterStatus | undefined): Partial<WorkerClusterStatus> => ({
  ...(status?.nodes && { nodes: status.nodes }),
  ...(status?.dataPlaneNodes !== undefined && { dataPlaneNodes: status.dataPlaneNodes }),
  ...(status?.resource && { resource: status.resource }),
});

/** "1.36" of "1.36", "1.36.3" of "1.36.3-gke.100": comparable by the CRD's rules. */
const plainVersion = (version: string): string => /^\d+\.\d+(\.\d+)?/.exec(version)?.[0] ?? version;
