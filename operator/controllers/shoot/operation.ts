import { createHash } from 'node:crypto';
import type { Machine, Pool, Provider, ProviderContext } from '../../../providers/contract.ts';
import { API_VERSION, LABELS } from '../../api/group.ts';
import { COMPONENTS, etcdMemberName, KUBECONFIG_KEY, kubeconfigSecretName } from '../../api/names.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { Task } from '../../flow/graph.ts';
import { KubeClient } from '../../kube/client.ts';
import { sleep } from '../../kube/clock.ts';
import { waitFor } from '../../kube/informer.ts';
import { conditionIsTrue, type KubeObject, type Service } from '../../kube/resources.ts';
import { pkiSecret } from '../../shoot/control-plane.ts';
import { etcd } from '../../shoot/etcd.ts';
import { kubeAPIServer } from '../../shoot/kube-apiserver.ts';
import { kubeControllerManager } from '../../shoot/kube-controller-manager.ts';
import { kubeScheduler } from '../../shoot/kube-scheduler.ts';
import { adminKubeconfig, operatorKubeconfig } from '../../shoot/kubeconfigs.ts';
import { namespace } from '../../shoot/namespace.ts';
import {
  issueOperatorCertificate,
  issueShootPKI,
  PKI_SECRET,
  type PKIData,
  pkiParameters,
  planShootPKI,
} from '../../shoot/pki.ts';
import { usable } from '../../shoot/readiness.ts';
import { services } from '../../shoot/services.ts';
import { adminAccess, coreDNS, kubernetesEndpoints, machineAccess } from '../../shoot/system-components.ts';
import { apiServerURL, type ControlPlane } from '../../shoot/values.ts';
import type { SeedAccess } from '../seed/seed-access.ts';
import { ShootConnection } from './connection.ts';
import { cordon, drain, uncordon } from './drain.ts';
import { reconcileEtcdMembers } from './etcd-members.ts';
import { nodesToUncordon, planScaleIn } from './scale-in.ts';
import type { ShootState } from './state.ts';
import { VNI_ANNOTATION } from './vni.ts';
import type { ShootWorld } from './world.ts';

