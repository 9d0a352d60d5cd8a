import { KUBECONFIG_KEY } from '../../api/names.ts';
import { LIMITS } from '../../api/schema.ts';
import type { WorkerCluster, WorkerClusterStatus } from '../../api/workercluster.ts';
import { type CountedResources, countResources } from '../../clusters/capacity.ts';
import { HELD, type Hold, judgeDeletion } from '../../clusters/deletion-gate.ts';
import { accrue } from '../../cost/accrual.ts';
import { parseMoney } from '../../cost/money.ts';
import { conditionIsTrue, type Node } from '../../kube/resources.ts';
import type { AttachedFacts } from '../attached/facts.ts';
import { allNodesReady, conditionBefore, type Said, type SaidAs, say, withConditions } from '../conditions.ts';
import { isHeld } from '../finalizer.ts';
import { RESOURCES_COUNTED, resourcesCondition } from '../resources-condition.ts';
import { lifetimeOf, warnedAt } from './lifetime.ts';

/** Inputs of a decision about an attached cluster. */
interface AttachedView {
  readonly cluster: WorkerCluster;
  /** Absent: not observed since the start. */
  readonly facts: AttachedFacts | undefined;
  /** Holds that delay its release. */
  readonly holds: readonly Hold[];
}

/** Actions; absent: none. */
export interface AttachedPlan {
  readonly finalizer?: 'add';
  /** No hold is left: close the connection and remove the finalizer. Nothing changes in the cluster. */
  readonly release?: true;
  /** The ttl is over: delete the object. */
  readonly expire?: true;
  /** Next change by time alone. */
  readonly next?: Date;
  readonly status: WorkerClusterStatus;
}

const REGION = 'topology.kubernetes.io/region';
const FROM_LOOKS = ['APIServerAvailable', 'EveryNodeReady', RESOURCES_COUNTED] as const;

const countedIn = ({ facts }: AttachedView): CountedResources | undefined =>
  facts?.inside && countResources(facts.inside.nodes, facts.inside.pods);

/** Plans for a cluster that others made. Pure. */
export function planAttached(view: AttachedView, now: Date): AttachedPlan {
  const { cluster } = view;
  if (cluster.metadata.deletionTimestamp) return planEnd(view, now);
  const { isOver, warning, expiresAt, next } = lifetimeOf(cluster, now);
  const before = cluster.status?.conditions;
  const counted = countedIn(view);
  const looked = conditionsOf(view, counted);
  const ready = readyOf(view, looked);
  const status: WorkerClusterStatus = {
    ...observedStatus(view, counted, now),
    phase: phaseOf(view, ready),
    conditions: [
      ...withConditions<'WorkerCluster'>(before, [ready, ...looked], now),
      ...withConditions<'WorkerCluster'>(warnedAt(cluster, now) ? before : [], [warning], now),
    ],
    ...(expiresAt && { expiresAt }),
  };
  return {
    ...(!isHeld(cluster) && { finalizer: 'add' }),
    ...(isOver && { expire: true }),
    ...(next && { next }),
    status,
  };
}

function phaseOf({ cluster, facts }: AttachedView, ready: Said<'WorkerCluster'>): string {
  if (ready.status === 'True') return 'Ready';
  if (!facts) return cluster.status?.phase ?? 'Pending';
  return facts.identity ? 'Updating' : 'Pending';
}

function planEnd(view: AttachedView, now: Date): AttachedPlan {
  const { cluster, holds } = view;
  const gate = judgeDeletion(holds, false, now);
  const counted = countedIn(view);
  const looked = conditionsOf(view, counted);
  const waiting = gate.open
    ? say('Deleting', true, 'InProgress', 'Coppice no longer watches the cluster, which stays as it is')
    : say('Deleting', true, HELD, gate.message);
  const ready = say('Ready', false, 'Deleting', 'Coppice is disconnecting from the cluster');
  return {
    ...(gate.open && isHeld(cluster) && { release: true }),
    ...(gate.until && { next: gate.until }),
    status: {
      ...observedStatus(view, counted, now),
      phase: 'Deleting',
      conditions: withConditions<'WorkerCluster'>(cluster.status?.conditions, [ready, waiting, ...looked], now),
    },
  };
}

function conditionsOf(
  { cluster, facts }: AttachedView,
  counted: CountedResources | undefined,
): Said<'WorkerCluster'>[] {
  const before = cluster.status?.conditions;
  // After a restart the last conditions stay until the first observation.
  if (!facts) return FROM_LOOKS.flatMap((type) => conditionBefore('WorkerCluster', before, type) ?? []);
  const { refusal, server, inside } = facts;
  if (refusal) {
    const { reason, message, code } = refusal;
    return [
      say('APIServerAvailable', false, reason, message, [code]),
      say('EveryNodeReady', 'Unknown', 'NotObserved', 'unknown until the cluster can be reached'),
    ];
  }
  const serves = say('APIServerAvailable', true, 'Answers', `${server} answers, and is the cluster that it was`);
  if (!inside) return [serves];
  const large = resourcesCondition(counted?.uncounted ?? []);
  return [serves, everyNode(inside.nodes), ...(large ? [large] : [])];
}

