import { errorText } from '../../../api/errors.ts';
import { LABELS } from '../../../api/group.ts';
import type { Shoot } from '../../../api/shoot.ts';
import type { ClusterConnection } from '../../../clusters/cluster-connection.ts';
import { conditionIsTrue, keyOf, type Node, type PersistentVolume, PVS } from '../../../kube/resources.ts';
import { withoutNumbers } from '../../without-numbers.ts';
import type { Operation } from '../operation.ts';
import { nodesBlocked } from '../tasks/blocked-inside.ts';
import { healthTimeoutOf } from './machine-timeouts.ts';
import {
  NO_REPAIRS,
  noteStep,
  planRepair,
  type RepairPatience,
  type RepairPlan,
  type RepairView,
} from './plan-repair.ts';

/** Delay of the next check after a step. */
const AFTER_STEP_MS = 10_000;

/**
 * Checks a cluster's nodes and takes at most one repair step, in parallel with operations. Reports in condition
 * EveryNodeReady.
 * @returns when to check again without a change
 */
export async function repairMachines(
  op: Operation,
  signal: AbortSignal,
): Promise<{ requeueAfterMs: number } | undefined> {
  const { deps, provider, state } = op;
  const { connection } = state;
  // Nothing is known about a cluster that does not answer; this runs again when it does.
  if (!connection?.health.answers || op.sleeps || deps.shoots.get(keyOf(op.shoot))?.metadata.deletionTimestamp)
    return undefined;
  const nodes = connection.nodes.list();
  if (areAllReady(op, nodes)) {
    tell(op, []);
    state.repairs = { ...NO_REPAIRS, registered: new Set(nodes.map((node) => node.metadata.name)) };
    return undefined;
  }
  const seen = { pods: op.seed.podsOf(keyOf(op.shoot)), nodes };
  const machines = await provider.listMachines({ ...op.context(), seen });
  const now = deps.now();
  const view: RepairView = {
    machines,
    nodes: new Map(nodes.map((node) => [node.metadata.name, node])),
    awayAt: latest(state.awayAt, op.seed.awayAt),
    patience: patienceOf(op.shoot),
    ...(!provider.repair && {
      lacks: `machines of provider ${provider.name} are not repaired: end it in the cloud, which makes another`,
    }),
  };
  let plan = planRepair(view, state.repairs, now);
  if (plan.needsVolumes)
    plan = planRepair({ ...view, volumes: await claimsByNode(connection, signal) }, state.repairs, now);
  if (plan.step) {
    // Repair does not help a node that the cluster's own webhooks refuse.
    const lacks = await nodesBlocked(connection.client, signal);
    if (lacks !== undefined) plan = planRepair({ ...view, lacks }, state.repairs, now);
  }
  state.repairs = plan.memory;
  // Reported after the step: alternating lines would cause two writes per attempt.
  if (plan.step)
    await take(op, plan.step).catch((error: unknown) => {
      tell(op, [
        `${plan.step!.because}: its machine cannot be repaired now: ${errorText(error)}`,
        ...plan.lines.filter((line) => !line.startsWith(plan.step!.because)),
      ]);
      throw error;
    });
  tell(op, plan.lines);
  const next = [...(plan.step ? [AFTER_STEP_MS] : []), ...(plan.lookAt ? [+plan.lookAt - +now] : [])];
  return next.length > 0 ? { requeueAfterMs: Math.max(1000, Math.min(...next)) } : undefined;
}

async function take(op: Operation, step: NonNullable<RepairPlan['step']>): Promise<void> {
  const { deps, provider, shoot, state } = op;
  const { action, machine, because } = step;
  await provider.repair![action](op.context(), machine);
  // Only for completed steps: a machine whose restart failed must not be replaced for that.
  state.repairs = noteStep(state.repairs, step, deps.now());
  const [reason, done] = action === 'restart' ? ['MachineRestarted', 'restarted'] : ['MachineReplaced', 'replaced'];
  deps.log.warn({ shoot: keyOf(shoot), machine: machine.name, because }, `a machine is ${done}`);
  deps.recordEvent(shoot, 'Warning', reason!, `pool ${machine.pool}: ${done} machine ${machine.name}: ${because}`);
}

/** Fast path without requests. */
function areAllReady({ pools }: Operation, nodes: readonly Node[]): boolean {
  const ready = (name: string) =>
    nodes.filter((node) => node.metadata.labels?.[LABELS.pool] === name && conditionIsTrue(node, 'Ready')).length;
  const all = nodes.every(
    (node) => node.metadata.labels?.[LABELS.pool] === undefined || conditionIsTrue(node, 'Ready'),
  );
  return all && pools.every(({ name, count }) => ready(name) >= count);
}

function tell(op: Operation, lines: readonly string[]): void {
  const { state } = op;
  if (
    withoutNumbers(lines.join()) === withoutNumbers(state.repairing.join()) &&
    lines.length === state.repairing.length
  )
    return;
  state.repairing = lines;
  op.notice();
}

function patienceOf(shoot: Shoot): Map<string, RepairPatience> {
  return new Map(
    (shoot.spec.provider.workers ?? []).flatMap((worker) => {
      const ms = healthTimeoutOf(worker);
      return ms === undefined ? [] : [[worker.name, { missingMs: ms, notReadyMs: ms }] as const];
    }),
  );
}

const latest = (...times: (Date | undefined)[]): Date | undefined =>
  times.reduce((last, time) => (time && (!last || time > last) ? time : last), undefined);

interface NodeSelectorTerm {
  readonly matchExpressions?: readonly { key: string; operator: string; values?: readonly string[] }[];
}

/** `namespace/name` of claims with node-local volumes, by node. */
async function claimsByNode(connection: ClusterConnection, signal: AbortSignal): Promise<Map<string, string[]>> {
  const { items } = await connection.client.list<PersistentVolume>(PVS, { signal });
  const claims = new Map<string, string[]>();
  for (const { metadata, spec, status } of items) {
    if (status?.phase !== 'Bound') continue;
    const terms: readonly NodeSelectorTerm[] = spec.nodeAffinity?.required?.nodeSelectorTerms ?? [];
    const hosts = terms
      .flatMap(({ matchExpressions = [] }) => matchExpressions)
      .filter(({ key, operator }) => key === HOSTNAME && operator === 'In')
      .flatMap(({ values = [] }) => values);
    const claim = spec.claimRef ? `${spec.claimRef.namespace}/${spec.claimRef.name}` : metadata.name;
    for (const host of new Set(hosts)) claims.set(host, [...(claims.get(host) ?? []), claim]);
  }
  return claims;
}

const HOSTNAME = 'kubernetes.io/hostname';
