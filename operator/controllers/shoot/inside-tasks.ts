import { createHash } from 'node:crypto';
import { errorText } from '../../api/errors.ts';
import { LABELS } from '../../api/group.ts';
import { hasServed } from '../../api/shoot.ts';
import type { ClusterConnection } from '../../clusters/cluster-connection.ts';
import type { Task } from '../../flow/graph.ts';
import { sleep } from '../../kube/clock.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { waitFor } from '../../kube/informer.ts';
import { conditionIsTrue, type KubeObject, keyOf } from '../../kube/resources.ts';
import { KONNECTIVITY_AGENT_APP, konnectivityAgent } from '../../shoot/konnectivity-agent.ts';
import { adminKubeconfig } from '../../shoot/kubeconfigs.ts';
import { refusedByAdmission, usable } from '../../shoot/readiness.ts';
import {
  adminAccess,
  adminRole,
  coreDNS,
  kubeletAccess,
  machineAccess,
  viewerAccess,
} from '../../shoot/system-components.ts';
import { clientOf, USABLE } from './connect.ts';
import { readyNames } from './dns/dns-records.ts';
import { scaleIn } from './machines/machine-removal.ts';
import { rollMachines } from './machines/machine-roll.ts';
import type { Operation } from './operation.ts';
import { storeKubeconfig } from './shared-steps.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** The open connection to the API server of the shoot. Throws when there is none. */
export function inside({ state }: Operation): ClusterConnection {
  if (!state.connection) throw new Error('there is no connection to the API server of the shoot');
  return state.connection;
}

/** Whether any machine for workloads is asked for. */
export const wantsNodes = ({ pools }: Pick<Operation, 'pools'>): boolean => pools.some((pool) => pool.count > 0);

/** How long a cluster that has served before is asked whether its admin may write. */
const ACCESS_AGAIN_MS = 5_000;

/**
 * `access` ends, the first time, only when the admin's own kubeconfig was seen to be able to write. In a cluster that has served, nothing
 * waits for that: `access-again` looks beside the rest, and where the admin cannot write, a condition says so.
 * @param after the task from which on the API server can be asked
 */
export const accessTasks = (op: Operation, after = 'api-server-serves'): Task[] => {
  const served = hasServed(op.shoot);
  return [
    {
      id: 'access',
      title: 'Granting access',
      after: [after],
      skip: served,
      expectedMs: 100,
      timeoutMs: 2 * MINUTE,
      run: (signal) => grantAccess(op, signal),
    },
    {
      id: 'access-again',
      title: 'Checking that the kubeconfig of the administrator works',
      after: ['access'],
      skip: !served,
      expectedMs: 100,
      timeoutMs: 30 * SECOND,
      run: (signal) => grantAccess(op, signal, ACCESS_AGAIN_MS),
    },
  ];
};

/** @param patienceMs after which it is said that the admin cannot write, and looked at again later; absent: it is waited for */
async function grantAccess(op: Operation, signal: AbortSignal, patienceMs?: number): Promise<void> {
  const { state } = op;
  const admin = adminKubeconfig(op.values, op.pki);
  if (state.usable?.ok && state.usableFor === admin) return;
  if (!hasServed(op.shoot)) await makeAdminRole(op, signal);
  await inside(op)
    .applyAll(adminAccess(), signal)
    .catch((error: unknown) => {
      if (patienceMs === undefined || !refusedByAdmission(error)) throw error;
    });
  const client = clientOf(op, admin);
  const began = performance.now();
  try {
    for (;;) {
      const verdict = await usable(client);
      if (verdict.usable) break;
      signal.throwIfAborted();
      if (patienceMs !== undefined && performance.now() - began > patienceMs) {
        state.usable = { ok: false, message: `the admin's kubeconfig does not work: ${verdict.reason}` };
        return;
      }
      await sleep(50, signal);
    }
  } finally {
    await client.close();
  }
  state.usable = USABLE;
  state.usableFor = admin;
}

/** Made, never applied: from then on it is Kubernetes' own, as it is where the API server was first. */
async function makeAdminRole(op: Operation, signal: AbortSignal): Promise<void> {
  try {
    await inside(op).client.create(adminRole(), { signal });
  } catch (error) {
    if (!(error instanceof KubeApiError && error.isAlreadyExists)) throw error;
  }
}

export const kubeconfigTask = (op: Operation): Task => ({
  id: 'kubeconfig',
  title: 'Storing the kubeconfig',
  after: ['access'],
  expectedMs: 30,
  run: async (signal) => {
    const names = Object.fromEntries(readyNames(op).map(({ domain, host }) => [domain, host]));
    await storeKubeconfig(op, adminKubeconfig(op.values, op.pki, names), signal);
    op.notice();
  },
});

/** @param own objects that this kind of control plane needs, whether or not there are machines for workloads */
export const systemComponentsTask = (op: Operation, own: () => KubeObject[]): Task => ({
  id: 'system-components',
  title: 'Applying system components',
  after: ['access'],
  expectedMs: 300,
  run: async (signal) => {
    const { provider, state } = op;
    const replicas =
      Math.min(
        2,
        op.pools.reduce((sum, pool) => sum + pool.count, 0),
      ) || 1;
    const binding = kubeletAccess();
    // Without nodes nothing of the rest could run or would be asked.
    const objects = [
      ...own(),
      binding,
      ...viewerAccess(),
      ...(wantsNodes(op)
        ? [
            ...machineAccess(),
            ...(op.values.machinesOutside ? konnectivityAgent(op.values, replicas) : []),
            ...(provider.systemComponents?.() ?? []),
            ...coreDNS(op.values, replicas),
          ]
        : []),
    ];
    const print = printOf(objects);
    if (state.systemApplied === print) return;
    const refused = await applyAdmitted(op, objects, signal);
    if (!refused.has(binding)) state.kubeletAccess = true;
    state.systemRefused = firstOf(refused);
    if (refused.size === 0) state.systemApplied = print;
  },
});

