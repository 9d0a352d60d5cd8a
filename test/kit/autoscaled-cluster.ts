import type { CloudProfile } from '../../operator/api/cloudprofile.ts';
import type { Quota } from '../../operator/api/quota.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import { pack } from '../../operator/burst/fit/pack.ts';
import { fitPod } from '../../operator/burst/fit/pod.ts';
import { volumeFacts } from '../../operator/burst/fit/volume-facts.ts';
import { DepletedOffers } from '../../operator/capacity/depleted-offers.ts';
import { desiredSizes } from '../../operator/capacity/desired-sizes.ts';
import { BATCH } from '../../operator/controllers/autoscaling/batches.ts';
import { Autoscaler } from '../../operator/controllers/autoscaling/controller.ts';
import { DecidedSizes } from '../../operator/controllers/decided-sizes.ts';
import { planScaleIn } from '../../operator/controllers/shoot/machines/scale-in.ts';
import { isMovable } from '../../operator/kube/pods.ts';
import type { Eviction } from '../../operator/kube/requests/evict.ts';
import {
  keyOf,
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  SECRETS,
  type Secret,
} from '../../operator/kube/resources.ts';
import { providerNamed } from '../../providers/index.ts';
import { buildCloudProfile, buildQuota, buildShoot, buildWorkerCluster } from './builders/objects.ts';
import { partOf } from './builders/partial.ts';
import { MINUTE, NOW, node, pod, stateOf, withCordon } from './burst.ts';
import { MemoryApiServer } from './memory-api-server.ts';

type AutoscalingDependencies = ConstructorParameters<typeof Autoscaler>[0];

const KEY = 'shop/one';
const OPERATOR = 'kube-system';

export const profile = (machineTypes = [{ name: 'medium', cpu: 4, gpu: 0, memory: '8Gi' }]): CloudProfile =>
  buildCloudProfile({
    spec: {
      machineTypes,
      regions: [{ name: 'here', zones: [] }],
      defaults: { mode: 'Hosted', region: 'here', machineType: 'medium' },
    },
  });

/** Lets the project have so many nodes. */
export const nodesQuota = (nodes: number): Quota =>
  buildQuota({ metadata: { name: 'small' }, spec: { metrics: { nodes } } });

/**
 * A cluster with a scheduler, a ReplicaSet and machines that all take a step when told to, and the real autoscaler, which may be killed between
 * any two of its writes. One machine is as large as another: 4 CPUs.
 */
export class AutoscaledCluster {
  readonly garden = new MemoryApiServer();
  readonly nodes = new Map<string, Node>();
  readonly pods = new Map<string, Pod>();
  readonly events: string[] = [];
  /** Pods that a machine took with it. */
  readonly killed: string[] = [];
  /** Nodes that were made, and those that were taken away, in turn. */
  readonly history: string[] = [];
  /** Names of pods that a PodDisruptionBudget holds. */
  readonly held = new Set<string>();
  readonly capacity = new DepletedOffers(() => new Date(this.now));
  quotas: Quota[] = [];
  /** Names of pods of which the API server refuses an eviction, whatever budgets say. */
  readonly refused = new Set<string>();
  /** Names of pods whose eviction hangs until the client gives up. */
  readonly hanging = new Set<string>();
  /** Names of pods whose eviction was asked for. */
  readonly asked: string[] = [];
  /** What the API server answers to each change of a node; undefined: it makes it. */
  nodesRefuse: Error | undefined;
  /** What else is in the cluster, by the plural of its kind. */
  readonly objects: Record<string, readonly object[]> = {};
  /** What the pods have that are made from now on. */
  podsHave: Parameters<typeof pod>[2] = {};
  now = NOW;
  /** Machines come and go only each so many steps; new ones are Ready one such time later. */
  lag = 1;
  /** Whether a cloud makes the nodes, of whom none can be named to go. */
  isManaged = false;
  /** What the kubelet of each node offers. */
  offers = '4';
  /** Labels that the provider gives each node that is made from now on. */
  labels: Record<string, string> = {};
  /** A taint that somebody gives each node once it is Ready. */
  taint: string | undefined;
  /** So many machines are never Ready. */
  broken = 0;
  /** How many writes the operator still makes before it is killed; undefined: it is not. */
  writesLeft: number | undefined;
  writes = 0;
  cluster: WorkerCluster;
  /** Replicas that somebody wants, and CPU of each. */
  #wanted = 0;
  #cpu = '1';
  #serial = 0;
  #steps = 0;
  readonly #broken = new Set<string>();
  #autoscaler: Autoscaler;
  readonly #profile: CloudProfile;

