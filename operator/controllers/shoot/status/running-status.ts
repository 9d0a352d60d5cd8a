import { WAKING } from '../../../api/conditions.ts';
import type { ConditionType, SaidOf } from '../../../api/reasons.ts';
import { hasServed, type ShootStatus } from '../../../api/shoot.ts';
import { conditionIsTrue } from '../../../kube/resources.ts';
import { conditionBefore, type SaidAs, say } from '../../conditions.ts';
import { resourcesCondition } from '../../resources-condition.ts';
import { recordsCondition } from '../dns/dns-outcome.ts';
import { rollLines } from '../machines/roll.ts';
import { strayNodes } from '../machines/stray-nodes.ts';
import { type PodProblem, type PodReason, problemsText, reasonOfPod } from '../pod-problems.ts';
import { addonsCondition } from './addons-condition.ts';
import type { RunningFacts } from './facts.ts';
import { drainingCondition, NODES_LEAVING, nodesCondition, systemCondition } from './node-conditions.ts';
import { desiredNodes, shootStatusOf } from './status-of.ts';

/** Facts about a running control plane, in any place. */
interface ControlPlaneSeen {
  /** Condition ControlPlaneHealthy. */
  readonly healthy: SaidAs<'Shoot', 'ControlPlaneHealthy'>;
  readonly desired: number;
  readonly ready: number;
  /** Resources for workloads; undefined: nodes are unknown. */
  readonly resource?: ShootStatus['resource'] | undefined;
  /** Objects whose amounts are too large for `resource`; see CountedResources. Absent: none. */
  readonly uncounted?: readonly string[] | undefined;
}

/** Status of a Shoot with a running control plane. Pure. */
export function runningStatus(facts: RunningFacts, seen: ControlPlaneSeen, now: Date): ShootStatus {
  const { shoot, inside, pools } = facts;
  const before = shoot.status;
  const desired = desiredNodes(pools);
  const readyNodes = inside?.nodes.filter((node) => conditionIsTrue(node, 'Ready')) ?? [];
  const machines = inside?.machines.filter((machine) => machine.phase !== 'Terminating') ?? [];
  const readyNames = new Set(readyNodes.map(({ metadata }) => metadata.name));
  const readyMachines = machines.filter(({ nodeName }) => nodeName !== undefined && readyNames.has(nodeName));
  const { problems = [] } = facts;
  const ofControlPlane = problems.filter(({ machine }) => !machine);
  const serving = facts.usable
    ? say(
        'APIServerAvailable',
        facts.usable.ok,
        facts.usable.ok ? 'AdminCanWrite' : 'NotReachable',
        facts.usable.message,
      )
    : facts.operation?.type === 'Wake'
      ? say('APIServerAvailable', false, WAKING, 'the cluster wakes: its API server is being started')
      : say('APIServerAvailable', false, 'Starting', 'the API server is being started');
  const apiServer = named(lastSaid(facts, 'APIServerAvailable') ?? serving, ofControlPlane);
  const healthy = named(seen.healthy, ofControlPlane);
  const ofPools = rollLines(pools, machines, readyMachines);
  const rolling = [...(facts.replacing ? [facts.replacing] : []), ...ofPools];
  const observed = nodesCondition(facts, desired, machines.length, readyMachines.length, ofPools.length > 0);
  const counted = (inside ? undefined : lastSaid(facts, 'EveryNodeReady')) ?? observed;
  const strays = inside ? strayNodes(shoot, inside.nodes, inside.machines) : [];
  const everyNode = named(
    counted.status === 'True' && strays.length > 0
      ? say('EveryNodeReady', false, NODES_LEAVING, `nodes without a machine are being removed: ${strays.join(', ')}`)
      : withRepairs(counted, inside ? (facts.repairing ?? []) : []),
    problems.filter(({ machine }) => machine),
  );
  const system = (inside ? undefined : lastSaid(facts, 'SystemComponentsHealthy')) ?? systemCondition(facts, desired);
  const errors = facts.errors.length > 0;
  const all = [apiServer, healthy, everyNode, system];
  const wrong = all.find((condition) => condition.status !== 'True');
  const isReady = !wrong && facts.observedGeneration === shoot.metadata.generation;
  const codes = [...new Set(facts.errors.flatMap((error) => error.codes ?? []))];
  const readyCondition = isReady
    ? say('Ready', true, 'ClusterReady', 'the control plane serves, all nodes are Ready')
    : errors
      ? say('Ready', false, 'OperationFailed', facts.errors.map((error) => error.description).join('; '), codes)
      : say(
          'Ready',
          false,
          wrong?.reason ?? 'Reconciling',
          wrong?.message ?? 'the change is being carried out',
          wrong?.codes,
        );

  const conditions = [
    readyCondition,
    ...all,
    drainingCondition(facts.draining),
    rolling.length > 0 ? say('Rolling', true, 'MachinesOutdated', rolling.join('; ')) : undefined,
    addonsCondition(facts, desired),
    recordsCondition(facts.records ?? [], shoot),
    facts.drift,
    facts.encryption,
    facts.backup,
    resourcesCondition(seen.uncounted ?? []),
  ];
  const controlPlane = { desired: seen.desired, ready: seen.ready };
  const resource = seen.resource ?? before?.resource;
  const told = { controlPlane, machines, readyMachines, ...(resource && { resource }) };
  const status = shootStatusOf(facts, told, conditions, now);
  // A lost connection is no loss of nodes: report them as last seen.
  return inside || !before?.nodes ? status : { ...status, ...lastSeen(before, desired) };
}

/**
 * Last condition of a cluster that served, until its API server was probed: a restarted operator would otherwise report
 * an outage for each cluster.
 */
function lastSaid<T extends ConditionType<'Shoot'>>(
  { shoot, usable, operation }: RunningFacts,
  type: T,
): SaidAs<'Shoot', T> | undefined {
  const isLastWord = usable === undefined && hasServed(shoot) && operation?.type !== 'Wake';
  return isLastWord ? conditionBefore('Shoot', shoot.status?.conditions, type) : undefined;
}

/** The condition with the pods that keep it from being True. */
const named = <T extends string, R extends string>(
  condition: SaidOf<T, R>,
  [problem, ...more]: readonly PodProblem[],
): SaidOf<T, R | PodReason> =>
  condition.status === 'True' || !problem
    ? condition
    : {
        ...condition,
        reason: reasonOfPod(problem),
        message: `${condition.message}; ${problemsText([problem, ...more])}`,
      };

/** EveryNodeReady with the repairs of unhealthy nodes. */
const withRepairs = (condition: SaidAs<'Shoot', 'EveryNodeReady'>, [first, ...more]: readonly string[]) =>
  condition.status === 'True' || first === undefined
    ? condition
    : {
        ...condition,
        message: `${condition.message}; ${first}${more.length > 0 ? `; and ${more.length} more` : ''}`,
      };

const lastSeen = ({ nodes, workers }: ShootStatus, desired: number): Partial<ShootStatus> => ({
  ...(nodes && { nodes: { ...nodes, desired } }),
  ...(workers && { workers }),
});