function everyNode(nodes: readonly Node[]): Said<'WorkerCluster'> {
  const ready = readyNodes(nodes);
  if (nodes.length === 0) return say('EveryNodeReady', true, 'NoNodes', 'the cluster has no nodes');
  return ready === nodes.length
    ? allNodesReady(ready)
    : say('EveryNodeReady', false, 'NotReady', `${ready} of ${nodes.length} nodes are Ready`);
}

const readyNodes = (nodes: readonly Node[]): number => nodes.filter((node) => conditionIsTrue(node, 'Ready')).length;

/**
 * Condition Ready. Nodes that are not Ready are reported, but do not make the cluster unusable: others decide how many
 * it needs.
 */
function readyOf(
  { facts, cluster }: AttachedView,
  looked: readonly Said<'WorkerCluster'>[],
): SaidAs<'WorkerCluster', 'Ready'> {
  const serves = looked.find((one) => one.type === 'APIServerAvailable');
  if (!facts) {
    const before = conditionBefore('WorkerCluster', cluster.status?.conditions, 'Ready');
    return before ?? say('Ready', false, 'Pending', 'queued: the operator is at work on other clusters');
  }
  if (serves?.status !== 'True') return { ...serves!, type: 'Ready' };
  return say('Ready', true, 'ClusterReady', 'the API server of the cluster answers');
}

function observedStatus(
  { cluster, facts }: AttachedView,
  counted: CountedResources | undefined,
  now: Date,
): WorkerClusterStatus {
  const { spec, metadata, status: before } = cluster;
  // After a restart the last status stays until the first observation.
  if (!facts && before) {
    const { expiresAt: _, ...said } = before;
    return said;
  }
  const ref = spec.attached?.kubeconfigSecretRef;
  const nodes = facts?.inside?.nodes;
  const region = spec.region ?? (nodes ? onlyRegion(nodes) : before?.region);
  const version = facts?.version || before?.kubernetesVersion;
  const endpoint = facts?.server ?? before?.endpoint;
  const identity = facts?.identity ?? before?.clusterIdentity;
  const refusal = facts?.refusal;
  // Cost from the first observation on; an unreachable cluster costs the same.
  const cost = identity && spec.attached?.price ? priced(spec.attached.price, before, now) : before?.cost;
  return {
    mode: 'Attached',
    simulated: false,
    ...(region && { region }),
    ...(version && { kubernetesVersion: version }),
    ...(endpoint && { endpoint }),
    ...(identity && { clusterIdentity: identity }),
    ...(ref && { kubeconfigRef: { name: ref.name, key: ref.key ?? KUBECONFIG_KEY } }),
    ...(facts ? { controlPlane: { desired: 1, ready: refusal ? 0 : 1 } } : asBefore(before, 'controlPlane')),
    ...(nodes && counted
      ? {
          nodes: { desired: nodes.length, current: nodes.length, ready: readyNodes(nodes), asked: nodes.length },
          resource: counted.resource,
        }
      : // A lost connection is no loss of nodes.
        { ...asBefore(before, 'nodes'), ...asBefore(before, 'resource') }),
    ...(cost && { cost }),
    lastErrors: refusal ? [{ taskID: 'attach', description: refusal.message, codes: [refusal.code] }] : [],
    // Observations with an earlier spec do not count for this generation.
    ...(facts?.generation === metadata.generation
      ? { observedGeneration: metadata.generation }
      : asBefore(before, 'observedGeneration')),
  };
}

const asBefore = <K extends keyof WorkerClusterStatus>(before: WorkerClusterStatus | undefined, field: K) =>
  before?.[field] === undefined ? {} : { [field]: before[field] };

function priced(
  { hourly, currency }: { hourly: string; currency: string },
  before: WorkerClusterStatus | undefined,
  now: Date,
) {
  return accrue(before?.cost, now, { hourly: parseMoney(hourly), currency, unpriced: [], unpricedCount: 0 });
}

/** The region of its nodes, if all agree. */
function onlyRegion(nodes: readonly Node[]): string | undefined {
  const regions = new Set(nodes.flatMap(({ metadata }) => metadata.labels?.[REGION] ?? []));
  const [region] = regions;
  // The server is untrusted: check type and length.
  return regions.size === 1 && typeof region === 'string' && region.length <= LIMITS.label ? region : undefined;
}
