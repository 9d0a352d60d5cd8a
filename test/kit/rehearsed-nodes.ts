import { ANNOTATIONS } from '../../operator/api/group.ts';
import { formatCpu } from '../../operator/api/quantity.ts';
import type { DecidedSize } from '../../operator/capacity/desired-sizes.ts';
import { BATCH } from '../../operator/controllers/autoscaling/batches.ts';
import { Autoscaler } from '../../operator/controllers/autoscaling/controller.ts';
import type { NodesWorld } from '../../operator/controllers/autoscaling/world.ts';
import type { Decision } from '../../operator/controllers/decided-sizes.ts';
import type { Node, Pod } from '../../operator/kube/resources.ts';
import type { RehearsedCluster, Simulation } from '../../operator/rehearsal/state.ts';
import type { WorkGroup } from '../../operator/rehearsal/work-model.ts';
import { MINUTE, withCordon } from './burst.ts';

type AutoscalingDependencies = ConstructorParameters<typeof Autoscaler>[0];

/** What was done about the nodes of a cluster in one look. Words differ: a trace names work as no API server does. */
interface Done {
  sizes: unknown[];
  begun: string[];
  ended: string[];
  empty: string[];
  evicted: string[];
}

/** A look at one cluster: what the rehearsal did, and what the controller did in a garden that was so. */
export interface ComparedLook {
  readonly at: string;
  readonly rehearsal: Done;
  readonly garden: Done;
}

const nothing = (): Done => ({ sizes: [], begun: [], ended: [], empty: [], evicted: [] });

const sizeOf = (pool: string, { count, at, leaving, memory }: DecidedSize) =>
  JSON.parse(JSON.stringify({ pool, count, at, leaving, memory }));

interface Shown {
  simulation: Simulation;
  state: RehearsedCluster;
  nodes: readonly Node[];
  pods: readonly Pod[];
  done: Done;
}

/**
 * A garden in memory that has at each look at the nodes of a cluster what a rehearsal has, as API servers would show it. The operator's controller
 * decides there with a memory of its own.
 */
export class RehearsedNodes {
  readonly looks: ComparedLook[] = [];
  #shown: Shown | undefined;
  readonly #autoscalers = new Map<string, Autoscaler>();

  get differences(): ComparedLook[] {
    return this.looks.filter(({ rehearsal, garden }) => JSON.stringify(rehearsal) !== JSON.stringify(garden));
  }

  /** For RehearsalOptions. @param changed puts a fault into what the rehearsal sees */
  readonly nodesOf =
    (changed: (world: NodesWorld) => NodesWorld = (world) => world) =>
    async (simulated: NodesWorld, simulation: Simulation, state: RehearsedCluster): Promise<NodesWorld> => {
      const look = { at: simulated.now().toISOString(), rehearsal: nothing(), garden: nothing() };
      this.looks.push(look);
      this.#shown = { simulation, state, ...shown(simulation, state), done: look.garden };
      const key = `${state.key} ${state.object!.metadata.uid}`;
      const autoscaler = this.#autoscalers.get(key) ?? this.#start();
      this.#autoscalers.set(key, autoscaler);
      await autoscaler.reconcile(state.key, new AbortController().signal);
      return noted(changed(simulated), look.rehearsal);
    };

  #start(): Autoscaler {
    const shown = () => this.#shown!;
    const only = <T>(one: T | undefined) => ({ get: () => one, byIndex: () => (one ? [one] : []) });
    const deps = {
      get clusters() {
        const { clusters } = shown().simulation;
        const objects = () => [...clusters.values()].flatMap(({ object }) => object ?? []);
        return { get: (key: string) => clusters.get(key)?.object, byIndex: () => objects() };
      },
      get profiles() {
        return shown().simulation.scenario.profiles;
      },
      get shoots() {
        const { shoot, object } = shown().state;
        const ownerReferences = [{ kind: 'WorkerCluster', uid: object!.metadata.uid }];
        return only(shoot && { ...shoot, metadata: { ...shoot.metadata, ownerReferences } });
      },
      quotas: { byIndex: () => shown().simulation.scenario.quotas },
      openClusters: {
        get: () => ({
          client: {
            mergePatch: async (_: object, name: string, __: undefined, patch: Patch) => this.#patch(name, patch),
            evict: async ({ spec }: Pod) => {
              const { evicted } = shown().done;
              if (!evicted.includes(spec.nodeName!)) evicted.push(spec.nodeName!);
              return { outcome: 'evicted' };
            },
            list: async ({ plural }: { plural: string }) => ({ items: plural === 'daemonsets' ? [DAEMON_SET] : [] }),
          },
          nodes: { list: () => shown().nodes },
          pods: { list: () => shown().pods },
        }),
      },
      get capacity() {
        return shown().simulation.capacity;
      },
      granted: new Map(),
      decided: () => {
        const { decided } = shown().state;
        return decided.size > 0 ? new Map(decided) : 'none';
      },
      managed: () => undefined,
      provider: () => ({ name: 'aws', inCloud: {}, simulated: true }),
      now: () => new Date(shown().simulation.epoch + shown().simulation.now),
      sizes: {
        decide: async ({ pool, size }: Decision) => void shown().done.sizes.push(sizeOf(pool.name, size)),
        forget: async () => {},
      },
      recordEvent: () => {},
      tell: () => {},
    } as unknown as AutoscalingDependencies;
    return new Autoscaler(deps, { ...BATCH, patienceMs: 5 * MINUTE });
  }

  #patch(name: string, { metadata: { annotations } }: Patch): void {
    const { done } = this.#shown!;
    const since = annotations[ANNOTATIONS.emptiedSince];
    const where = since === null ? done.ended : since?.endsWith(' empty') ? done.empty : done.begun;
    where.push(name);
  }
}