  constructor(pools: object[], more: object = {}, of: CloudProfile = profile()) {
    this.#profile = of;
    this.cluster = buildWorkerCluster({
      metadata: { uid: 'u1', generation: 1, creationTimestamp: '2026-11-22T00:00:00Z' },
      spec: { pools: pools.map((one) => ({ autoscale: 'Coppice', ...one })), ...more },
    });
    this.#autoscaler = this.#start();
  }

  /** A Deployment is scaled. */
  deploy(replicas: number, cpu = this.#cpu): void {
    this.#wanted = replicas;
    this.#cpu = cpu;
  }

  get counts(): Record<string, number> {
    const found: Record<string, number> = {};
    for (const { metadata } of this.nodes.values()) {
      const pool = metadata.labels!['multi-cluster.demo.io/pool']!;
      found[pool] = (found[pool] ?? 0) + 1;
    }
    return found;
  }

  get pending(): number {
    return [...this.pods.values()].filter(({ spec }) => !spec.nodeName).length;
  }

  condition() {
    return this.#autoscaler.condition(KEY, 'u1');
  }

  /** What is stored of the sizes of pools. */
  decided() {
    return this.#sizes.get(KEY, 'u1');
  }

  /** The operator is killed and starts anew: all that it keeps in memory is lost. */
  restart(): void {
    this.writesLeft = undefined;
    this.#autoscaler = this.#start();
  }

  /** Somebody changes a node by hand. */
  byHand(name: string, change: { labels?: Record<string, string>; taints?: Node['spec']['taints'] }): void {
    const known = this.nodes.get(name)!;
    const labels = { ...known.metadata.labels, ...change.labels };
    const spec = { ...known.spec, ...(change.taints && { taints: change.taints }) };
    this.nodes.set(name, { ...known, metadata: { ...known.metadata, labels }, spec });
  }

