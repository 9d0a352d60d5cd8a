import type { Pool } from '../../../../providers/contract.ts';
import { LABELS } from '../../../api/group.ts';
import type { Task } from '../../../flow/graph.ts';
import { waitFor } from '../../../kube/informer.ts';
import { hasEnded } from '../../../kube/pods.ts';
import { conditionIsTrue, keyOf } from '../../../kube/resources.ts';
import { eachPool } from '../machines/each-pool.ts';
import { scaleIn } from '../machines/machine-removal.ts';
import { rollMachines } from '../machines/machine-roll.ts';
import type { Operation } from '../operation.ts';
import { shootConnection } from './apply-inside.ts';
import { because, nodesBlocked, whileLooking } from './blocked-inside.ts';

const MINUTE = 60_000;

/** Whether any worker machine is desired. */
export const wantsNodes = ({ pools }: Pick<Operation, 'pools'>): boolean => pools.some((pool) => pool.count > 0);

/** Pools with surplus machines, by the caches alone. */
function surplusPools({ seed, shoot, pools }: Operation): Pool[] {
  const counts = new Map<string, number>();
  for (const { metadata, status } of seed.podsOf(keyOf(shoot))) {
    const pool = metadata.labels?.[LABELS.pool];
    if (pool === undefined || metadata.deletionTimestamp || hasEnded({ status })) continue;
    counts.set(pool, (counts.get(pool) ?? 0) + 1);
  }
  return pools.filter(({ name, count, maxSurge = 0 }) => (counts.get(name) ?? 0) > count + maxSurge);
}

/**
 * Tasks that make worker machines, remove surplus ones, and replace outdated ones.
 * @param first prerequisites of new machines: kubelet must not be newer than any API server
 * @param joinable tasks after which the cluster can be asked and machines can join
 */
export const machineTasks = (
  op: Operation,
  first: string[] = [],
  joinable = ['access', ...(op.provider.needsBootstrapToken ? ['system-components'] : [])],
): Task[] => [
  {
    id: 'withdraw-machines',
    title: 'Withdrawing machines that have not started',
    // Needs no API server, which may be the one that a full seed has no room for.
    after: ['namespace'],
    skip: !op.provider.withdrawMachines || surplusPools(op).length === 0,
    expectedMs: 50,
    run: () => op.provider.withdrawMachines!(op.context(), surplusPools(op)),
  },
  {
    id: 'machines',
    title: 'Making machines',
    after: [...joinable, ...first],
    expectedMs: 200,
    // A cloud's network takes minutes, and clusters of one account take turns.
    timeoutMs: 45 * MINUTE,
    run: async (signal) => {
      const { provider } = op;
      const context = { ...op.context(), ...(op.mend && { mend: true }) };
      // Request surplus machines in the roll only: a refusal of one must not block everything else.
      const pools = provider.rolledByCaller ? op.pools.map((pool) => ({ ...pool, maxSurge: 0 })) : op.pools;
      if (provider.reconcilePools) return provider.reconcilePools(context, pools);
      await eachPool(pools, (pool) => provider.reconcilePool(context, pool), signal);
    },
  },
  {
    id: 'scale-in',
    title: 'Taking machines away',
    after: ['machines'],
    expectedMs: 20,
    // Longer drains of a pool continue in the next attempt.
    timeoutMs: 60 * MINUTE,
    looksFirst: true,
    run: (signal, acts) => scaleIn(op, signal, acts),
  },
  {
    id: 'roll',
    title: 'Replacing outdated machines',
    after: ['scale-in'],
    skip: !op.provider.rolledByCaller,
    // Sequential: takes as long as necessary, and reports in a condition.
    expectedMs: 20,
    looksFirst: true,
    run: (signal, acts) => rollMachines(op, signal, acts),
  },
];

/** @param after what nodes need besides machines to become Ready */
export const nodesReadyTask = (op: Operation, after: string[]): Task => ({
  id: 'nodes-ready',
  title: 'Waiting for nodes',
  after: ['machines', ...after],
  skip: !wantsNodes(op),
  expectedMs: 4000,
  timeoutMs: 10 * MINUTE,
  run: async (signal) => {
    const { nodes } = shootConnection(op);
    const wanted = new Map(op.pools.map((pool) => [pool.name, pool.count]));
    const missing = () =>
      [...wanted].filter(
        ([pool, count]) =>
          nodes.list().filter((node) => node.metadata.labels?.[LABELS.pool] === pool && conditionIsTrue(node, 'Ready'))
            .length < count,
      );
    const ready = () =>
      waitFor([nodes], () => missing().length === 0, {
        timeoutMs: 10 * MINUTE,
        signal,
        what: () =>
          `the nodes of pool ${missing()
            .map(([pool]) => pool)
            .join(', ')} to be Ready${because(op.state.blocked.get('nodes'))}`,
      });
    await whileLooking(op, 'nodes', (until) => nodesBlocked(shootConnection(op).client, until), ready, signal);
  },
});
