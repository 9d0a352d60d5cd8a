import { HIBERNATED } from '../../../api/conditions.ts';
import type { Shoot, ShootStatus } from '../../../api/shoot.ts';
import { conditionBefore, type Said, say } from '../../conditions.ts';
import { recordsCondition } from '../dns/dns-outcome.ts';
import type { Operation } from '../operation.ts';
import { type RunningFacts, runningFacts } from '../status/facts.ts';
import { drainingCondition } from '../status/node-conditions.ts';
import { shootStatusOf } from '../status/status-of.ts';
import { isAnythingUp, isServing, podsLeft } from './hibernation-tasks.ts';

/** Observed state of a shoot with hibernation enabled. */
export interface HibernationFacts extends RunningFacts {
  /** Names of its pods in the seed. */
  readonly left: readonly string[];
  /** Whether any part of its control plane, and its API server, have replicas. */
  readonly isAnythingUp: boolean;
  readonly isServing: boolean;
}

/** Status of a hibernating Shoot with hosted control plane, from the caches. */
export async function hibernationStatus(op: Operation, shoot: Shoot, now: Date): Promise<ShootStatus> {
  const seen = { left: podsLeft(op), isAnythingUp: isAnythingUp(op), isServing: isServing(op) };
  return sleepingStatus({ ...(await runningFacts(op, shoot)), ...seen }, now);
}

const NAMED = 3;

/** Like hibernationStatus, pure. Parts that should be gone are not reported as failures. */
export function sleepingStatus(facts: HibernationFacts, now: Date): ShootStatus {
  const { shoot, left, inside, errors } = facts;
  const sleeps = left.length === 0 && !facts.isAnythingUp;
  const more = left.length > NAMED ? ` and ${left.length - NAMED} more` : '';
  const what = sleeps
    ? 'the cluster sleeps: it has no nodes and no control plane; its data, addresses and kubeconfig stay'
    : left.length > 0
      ? `the cluster falls asleep; pods are left: ${left.slice(0, NAMED).join(', ')}${more}`
      : 'the cluster falls asleep';
  const reason = sleeps ? HIBERNATED : 'FallingAsleep';
  const codes = [...new Set(errors.flatMap((error) => error.codes ?? []))];
  const failed = errors.map(({ description }) => description).join('; ');
  const conditions = [
    failed === '' ? say('Ready', false, reason, what) : say('Ready', false, 'OperationFailed', failed, codes),
    serving(facts),
    say(HIBERNATED, sleeps, sleeps ? 'NoControlPlane' : 'FallingAsleep', what),
    drainingCondition(facts.draining),
    recordsCondition(facts.records ?? [], shoot),
    facts.drift,
    facts.backup,
  ];
  const machines = inside?.machines.filter(({ phase }) => phase !== 'Terminating') ?? [];
  const readyMachines = machines.filter(({ ready }) => ready);
  const seen = { controlPlane: { desired: 0, ready: 0 }, machines, readyMachines };
  // The running version is known only while it runs.
  const version = shoot.status?.kubernetesVersion;
  const status = shootStatusOf({ ...facts, version }, seen, conditions, now);
  if (sleeps) return { ...status, hibernated: true };
  const { nodes, workers } = shoot.status ?? {};
  // A lost connection is no loss of nodes: report, and charge, them as last seen.
  return inside || !facts.isServing || !nodes ? status : { ...status, nodes: { ...nodes, desired: 0 }, workers };
}

/** Condition APIServerAvailable. While the API server is needed to remove machines it is judged as usual. */
function serving({ shoot, usable, isServing }: HibernationFacts): Said<'Shoot'> {
  const type = 'APIServerAvailable';
  if (!isServing) return say(type, false, HIBERNATED, 'the API server is not run while the cluster sleeps');
  if (usable) return say(type, usable.ok, usable.ok ? 'AdminCanWrite' : 'NotReachable', usable.message);
  // Not probed since the restart.
  const last = conditionBefore('Shoot', shoot.status?.conditions, type);
  return last ?? say(type, 'Unknown', 'NotObserved', 'the operator waits for the API server to answer');
}