  /** A second passes: pods are made and scheduled, the operator looks, machines come and go. */
  async step(seconds = 1): Promise<void> {
    this.now += seconds * 1000;
    this.#replicate();
    this.#nameHeld();
    this.#taintCordoned();
    this.#schedule();
    this.#autoscaler.noteChange(KEY);
    this.now += BATCH.idleMs;
    try {
      await this.#autoscaler.reconcile(KEY, new AbortController().signal);
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
      this.restart();
    }
    if (++this.#steps % this.lag === 0) this.#machines();
  }

  /** @param minutes that pass, in steps of so many seconds */
  async pass(minutes: number, seconds = 30): Promise<void> {
    for (let step = 0; step < (minutes * 60) / seconds; step++) await this.step(seconds);
  }

  readonly #sizes = new DecidedSizes(this.garden, OPERATOR, this.garden.cache<Secret>(SECRETS));

  #start(): Autoscaler {
    const shoot = buildShoot({ metadata: { ownerReferences: [{ uid: 'u1' }] } });
    const write = async <T>(work: () => T | Promise<T>): Promise<T> => {
      if (this.writesLeft !== undefined && this.writesLeft-- <= 0) throw new Killed();
      this.writes++;
      return work();
    };
    const sizes = this.#sizes;
    const deps = partOf<AutoscalingDependencies>({
      clusters: { get: (key: string) => (key === KEY ? this.cluster : undefined), byIndex: () => [this.cluster] },
      profiles: { get: () => this.#profile },
      shoots: { get: () => (this.isManaged ? undefined : shoot), byIndex: () => [] },
      quotas: { byIndex: () => this.quotas },
      openClusters: {
        get: () => ({
          client: {
            mergePatch: (_: object, name: string, __: undefined, patch: Patch) => write(() => this.#patch(name, patch)),
            evict: (one: Pod) => write(() => this.#evict(one)),
            list: async ({ plural }: { plural: string }) => ({ items: this.#listed(plural) }),
          },
          nodes: { list: () => [...this.nodes.values()] },
          pods: { list: () => [...this.pods.values()] },
        }),
      },
      capacity: this.capacity,
      granted: new Map(),
      decided: () => sizes.get(KEY, 'u1'),
      managed: () => undefined,
      provider: () => providerNamed('simulated'),
      now: () => new Date(this.now),
      sizes: {
        decide: (decision: Parameters<DecidedSizes['decide']>[0]) => write(() => sizes.decide(decision)),
        forget: (...args: Parameters<DecidedSizes['forget']>) => sizes.forget(...args),
      },
      recordEvent: (_: object, type: string, reason: string, message: string) =>
        void this.events.push(`${type} ${reason}: ${message}`),
      tell: () => {},
    });
    return new Autoscaler(deps, { ...BATCH, patienceMs: 5 * MINUTE });
  }

  #listed(plural: string): readonly object[] {
    const given = this.objects[plural] ?? [];
    return plural === 'poddisruptionbudgets' ? [...given, ...[...this.held].map(budgetOf)] : given;
  }

  /** A budget of one pod selects it by its name. */
  #nameHeld(): void {
    for (const [key, one] of this.pods) {
      const { name, labels } = one.metadata;
      if (!this.held.has(name) || labels?.[POD_NAME]) continue;
      this.pods.set(key, { ...one, metadata: { ...one.metadata, labels: { ...labels, [POD_NAME]: name } } });
    }
  }

  #patch(name: string, patch: Patch): void {
    if (this.nodesRefuse) throw this.nodesRefuse;
    const known = this.nodes.get(name)!;
    const annotations = { ...known.metadata.annotations, ...patch.metadata.annotations };
    for (const key of Object.keys(annotations)) if (annotations[key] === null) delete annotations[key];
    const { unschedulable } = patch.spec;
    this.nodes.set(name, {
      ...known,
      metadata: { ...known.metadata, annotations: annotations as Record<string, string> },
      spec: { ...known.spec, unschedulable: unschedulable === true },
    });
  }

  #evict(one: Pod): Eviction {
    this.asked.push(one.metadata.name);
    if (this.held.has(one.metadata.name)) return { outcome: 'blocked', message: 'the budget needs 1' };
    if (this.refused.has(one.metadata.name)) return { outcome: 'refused', message: 'a webhook says no' };
    if (this.hanging.has(one.metadata.name)) {
      this.now += 30_000;
      return { outcome: 'refused', message: 'no answer', isUnanswered: true };
    }
    this.pods.delete(keyOf(one));
    return { outcome: 'evicted' };
  }

  #replicate(): void {
    const own = [...this.pods.values()].filter(({ metadata }) => metadata.labels?.app === 'web');
    for (const one of own.slice(this.#wanted)) this.pods.delete(keyOf(one));
    for (let missing = this.#wanted - own.length; missing > 0; missing--) {
      const made = pod(this.#cpu, undefined, this.podsHave);
      this.pods.set(keyOf(made), made);
    }
  }

  /** The node controller of Kubernetes: its taint follows a cordon later than the cordon is seen. */
  #taintCordoned(): void {
    for (const [name, known] of this.nodes) this.nodes.set(name, { ...known, spec: withCordon(known.spec) });
  }

  #schedule(): void {
    const running = [...this.pods.values()];
    const { persistentvolumeclaims, persistentvolumes } = this.objects as Volumes;
    const volumes = volumeFacts({
      ...(persistentvolumeclaims && { claims: persistentvolumeclaims }),
      ...(persistentvolumes && { volumes: persistentvolumes }),
    });
    const state = stateOf([...this.nodes.values()], running, { volumes });
    const waiting = running.filter(({ spec }) => !spec.nodeName);
    const { placed } = pack(
      waiting.map((one) => ({ key: keyOf(one), pod: fitPod(one) })),
      state,
    );
    for (const [key, nodeName] of placed) {
      const one = this.pods.get(key)!;
      this.pods.set(key, { ...one, spec: { ...one.spec, nodeName }, status: { phase: 'Running' } });
    }
  }

  /** As the WorkerCluster, its Shoot and its provider do it. */
  #machines(): void {
    for (const [name, { spec, ...known }] of this.nodes) {
      const { taints, ...rest } = spec;
      const { status } = node(name, 'a', {}, this.offers);
      if (!taints?.some(({ key }) => key === 'node.kubernetes.io/not-ready') || this.#broken.has(name)) continue;
      const given = this.taint && { taints: [{ key: this.taint, effect: 'NoSchedule' as const }] };
      this.nodes.set(name, { ...known, spec: { ...rest, ...given }, ...(status && { status }) });
    }
    const sizes = desiredSizes({ cluster: this.cluster, profile: this.#profile, decided: this.decided() });
    const machines = [...this.nodes.values()].map(({ metadata }) => ({
      name: metadata.name,
      nodeName: metadata.name,
      pool: metadata.labels!['multi-cluster.demo.io/pool']!,
      phase: 'Running' as const,
      ready: true,
      createdAt: metadata.creationTimestamp ?? '',
    }));
    const podsOn = new Map(
      [...this.nodes.keys()].map((name) => [
        name,
        [...this.pods.values()].filter(({ spec }) => spec.nodeName === name),
      ]),
    );
    for (const { victims } of planScaleIn(sizes, machines, this.nodes, podsOn))
      for (const { name } of victims) {
        for (const lost of (podsOn.get(name) ?? []).filter(isMovable)) {
          this.killed.push(lost.metadata.name);
          this.pods.delete(keyOf(lost));
        }
        this.nodes.delete(name);
        this.history.push(`-${name}`);
      }
    for (const { name: pool, count } of sizes)
      for (let made = machines.filter((one) => one.pool === pool).length; made < count; made++) {
        const name = `${pool}-${++this.#serial}`;
        const creationTimestamp = new Date(this.now).toISOString();
        const made = node(name, pool, NOT_READY);
        if (this.broken-- > 0) this.#broken.add(name);
        const labels = { ...made.metadata.labels, ...this.labels };
        this.nodes.set(name, { ...made, metadata: { ...made.metadata, labels, creationTimestamp } });
        this.history.push(`+${name}`);
      }
  }
}

const POD_NAME = 'statefulset.kubernetes.io/pod-name';

/** A PodDisruptionBudget that lets nobody disrupt the pod of this name. */
const budgetOf = (name: string) => ({
  metadata: { name: `of-${name}`, namespace: 'shop' },
  spec: { selector: { matchLabels: { [POD_NAME]: name } } },
  status: { disruptionsAllowed: 0 },
});

class Killed extends Error {}

const NOT_READY = {
  spec: { taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }] },
  status: { conditions: [{ type: 'Ready', status: 'False' }] },
};

interface Volumes {
  persistentvolumeclaims?: readonly PersistentVolumeClaim[];
  persistentvolumes?: readonly PersistentVolume[];
}

interface Patch {
  metadata: { annotations: Record<string, string | null> };
  spec: { unschedulable: true | null };
}
