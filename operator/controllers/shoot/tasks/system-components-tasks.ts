import type { Task } from '../../../flow/graph.ts';
import { waitFor } from '../../../kube/informer.ts';
import { conditionIsTrue, type KubeObject, type Pod } from '../../../kube/resources.ts';
import { KONNECTIVITY_AGENT_APP } from '../../../shoot/konnectivity-agent.ts';
import { CLUSTER_DNS, coreDNS, kubeletAccess, machineAccess, viewerAccess } from '../../../shoot/system-components.ts';
import type { Operation } from '../operation.ts';
import { applyAdmitted, firstOf, printOf, shootConnection } from './apply-inside.ts';
import { because, podsBlocked, whileLooking } from './blocked-inside.ts';
import { wantsNodes } from './machine-tasks.ts';

const MINUTE = 60_000;

/** @param own objects for this kind of control plane, with or without worker machines */
export const systemComponentsTask = (op: Operation, own: () => KubeObject[]): Task => ({
  id: 'system-components',
  title: 'Applying system components',
  after: ['access'],
  expectedMs: 300,
  run: async (signal) => {
    const { provider, state } = op;
    const binding = kubeletAccess();
    // The rest needs nodes.
    const objects = [
      ...own(),
      binding,
      ...viewerAccess(),
      ...(wantsNodes(op)
        ? [...machineAccess(), ...(provider.systemComponents?.() ?? []), ...coreDNS(op.values, systemReplicasOf(op))]
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

/** Replicas of a system component: one on a single node. */
export const systemReplicasOf = ({ pools }: Operation): number =>
  Math.min(
    2,
    pools.reduce((sum, pool) => sum + pool.count, 0),
  ) || 1;

/** @param after what pods need besides nodes */
export const systemReadyTask = (op: Operation, after: string[]): Task => ({
  id: 'system-ready',
  title: op.values.machinesOutside ? 'Waiting for cluster DNS and the tunnel' : 'Waiting for cluster DNS',
  after: ['nodes-ready', 'system-components', ...after],
  skip: !wantsNodes(op),
  expectedMs: 2500,
  timeoutMs: 5 * MINUTE,
  run: async (signal) => {
    const { nodes, pods } = shootConnection(op);
    const isOnNode = ({ spec }: Pod) => spec.nodeName !== undefined && nodes.get(spec.nodeName) !== undefined;
    const parts = [
      { app: 'kube-dns', what: 'cluster DNS to be Ready' },
      ...(op.values.machinesOutside
        ? [{ app: KONNECTIVITY_AGENT_APP, what: 'an agent of the tunnel to be connected to an API server' }]
        : []),
    ];
    const missing = () =>
      parts.filter(
        ({ app }) =>
          !pods
            .list()
            .some((pod) => pod.metadata.labels?.['k8s-app'] === app && conditionIsTrue(pod, 'Ready') && isOnNode(pod)),
      );
    const ready = () =>
      waitFor([pods], () => missing().length === 0, {
        timeoutMs: 5 * MINUTE,
        signal,
        what: () =>
          `${missing()
            .map(({ what }) => what)
            .join(', and ')}${because(op.state.blocked.get('system'))}`,
      });
    const look = (until: AbortSignal) => podsBlocked(shootConnection(op).client, CLUSTER_DNS, 'kube-system', until);
    await whileLooking(op, 'system', look, ready, signal);
  },
});
