import { type Machine, sizeWhileRolling } from '../../../../providers/contract.ts';
import { errorText } from '../../../api/errors.ts';
import { LABELS } from '../../../api/group.ts';
import type { Shoot } from '../../../api/shoot.ts';
import type { ClusterConnection } from '../../../clusters/cluster-connection.ts';
import { sleep } from '../../../kube/clock.ts';
import { waitFor } from '../../../kube/informer.ts';
import { conditionIsTrue, type Node, type Pod } from '../../../kube/resources.ts';
import { refusedByAdmission } from '../../../shoot/readiness.ts';
import type { Operation } from '../operation.ts';
import { cordon, drain, uncordon } from './drain.ts';
import { eachPool } from './each-pool.ts';
import { drainTimeoutOf } from './machine-timeouts.ts';
import { nodesToUncordon, type PoolScaleIn, planScaleIn } from './scale-in.ts';

const MINUTE = 60_000;

/** How long hibernation tries to evict pods whose eviction the cluster's webhooks refuse. */
const REFUSED_MS = MINUTE;

/**
 * Drains and removes surplus machines, and uncordons nodes that stay after all. @param acts called when there is a
 * surplus
 */
export async function scaleIn(op: Operation, signal: AbortSignal, acts?: () => void): Promise<void> {
  const { provider, state } = op;
  const connection = state.connection!;
  const context = op.context();
  const machines = await provider.listMachines(context);
  const nodes = new Map(connection.nodes.list().map((node) => [node.metadata.name, node]));
  const pods = podsByNode(connection, [...nodes.values()]);
  const dropped = [...new Set(machines.map((machine) => machine.pool))].filter(
    (pool) => !op.pools.some((p) => p.name === pool),
  );
  const outdated = machines.filter((machine) => machine.outdated);
  const wanted = [
    ...op.pools.map((pool) => ({
      name: pool.name,
      count: sizeWhileRolling(pool, outdated.filter((machine) => machine.pool === pool.name).length),
    })),
    ...dropped.map((name) => ({ name, count: 0 })),
  ];
  const plans = planScaleIn(wanted, machines, nodes, pods);
  if (plans.length > 0 || dropped.length > 0) acts?.();
  // Outdated machines will be removed; interrupted drains come first.
  const leaving = [...plans.flatMap((plan) => plan.victims), ...outdated].map((machine) => machine.nodeName);
  // Replacing control plane machines cordons their nodes separately.
  const cordoned = new Set([...leaving, ...ofControlPlane(op, nodes)]);
  // Clear lines of interrupted scale-ins for nodes that stay.
  for (const node of state.draining.keys()) if (!cordoned.has(node)) state.draining.delete(node);
  for (const node of nodesToUncordon([...nodes.values()], cordoned)) await uncordon(connection.client, node);
  await takeAway(op, plans, 'ScaledIn', signal);
  await eachPool(
    dropped.map((name) => ({ name })),
    ({ name }) => provider.deletePool(context, name),
  );
  await machinesGone(op, plans, signal);
}

/** Names of control plane nodes on machines. */
const ofControlPlane = ({ controlPlanePool }: Operation, nodes: ReadonlyMap<string, Node>): string[] =>
  [...nodes.values()].flatMap(({ metadata: { labels, name } }) =>
    controlPlanePool && labels?.[LABELS.pool] === controlPlanePool.name ? [name] : [],
  );

/** Cached pods by node name. */
export const podsByNode = (connection: ClusterConnection, nodes: readonly Node[]): Map<string, readonly Pod[]> =>
  new Map(nodes.map(({ metadata: { name } }) => [name, connection.podsOn(name)]));