interface Patch {
  metadata: { annotations: Record<string, string | null> };
}

/** The world, which notes what is done. */
const noted = (world: NodesWorld, done: Done): NodesWorld => ({
  ...world,
  async beginEmptying(node, signal) {
    done.begun.push(node.metadata.name);
    await world.beginEmptying(node, signal);
  },
  async endEmptying(node, signal) {
    done.ended.push(node.metadata.name);
    await world.endEmptying(node, signal);
  },
  async markEmpty(node, signal) {
    done.empty.push(node.metadata.name);
    await world.markEmpty(node, signal);
  },
  async evict(node, pods, turn) {
    if (pods.length > 0) done.evicted.push(node.metadata.name);
    return world.evict(node, pods, turn);
  },
  async decide(pool, size, signal) {
    done.sizes.push(sizeOf(pool.name, size));
    await world.decide(pool, size, signal);
  },
});

const REQUESTS = { cpu: '100m', memory: '128Mi' };

/** What the system has on each node. */
const DAEMON_SET = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'system', namespace: 'kube-system', uid: 'system' },
  spec: {
    template: {
      spec: {
        tolerations: [{ operator: 'Exists' }],
        containers: [{ name: 'system', resources: { requests: REQUESTS } }],
      },
    },
  },
};

const daemonOn = (nodeName: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: `system-${nodeName}`,
    namespace: 'kube-system',
    uid: `system-${nodeName}`,
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'system', uid: 'system', controller: true }],
  },
  spec: { ...DAEMON_SET.spec.template.spec, nodeName },
  status: { phase: 'Running' },
});

/** As API servers show nodes and pods of a cluster. */
function shown({ work, epoch }: Simulation, { key, nodes, profile }: RehearsedCluster): Pick<Shown, 'nodes' | 'pods'> {
  const running = [...nodes.keys()].flatMap((name) => [
    daemonOn(name),
    ...work!.podsOn(key, name).map((pod, index) => podOf(pod, `${name}-${index}`, { nodeName: name })),
  ]);
  const waiting = [...work!.groups.values()]
    .filter(({ cluster }) => cluster === key)
    .flatMap((group) => waitingOf(group, epoch));
  return {
    nodes: [...nodes.values()].map((node) => kubeletsNode(node, profile!.spec.machineTypes)),
    pods: [...running, ...waiting],
  };
}

function waitingOf({ object, rank, waiting, waitingCount }: WorkGroup, epoch: number): Pod[] {
  const since = new Date(epoch + (waiting[0]?.since ?? 0)).toISOString();
  const unscheduled = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', lastTransitionTime: since };
  return Array.from({ length: waitingCount }, (_, index) => ({
    ...podOf(object, `waits-${rank}-${index}`, {}),
    status: { phase: 'Pending', conditions: [unscheduled] },
  }));
}

const podOf = (pod: Pod, name: string, spec: Partial<Pod['spec']>): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, name, uid: name },
  spec: { ...pod.spec, ...spec },
  status: { phase: 'Running' },
});

/** What kubelets of machines that Coppice makes in clouds offer, by another formula than the operator's: see providers/machines/user-data.ts. */
function kubeletsNode(
  node: Node,
  types: readonly { name: string; cpu: unknown; memory: unknown; gpu?: unknown }[],
): Node {
  const type = types.find(({ name }) => name === node.metadata.labels?.['node.kubernetes.io/instance-type'])!;
  const memory = Number.parseInt(String(type.memory), 10) * 2 ** 30 * 0.925 - 400 * 2 ** 20;
  return {
    ...node,
    spec: withCordon(node.spec),
    status: {
      ...node.status,
      allocatable: {
        cpu: formatCpu(Number(type.cpu) * 1000 - 100),
        memory: String(Math.floor(memory)),
        pods: '110',
        ...(Number(type.gpu ?? 0) > 0 && { 'nvidia.com/gpu': String(type.gpu) }),
      },
    } as unknown as NonNullable<Node['status']>,
  };
}