/** One run of the task graph over one shoot. */
export interface Operation {
  readonly world: ShootWorld;
  readonly shoot: Shoot;
  readonly state: ShootState;
  readonly seed: SeedAccess;
  readonly provider: Provider;
  readonly pools: readonly Pool[];
  readonly vni: number;
  /** Grows while the graph runs: addresses come with the Services, the size of etcd with its members. */
  values: ControlPlane;
  pki: PKIData;
  /** What the provider is told; complete once the certificates are there. */
  context(): ProviderContext;
  /** Says that something a person would notice has changed. */
  notice(): void;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** Gardener waits 2 hours; here whole clusters come and go for bursts, so a drain that is held up is cut off sooner. */
export const DRAIN_TIMEOUT_MS = 10 * MINUTE;

/** The task graph for create and reconcile. Every task does nothing where nothing is to be done. */
export function reconcileTasks(op: Operation): Task[] {
  const { seed, values, provider, world, state } = op;
  const ns = values.namespace;
  const apply = async (objects: readonly KubeObject[], signal: AbortSignal) => {
    await Promise.all(objects.map((object) => seed.applier.apply(object, signal)));
  };
  const inside = () => {
    if (!state.connection) throw new Error('there is no connection to the API server of the shoot');
    return state.connection;
  };
  const wantsNodes = op.pools.some((pool) => pool.count > 0);

  return [
    {
      id: 'namespace',
      title: 'Making the namespace in the seed',
      expectedMs: 30,
      run: async (signal) => {
        const object = namespace(values);
        object.metadata.annotations = { ...object.metadata.annotations, [VNI_ANNOTATION]: String(op.vni) };
        await seed.applier.apply(object, signal);
      },
    },
    {
      id: 'services',
      title: 'Reserving addresses',
      after: ['namespace'],
      expectedMs: 60,
      run: async (signal) => {
        // Addresses of members that may be needed only while shrinking stay until the members have gone.
        const members = Math.max(values.replicas, etcdServices(op));
        const made = await Promise.all(services(values, members).map((object) => seed.applier.apply(object, signal)));
        const [apiServer, ...etcdMembers] = made.map(({ object }) => (object as Service).spec.clusterIP ?? '');
        op.values = { ...op.values, addresses: { apiServer: apiServer ?? '', etcd: etcdMembers } };
      },
    },
    {
      id: 'certificates',
      title: 'Issuing certificates',
      after: ['services'],
      expectedMs: 100,
      run: async (signal) => {
        const now = world.now();
        const parameters = pkiParameters(op.values);
        const existing = decoded(seed.secrets.get(`${ns}/${PKI_SECRET}`)?.data);
        const plan = planShootPKI(existing, parameters, now);
        op.pki = plan.issue.length > 0 ? await issueShootPKI(existing, plan, parameters, now) : existing;
        // Keys first to safety: a crash between here and the components must not make a second authority.
        if (plan.issue.length > 0)
          seed.secrets.absorb((await seed.applier.apply(pkiSecret(op.values, op.pki), signal)).object);
        state.nextRenewal = plan.nextRenewal;
      },
    },
    {
      id: 'etcd',
      title: 'Starting etcd',
      after: ['certificates'],
      expectedMs: 50,
      timeoutMs: 10 * MINUTE,
      run: async (signal) => {
        op.values = { ...op.values, etcd: { ...op.values.etcd, ...observedEtcd(op) } };
        await apply(etcd(op.values, op.pki), signal);
      },
    },
    {
      id: 'api-server',
      title: 'Starting the API server',
      after: ['etcd'],
      expectedMs: 50,
      run: (signal) => apply(kubeAPIServer(op.values, op.pki), signal),
    },
    {
      id: 'api-server-serves',
      title: 'Waiting for the API server',
      after: ['api-server'],
      expectedMs: 4500,
      timeoutMs: 5 * MINUTE,
      run: (signal) => connect(op, signal),
    },
    {
      id: 'controller-manager',
      title: 'Starting the controller manager',
      // After the API server: before, it would only compete with it for the CPU and fail to connect.
      after: ['api-server-serves'],
      expectedMs: 50,
      run: (signal) => apply(kubeControllerManager(op.values, op.pki), signal),
    },
    {
      id: 'scheduler',
      title: 'Starting the scheduler',
      after: ['api-server-serves'],
      expectedMs: 50,
      run: (signal) => apply(kubeScheduler(op.values, op.pki), signal),
    },
    {
      id: 'access',
      title: 'Granting access',
      after: ['api-server-serves'],
      expectedMs: 100,
      timeoutMs: 2 * MINUTE,
      run: async (signal) => {
        const admin = adminKubeconfig(op.values, op.pki);
        if (state.usable?.ok && state.usableFor === admin) return;
        await inside().applyAll(adminAccess(), signal);
        const client = KubeClient.fromKubeconfig(admin);
        try {
          for (;;) {
            const verdict = await usable(client);
            if (verdict.usable) break;
            signal.throwIfAborted();
            await sleep(50, signal);
          }
        } finally {
          await client.close();
        }
        state.usable = { ok: true, message: "the API server answers, and the admin's kubeconfig can write" };
        state.usableFor = admin;
      },
    },
    {
      id: 'kubeconfig',
      title: 'Storing the kubeconfig',
      after: ['access'],
      expectedMs: 30,
      run: async (signal) => {
        await world.gardenApplier.apply(kubeconfigSecret(op), signal);
        op.notice();
      },
    },
    {
      id: 'etcd-members',
      title: 'Bringing etcd to its size',
      after: ['api-server-serves'],
      expectedMs: 50,
      timeoutMs: 10 * MINUTE,
      run: (signal) => reconcileEtcdMembers(op, signal),
    },
    {
      id: 'system-components',
      title: 'Applying system components',
      after: ['access'],
      expectedMs: 300,
      run: async (signal) => {
        const dns =
          Math.min(
            2,
            op.pools.reduce((sum, pool) => sum + pool.count, 0),
          ) || 1;
        const objects = [...machineAccess(), kubernetesEndpoints(op.values), ...coreDNS(op.values, dns)];
        const print = createHash('sha256').update(JSON.stringify(objects)).digest('hex');
        if (state.systemApplied === print) return;
        await inside().applyAll(objects, signal);
        state.systemApplied = print;
      },
    },
    {
      id: 'provider-components',
      title: 'Starting what the provider needs',
      after: ['api-server-serves'],
      skip: !provider.controlPlaneExtras,
      expectedMs: 50,
      run: async (signal) => apply((await provider.controlPlaneExtras?.(op.context())) ?? [], signal),
    },
    {
      id: 'machines',
      title: 'Making machines',
      after: ['access', ...(provider.needsBootstrapToken ? ['system-components'] : [])],
      expectedMs: 200,
      run: async (signal) => {
        const context = op.context();
        for (const pool of op.pools) {
          await provider.reconcilePool(context, pool);
          signal.throwIfAborted();
        }
        op.notice();
      },
    },
    {
      id: 'scale-in',
      title: 'Taking machines away',
      after: ['machines'],
      expectedMs: 20,
      run: (signal) => scaleIn(op, signal),
    },
    {
      id: 'nodes-ready',
      title: 'Waiting for nodes',
      after: ['machines', 'controller-manager', 'provider-components'],
      skip: !wantsNodes,
      expectedMs: 4000,
      timeoutMs: 10 * MINUTE,
      run: async (signal) => {
        const { nodes } = inside();
        const wanted = new Map(op.pools.map((pool) => [pool.name, pool.count]));
        const missing = () =>
          [...wanted].filter(
            ([pool, count]) =>
              nodes
                .list()
                .filter((node) => node.metadata.labels?.[LABELS.pool] === pool && conditionIsTrue(node, 'Ready'))
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
    },
    {
      id: 'system-ready',
      title: 'Waiting for cluster DNS',
      after: ['nodes-ready', 'scheduler', 'system-components'],
      skip: !wantsNodes,
      expectedMs: 2500,
      timeoutMs: 5 * MINUTE,
      run: async (signal) => {
        const { pods } = inside();
        const serves = () =>
          pods.list().some((pod) => pod.metadata.labels?.['k8s-app'] === 'kube-dns' && conditionIsTrue(pod, 'Ready'));
        await waitFor([pods], serves, { timeoutMs: 5 * MINUTE, signal, what: 'cluster DNS to be Ready' });
      },
    },
    {
      id: 'control-plane-ready',
      title: 'Waiting for the control plane',
      after: ['controller-manager', 'scheduler', 'etcd-members'],
      expectedMs: 2500,
      timeoutMs: 5 * MINUTE,
      run: async (signal) => {
        const wanting = () => [
          ...[COMPONENTS.apiServer, COMPONENTS.controllerManager, COMPONENTS.scheduler].filter((name) => {
            const found = seed.deployments.get(`${ns}/${name}`);
            return !found || (found.status?.readyReplicas ?? 0) < (found.spec.replicas ?? 1);
          }),
          ...((seed.statefulSets.get(`${ns}/${COMPONENTS.etcd}`)?.status?.readyReplicas ?? 0) < op.values.etcd.replicas
            ? [COMPONENTS.etcd]
            : []),
        ];
        await waitFor([seed.deployments, seed.statefulSets], () => wanting().length === 0, {
          timeoutMs: 5 * MINUTE,
          signal,
          what: () => `${wanting().join(', ')} to be ready`,
        });
      },
    },
  ];
}

/** How many member Services there are: those of members that are still to leave count. */
function etcdServices(op: Operation): number {
  let count = 0;
  while (op.seed.services.get(`${op.values.namespace}/${etcdMemberName(count)}`)) count++;
  return count;
}

/** The size of etcd as it is now; reconcileEtcdMembers changes it, one member at a time. */
function observedEtcd(op: Operation): Partial<ControlPlane['etcd']> {
  const ns = op.values.namespace;
  const found = op.seed.statefulSets.get(`${ns}/${COMPONENTS.etcd}`);
  // All members of a new etcd start together; one that exists keeps its size until its members have agreed.
  const replicas = found?.spec.replicas ?? op.values.replicas;
  // Recorded where it matters: in what a member that starts without data is told.
  const config = decoded(op.seed.secrets.get(`${ns}/${COMPONENTS.etcd}`)?.data)[`${etcdMemberName(0)}.yaml`] ?? '{}';
  const initialised = (JSON.parse(config) as Record<string, unknown>)['initial-cluster-state'] === 'existing';
  const endpoints = Array.from({ length: Math.min(replicas, op.values.replicas) }, (_, ordinal) => ordinal);
  return { replicas, initialised, endpoints };
}

/** Opens the line to the shoot's API server once it serves. */
async function connect(op: Operation, signal: AbortSignal): Promise<void> {
  const { state, world } = op;
  const server = apiServerURL(op.values);
  if (state.connection && state.connection.server === server && world.now() < state.connection.renewAt) {
    if (await state.connection.client.ready({ timeoutMs: 5 * SECOND })) return;
  }
  await state.connection?.stop();
  state.connection = undefined;
  state.usable = undefined;
  state.systemApplied = undefined;
  const certificate = await issueOperatorCertificate(op.pki, world.now());
  const client = KubeClient.fromKubeconfig(operatorKubeconfig(op.values, op.pki, certificate));
  try {
    while (!(await client.ready({ timeoutMs: 2 * SECOND, signal }).catch(() => false))) {
      signal.throwIfAborted();
      await sleep(100, signal);
    }
    const renewAt = new Date(+world.now() + 12 * 60 * MINUTE);
    const connection = new ShootConnection(client, server, renewAt, world.log, (object) =>
      world.insideChanged(op.shoot, object),
    );
    await connection.start(signal);
    state.connection = connection;
  } catch (error) {
    await client.close();
    throw error;
  }
}

function kubeconfigSecret(op: Operation): KubeObject {
  const { name, namespace: ns, uid } = op.shoot.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: kubeconfigSecretName(name),
      namespace: ns,
      labels: { [LABELS.clusterName]: name, [LABELS.managedBy]: 'coppice' },
      ownerReferences: [
        { apiVersion: API_VERSION, kind: 'Shoot', name, uid: uid!, controller: true, blockOwnerDeletion: false },
      ],
    },
    type: 'cluster.x-k8s.io/secret',
    data: { [KUBECONFIG_KEY]: Buffer.from(adminKubeconfig(op.values, op.pki)).toString('base64') },
  };
}

/** Drains and removes what is too much, and lets go of nodes that may stay after all. */
async function scaleIn(op: Operation, signal: AbortSignal): Promise<void> {
  const { provider, state, world } = op;
  const connection = state.connection!;
  const context = op.context();
  const machines = await provider.listMachines(context);
  const nodes = new Map(connection.nodes.list().map((node) => [node.metadata.name, node]));
  const pods = new Map([...nodes.keys()].map((name) => [name, connection.podsOn(name)]));
  const dropped = [...new Set(machines.map((machine) => machine.pool))].filter(
    (pool) => !op.pools.some((p) => p.name === pool),
  );
  const wanted = [
    ...op.pools.map(({ name, count }) => ({ name, count })),
    ...dropped.map((name) => ({ name, count: 0 })),
  ];
  const plans = planScaleIn(wanted, machines, nodes, pods);
  const victims = plans.flatMap((plan) => plan.victims);
  // What an earlier, broken off scale-in said of nodes that may stay is no longer true.
  const leaving = new Set(victims.map((machine) => machine.nodeName));
  for (const node of state.draining.keys()) if (!leaving.has(node)) state.draining.delete(node);
  for (const node of nodesToUncordon([...nodes.values()], victims)) await uncordon(connection.client, node);
  // All of a pool's victims are drained together; none is removed before all are empty, since the pool shrinks by a number.
  await Promise.all(
    plans.map(async (plan) => {
      await Promise.all(plan.victims.map((machine) => drainMachine(op, connection, machine, signal)));
      await provider.removeMachines(
        context,
        plan.pool,
        plan.victims.map((machine) => machine.name),
        plan.remaining,
      );
      for (const machine of plan.victims) state.draining.delete(machine.nodeName);
      world.record(
        op.shoot,
        'Normal',
        'ScaledIn',
        `pool ${plan.pool}: took away ${plan.victims.map((m) => m.name).join(', ')}; ${plan.remaining} machines stay`,
      );
    }),
  );
  for (const pool of dropped) await provider.deletePool(context, pool);
  await machinesGone(op, victims, signal);
}

async function drainMachine(
  op: Operation,
  connection: ShootConnection,
  machine: Machine,
  signal: AbortSignal,
): Promise<void> {
  const { state, world } = op;
  const node = connection.nodes.get(machine.nodeName);
  if (!node) return;
  const started = await cordon(connection.client, node, world.now());
  // Where the kubelet is gone nobody confirms that a pod ended: waiting would only ever end at the deadline.
  if (!conditionIsTrue(node, 'Ready')) return;
  await drain(
    {
      client: connection.client,
      now: world.now,
      podsOn: (name) => connection.podsOn(name),
      podsChanged: async (_name, timeoutMs, waitSignal) => {
        const changed = new AbortController();
        const off = connection.pods.onAnyChange(() => changed.abort());
        await sleep(timeoutMs, AbortSignal.any([waitSignal, changed.signal]));
        off();
      },
      report: (line) => {
        if (state.draining.get(machine.nodeName) === line) return;
        state.draining.set(machine.nodeName, line);
        op.notice();
      },
    },
    machine.nodeName,
    new Date(+started + drainTimeout(op.shoot, machine.pool)),
    signal,
  );
}

/** Gardener's machineControllerManager.machineDrainTimeout of the pool, in milliseconds. */
export function drainTimeout(shoot: Shoot, pool: string): number {
  const worker = shoot.spec.provider.workers?.find((candidate) => candidate.name === pool);
  const text = (worker?.machineControllerManager as { machineDrainTimeout?: string } | undefined)?.machineDrainTimeout;
  const match = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(text ?? '');
  if (!text || !match) return DRAIN_TIMEOUT_MS;
  const [, hours = 0, minutes = 0, seconds = 0] = match.map(Number);
  return ((hours || 0) * 3600 + (minutes || 0) * 60 + (seconds || 0)) * SECOND;
}

/** Waits until machines have gone and takes their Nodes away: without a cloud nobody else does. */
async function machinesGone(op: Operation, victims: readonly Machine[], signal: AbortSignal): Promise<void> {
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
  // Removing a Node deletes its pods from the API at once, where the node controller would wait minutes.
  for (const machine of victims) {
    await state.connection?.deleteNode(machine.nodeName);
  }
}

export const decoded = (data: Record<string, string> | undefined): Record<string, string> =>
  Object.fromEntries(
    Object.entries(data ?? {}).map(([name, value]) => [name, Buffer.from(value, 'base64').toString()]),
  );
