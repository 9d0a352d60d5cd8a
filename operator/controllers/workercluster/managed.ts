import type { CloudPool, ManagedCluster } from '../../../providers/cloud.ts';
import type { Problem } from '../../../providers/contract.ts';
import { findCondition } from '../../api/conditions.ts';
import { LABELS } from '../../api/group.ts';
import { poolsOf } from '../../api/pools.ts';
import { parseCount } from '../../api/quantity.ts';
import type { WorkerClusterStatus } from '../../api/workercluster.ts';
import { conditionIsTrue, type Node } from '../../kube/resources.ts';
import { say } from '../conditions.ts';
import type { ManagedFacts } from '../managed/facts.ts';
import { clusterResource } from '../shoot/cluster-resource.ts';
import {
  type ModeStrategy,
  type Observed,
  problem,
  type Said,
  type Settled,
  type WorkerClusterView,
  withoutTime,
} from './view.ts';

/** Names of node groups are made of it, and clouds have short ones. */
const LONGEST_POOL_NAME = 12;
const CONDITIONS = ['InfrastructureReady', 'APIServerAvailable', 'EveryNodeReady', 'CredentialsValid', 'Drifted'];
/** Of what drifted, so many are named. */
const DRIFT_SHOWN = 10;

/** The cloud's own service (EKS, GKE, AKS) runs the control plane. */
export const managed: ModeStrategy = {
  limits({ cluster, provider, profile }) {
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
    for (const pool of profile ? poolsOf(cluster, profile) : []) {
      if (pool.name.length > LONGEST_POOL_NAME)
        problems.push(problem('pools', `the name of pool ${pool.name} is longer than ${LONGEST_POOL_NAME} characters`));
    }
    return problems;
  },

  ask({ cluster }, settled) {
    const desired = managedCluster(cluster.spec.networking?.authorizedNetworks ?? [], settled);
    return { problems: settled.provider.managed!.validate(desired, settled.profile), managed: desired };
  },

  observe(view) {
    const facts = view.managed;
    if (!facts?.seen) return asBefore(view);
    const essential = [infrastructure(facts), apiServer(facts), everyNode(view, facts)];
    const wrong = essential.find((condition) => condition.status !== 'True');
    return {
      exists: facts.exists,
      ready: wrong
        ? { ...wrong, type: 'Ready', status: 'False' }
        : say('Ready', true, 'ClusterReady', 'the control plane serves, all nodes are Ready'),
      // Not essential: what runs goes on running without credentials, and drifted.
      conditions: [...essential, facts.credentials, drifted(facts)],
      errors: facts.errors,
      usable: facts.access !== undefined,
      status: {
        ...(facts.outputs && {
          kubernetesVersion: plainVersion(facts.outputs.version),
          endpoint: facts.outputs.endpoint,
          // However many members the cloud runs: one address, which answers or does not.
          controlPlane: { desired: 1, ready: facts.access?.ok ? 1 : 0 },
        }),
        ...nodesStatus(view, facts),
        ...(facts.operation && { lastOperation: facts.operation }),
      },
    };
  },

  leave({ managed: facts }) {
    if (facts?.gone) return { gone: true, waiting: say('Deleting', true, 'Gone', 'nothing is left') };
    const codes = [...new Set(facts?.errors.flatMap((error) => error.codes ?? []))];
    const stuck = facts && facts.errors.length > 0;
    const message = stuck
      ? facts.errors.map((error) => error.description).join('; ')
      : (facts?.operation?.description ?? 'waiting for the cloud to take the cluster down');
    return { gone: false, waiting: say('Deleting', true, stuck ? 'Stuck' : 'InProgress', message, codes) };
  },
};

/** A cluster as the cloud's programs take it. */
function managedCluster(authorizedNetworks: readonly string[], settled: Settled): ManagedCluster {
  const { region, zones, version, ranges, profile } = settled;
  const pools = settled.pools.map((pool): CloudPool => {
    const type = profile.spec.machineTypes.find((known) => known.name === pool.machineType);
    const limited = Number.isFinite(pool.maximum);
    // Where the spec says how many nodes there are, nobody else may; otherwise the cloud's autoscaler moves between the two.
    const autoscaled = limited && pool.maximum > pool.minimum && settled.autoscaled;
    return {
      name: pool.name,
      machineType: pool.machineType,
      minimum: pool.minimum,
      maximum: Math.max(limited ? pool.maximum : 0, pool.count),
      ...(!autoscaled && { desired: pool.count }),
      spot: pool.spot,
      gpu: parseCount(type?.gpu ?? 0),
      architecture: type?.architecture === 'arm64' ? 'arm64' : 'amd64',
      // By it everybody tells pools apart, whatever a cloud calls its node groups.
      labels: { ...pool.labels, [LABELS.pool]: pool.name },
      taints: pool.taints,
      zones: pool.zones,
    };
  });
  return {
    region,
    zones: [...zones],
    kubernetesVersion: version,
    cidrs: { ...ranges },
    pools,
    authorizedNetworks: [...authorizedNetworks],
  };
}