/** Drains and removes machines; call machinesGone afterwards. @param reason of the Event */
export async function takeAway(
  op: Operation,
  plans: readonly PoolScaleIn[],
  reason: 'ScaledIn' | 'Rolled',
  signal: AbortSignal,
): Promise<void> {
  const { provider, state, deps } = op;
  const connection = state.connection!;
  // All victims of a pool drain together, and are removed when all are empty, because the pool shrinks by a number.
  await allEnded(
    plans.map(async (plan) => {
      await allEnded(plan.victims.map((machine) => drainMachine(op, connection, machine, signal)));
      signal.throwIfAborted();
      await provider.removeMachines(
        op.context(),
        plan.pool,
        plan.victims.map((machine) => machine.name),
        plan.remaining,
      );
      for (const machine of plan.victims) state.draining.delete(machine.nodeName);
      deps.recordEvent(
        op.shoot,
        'Normal',
        reason,
        `pool ${plan.pool}: took away ${plan.victims.map((m) => m.name).join(', ')}; ${plan.remaining} machines stay`,
      );
    }),
  );
}

/** Awaits all, then rejects if one failed: a drain left running would later remove machines that are wanted again. */
async function allEnded(works: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(works)).find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}

/** Cordons and drains a machine's node; ends when it is empty, or at the pool's deadline. */
export async function drainMachine(
  op: Operation,
  connection: ClusterConnection,
  machine: Machine,
  signal: AbortSignal,
): Promise<void> {
  const { provider, state, deps } = op;
  const node = connection.nodes.get(machine.nodeName);
  if (!node) return;
  const report = (line: string) => {
    if (state.draining.get(machine.nodeName) === line) return;
    state.draining.set(machine.nodeName, line);
    op.notice();
  };
  let started: Date;
  try {
    started = await cordon(connection.client, node, deps.now());
  } catch (error) {
    // All nodes go: a webhook whose server runs on them, or nowhere, must not keep a cluster awake for ever.
    if (!op.sleeps || !refusedByAdmission(error)) throw error;
    report(`Node ${machine.nodeName} goes undrained: ${errorText(error)}`);
    return;
  }
  // Without kubelet nobody confirms the end of pods: waiting would always take until the deadline.
  if (!conditionIsTrue(node, 'Ready')) return;
  // Subscribe before the first list: a pod that ends during its eviction request must not be missed.
  let changed = new AbortController();
  const unsubscribe = connection.pods.onAnyChange(() => changed.abort());
  const drained = drain(
    {
      client: connection.client,
      now: () => deps.now(),
      podsOn: (name) => connection.podsOn(name),
      podsChanged: async (timeoutMs, waitSignal) => {
        await sleep(timeoutMs, AbortSignal.any([waitSignal, changed.signal]));
        changed = new AbortController();
      },
      ...(provider.endPods && { endPods: (pods) => provider.endPods!(op.context(), pods) }),
      report,
      ...(op.sleeps && { refusedUntil: new Date(+started + REFUSED_MS) }),
    },
    machine.nodeName,
    new Date(+started + drainTimeout(op.shoot, machine.pool)),
    signal,
  );
  await drained.finally(unsubscribe);
}

const drainTimeout = ({ spec }: Shoot, pool: string): number =>
  drainTimeoutOf(spec.provider.workers?.find((candidate) => candidate.name === pool));

/** Waits until machines are gone and deletes their Nodes: without a cloud nobody else does. */
export async function machinesGone(op: Operation, plans: readonly PoolScaleIn[], signal: AbortSignal): Promise<void> {
  const victims = plans.flatMap((plan) => plan.victims);
  if (victims.length === 0) return;
  const { seed, state } = op;
  const left = () => victims.filter((machine) => seed.pods.get(`${op.values.namespace}/${machine.name}`));
  await waitFor([seed.pods], () => left().length === 0, {
    timeoutMs: 2 * MINUTE,
    signal,
    what: () =>
      `machines ${left()
        .map((machine) => machine.name)
        .join(', ')} to be gone`,
  });
  // Deleting a Node deletes its pods at once; the node controller would wait minutes.
  for (const machine of victims) {
    await state.connection?.deleteNode(machine.nodeName).catch((error: unknown) => {
      // Waking the cluster deletes it later.
      if (!op.sleeps || !refusedByAdmission(error)) throw error;
    });
  }
}