/** Fingerprint of what is applied inside of the cluster, by which the same is not applied again. */
export const printOf = (objects: readonly KubeObject[]): string =>
  createHash('sha256').update(JSON.stringify(objects)).digest('hex');

/**
 * In a cluster that has served, a refusal by its own admission policy keeps no machine from being made: the rest is applied.
 * @returns what was refused, first words first; undefined: nothing
 */
export async function applySystem(
  op: Operation,
  objects: KubeObject[],
  signal: AbortSignal,
): Promise<string | undefined> {
  return firstOf(await applyAdmitted(op, objects, signal));
}

const firstOf = (refused: ReadonlyMap<KubeObject, string>): string | undefined => [...refused.values()][0];

/** The same. Returns all that was refused, and why. */
async function applyAdmitted(
  op: Operation,
  objects: KubeObject[],
  signal: AbortSignal,
): Promise<ReadonlyMap<KubeObject, string>> {
  const refused = new Map<KubeObject, string>();
  try {
    await inside(op).applyAll(objects, signal);
    return refused;
  } catch (error) {
    if (!hasServed(op.shoot) || !refusedByAdmission(error)) throw error;
  }
  for (const object of objects) {
    await inside(op)
      .applyAll([object], signal)
      .catch((error: unknown) => {
        if (!refusedByAdmission(error)) throw error;
        refused.set(object, `${object.kind} ${keyOf(object)}: ${errorText(error)}`);
      });
  }
  return refused;
}

/**
 * Making the machines for workloads, taking away those that are too many, and replacing those that are outdated.
 * @param first what new machines need: a kubelet must not be newer than an API server that it may meet
 * @param inside what shows that the cluster can be asked, and that machines can join it
 */
export const machineTasks = (
  op: Operation,
  first: string[] = [],
  inside = ['access', ...(op.provider.needsBootstrapToken ? ['system-components'] : [])],
): Task[] => [
  {
    id: 'machines',
    title: 'Making machines',
    after: [...inside, ...first],
    expectedMs: 200,
    // A cloud's network takes minutes, and several clusters of an account take turns.
    timeoutMs: 45 * MINUTE,
    run: async (signal) => {
      const { provider } = op;
      const context = { ...op.context(), ...(op.mend && { mend: true }) };
      // A machine too many that a cloud refuses must not keep all else from being done: the roll asks for it.
      const pools = provider.rolledByCaller ? op.pools.map((pool) => ({ ...pool, maxSurge: 0 })) : op.pools;
      if (provider.reconcilePools) return provider.reconcilePools(context, pools);
      for (const pool of pools) {
        await provider.reconcilePool(context, pool);
        signal.throwIfAborted();
      }
    },
  },
  {
    id: 'scale-in',
    title: 'Taking machines away',
    after: ['machines'],
    expectedMs: 20,
    looksFirst: true,
    run: (signal, acts) => scaleIn(op, signal, acts),
  },
  {
    id: 'roll',
    title: 'Replacing outdated machines',
    after: ['scale-in'],
    skip: !op.provider.rolledByCaller,
    // One after the other: it takes as long as it takes, and says where it stands in a condition.
    expectedMs: 20,
    looksFirst: true,
    run: (signal, acts) => rollMachines(op, signal, acts),
  },
];

/** @param after what nodes need besides their machines to become Ready */
export const nodesReadyTask = (op: Operation, after: string[]): Task => ({
  id: 'nodes-ready',
  title: 'Waiting for nodes',
  after: ['machines', ...after],
  skip: !wantsNodes(op),
  expectedMs: 4000,
  timeoutMs: 10 * MINUTE,
  run: async (signal) => {
    const { nodes } = inside(op);
    const wanted = new Map(op.pools.map((pool) => [pool.name, pool.count]));
    const missing = () =>
      [...wanted].filter(
        ([pool, count]) =>
          nodes.list().filter((node) => node.metadata.labels?.[LABELS.pool] === pool && conditionIsTrue(node, 'Ready'))
            .length < count,
      );
    await waitFor([nodes], () => missing().length === 0, {
      timeoutMs: 10 * MINUTE,
      signal,
      what: () =>
        `the nodes of pool ${missing()
          .map(([pool]) => pool)
          .join(', ')} to be Ready`,
    });
  },
});

/** @param after what pods need besides their nodes to run */
export const systemReadyTask = (op: Operation, after: string[]): Task => ({
  id: 'system-ready',
  title: op.values.machinesOutside ? 'Waiting for cluster DNS and the tunnel' : 'Waiting for cluster DNS',
  after: ['nodes-ready', 'system-components', ...after],
  skip: !wantsNodes(op),
  expectedMs: 2500,
  timeoutMs: 5 * MINUTE,
  run: async (signal) => {
    const { pods } = inside(op);
    const parts = [
      { app: 'kube-dns', what: 'cluster DNS to be Ready' },
      ...(op.values.machinesOutside
        ? [{ app: KONNECTIVITY_AGENT_APP, what: 'an agent of the tunnel to be connected to an API server' }]
        : []),
    ];
    const missing = () =>
      parts.filter(
        ({ app }) =>
          !pods.list().some((pod) => pod.metadata.labels?.['k8s-app'] === app && conditionIsTrue(pod, 'Ready')),
      );
    await waitFor([pods], () => missing().length === 0, {
      timeoutMs: 5 * MINUTE,
      signal,
      what: () =>
        missing()
          .map(({ what }) => what)
          .join(', and '),
    });
  },
});