/** The operator has just started: what it said before is as good as anything until it has looked. */
function asBefore({ cluster: { status, metadata } }: WorkerClusterView): Observed {
  const begun = status?.conditions?.some((condition) => condition.type === 'InfrastructureReady') ?? false;
  const before = (type: string) => withoutTime(findCondition(status?.conditions, type));
  const current = status?.observedGeneration === metadata.generation;
  const ready = before('Ready');
  return {
    exists: begun,
    ready:
      begun && ready && (current || ready.status === 'False')
        ? ready
        : say('Ready', false, 'Pending', 'waiting for its turn'),
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

function infrastructure({ exists, settled, errors, operation, outputs }: ManagedFacts): Said {
  if (settled) return say('InfrastructureReady', true, 'Applied', 'the cloud was made to be as described');
  const codes = [...new Set(errors.flatMap((error) => error.codes ?? []))];
  const failed = errors.length > 0 ? errors.map((error) => error.description).join('; ') : undefined;
  // Until something may be there: by this the operator knows after a loss of its records that there is nothing to take away.
  if (!exists) return say('InfrastructureReady', false, 'Pending', failed ?? 'waiting for its turn', codes);
  if (failed) return say('InfrastructureReady', false, 'Failed', failed, codes);
  const doing = outputs ? 'Updating' : 'Creating';
  return say('InfrastructureReady', false, doing, operation?.description ?? 'waiting for its turn');
}

const apiServer = ({ access }: ManagedFacts): Said =>
  access
    ? say('APIServerAvailable', access.ok, access.ok ? 'AdminCanList' : 'NotReachable', access.message)
    : say('APIServerAvailable', false, 'Starting', 'there is no API server yet');

function everyNode(view: WorkerClusterView, { inside, access }: ManagedFacts): Said {
  if (!inside)
    return say('EveryNodeReady', access ? 'Unknown' : false, 'NotObserved', 'to be seen once the API server answers');
  const { current, ready } = countNodes(inside.nodes);
  const { least, most } = wantedNodes(view, current);
  if (most === 0 && current === 0) return say('EveryNodeReady', true, 'NoNodes', 'no nodes are asked for');
  if (current < least) return say('EveryNodeReady', false, 'ScalingOut', `${ready} of ${least} nodes are Ready`);
  if (current > most)
    return say('EveryNodeReady', false, 'ScalingIn', `${current - most} of ${current} nodes are being taken away`);
  return ready === current
    ? say('EveryNodeReady', true, 'AllReady', `all ${current} nodes are Ready`)
    : say('EveryNodeReady', false, 'NotReady', `${ready} of ${current} nodes are Ready`);
}

/** The nodes of our pools. AKS has some of its own, which nobody asked for and which would count as too many for ever. */
function countNodes(nodes: readonly Node[]): { current: number; ready: number } {
  const ours = nodes.filter(({ metadata }) => metadata.labels?.[LABELS.pool] !== undefined);
  return { current: ours.length, ready: ours.filter((node) => conditionIsTrue(node, 'Ready')).length };
}

/** How many nodes there may be: one number, or what the autoscaler is free to choose from. `most` is clamped to what it chose. */
function wantedNodes({ cluster, profile }: WorkerClusterView, current: number): { least: number; most: number } {
  if (!profile) return { least: current, most: current };
  const pools = poolsOf(cluster, profile);
  const sum = (of: (pool: (typeof pools)[number]) => number) => pools.reduce((total, pool) => total + of(pool), 0);
  const count = sum((pool) => pool.count);
  if (!isAutoscaled(cluster.spec)) return { least: count, most: count };
  const most = sum((pool) => pool.maximum);
  return { least: count, most: Math.min(most, Math.max(count, current)) };
}

/** Whether the spec leaves the number of nodes to an autoscaler: it gives pools room, and no number. */
export const isAutoscaled = (spec: WorkerClusterView['cluster']['spec']): boolean => spec.dataPlaneNodes === undefined;

function drifted({ drift }: ManagedFacts): Said | undefined {
  if (!drift) return undefined;
  if (drift.length === 0) return say('Drifted', false, 'AsApplied', 'the cloud is as it was made');
  const named = drift
    .slice(0, DRIFT_SHOWN)
    .map(({ operation, resource, properties }) =>
      properties?.length ? `${operation} ${resource} (${properties.join(', ')})` : `${operation} ${resource}`,
    );
  const more = drift.length > DRIFT_SHOWN ? ` and ${drift.length - DRIFT_SHOWN} more` : '';
  return say(
    'Drifted',
    true,
    'ChangedByOthers',
    `to be as it was made, the cloud would need: ${named.join('; ')}${more}. Set spec.drift.policy to Mend, or annotate gardener.cloud/operation=reconcile to mend it once`,
  );
}

function nodesStatus(view: WorkerClusterView, { inside }: ManagedFacts): Partial<WorkerClusterStatus> {
  if (!inside) return lastSeen(view.cluster.status);
  const { current, ready } = countNodes(inside.nodes);
  return {
    nodes: { desired: wantedNodes(view, current).most, current, ready },
    dataPlaneNodes: current,
    resource: clusterResource(inside.nodes, inside.pods),
  };
}

/** Nodes as they were when they were last seen: a line that is down is no loss of nodes. */
const lastSeen = (status: WorkerClusterStatus | undefined): Partial<WorkerClusterStatus> => ({
  ...(status?.nodes && { nodes: status.nodes }),
  ...(status?.dataPlaneNodes !== undefined && { dataPlaneNodes: status.dataPlaneNodes }),
  ...(status?.resource && { resource: status.resource }),
});

/** "1.36" of "1.36", "1.36.3" of "1.36.3-gke.100": what the CRD's rules can compare. */
const plainVersion = (version: string): string => /^\d+\.\d+(\.\d+)?/.exec(version)?.[0] ?? version;
