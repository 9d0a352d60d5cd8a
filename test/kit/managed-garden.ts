import { AccountChecks } from '../../operator/accounts/account-checks.ts';
import { credentialsIn, credentialsOf } from '../../operator/accounts/credentials.ts';
import type { CloudProfile } from '../../operator/api/cloudprofile.ts';
import { findCondition } from '../../operator/api/conditions.ts';
import type { CredentialsBinding } from '../../operator/api/credentialsbinding.ts';
import { API_VERSION, LABELS } from '../../operator/api/group.ts';
import { type WorkerCluster, workerClusterSpec } from '../../operator/api/workercluster.ts';
import { DepletedOffers } from '../../operator/capacity/depleted-offers.ts';
import type { Decided } from '../../operator/capacity/desired-sizes.ts';
import type { ConnectionListener, KubeconfigConnection } from '../../operator/clusters/kubeconfig-cluster.ts';
import { ManagedController } from '../../operator/controllers/managed/controller.ts';
import type { ManagedDependencies, StoredKubeconfig } from '../../operator/controllers/managed/dependencies.ts';
import { boundReceipt, clusterOfReceipt, type ManagedReceipt } from '../../operator/controllers/managed/receipt.ts';
import { leavingIn } from '../../operator/controllers/managed/removal.ts';
import { noteShortages } from '../../operator/controllers/shortages.ts';
import {
  reconcileWorkerCluster,
  type WorkerClusterDependencies,
} from '../../operator/controllers/workercluster/controller.ts';
import { type Controller, runController } from '../../operator/kube/controller.ts';
import { parseUntrustedKubeconfig } from '../../operator/kube/kubeconfig.ts';
import { silent } from '../../operator/kube/log.ts';
import { keyOf, type Node, type Pod, type Resource, type Secret } from '../../operator/kube/resources.ts';
import { WorkQueue } from '../../operator/kube/workqueue.ts';
import { writeKubeconfigText } from '../../operator/pki/kubeconfig.ts';
import { FakeClock } from '../unit/kube/fake-clock.ts';
import { managedOnly } from './managed-only.ts';
import type { MemoryCloud } from './memory-cloud.ts';

const EPOCH = Date.parse('2026-11-21T00:00:00Z');

export const memoryProfile: CloudProfile = {
  apiVersion: API_VERSION,
  kind: 'CloudProfile',
  metadata: { name: 'memory', uid: 'p', resourceVersion: '1' },
  spec: {
    type: 'memory',
    kubernetes: {
      versions: [
        { version: '1.35.4', classification: 'supported' },
        { version: '1.36.3', classification: 'supported' },
      ],
    },
    machineTypes: ['m', 'n', 'o'].map((name) => ({ name, cpu: 2, gpu: 0, memory: '8Gi' })),
    regions: [{ name: 'here', zones: [{ name: 'here-a' }, { name: 'here-b' }] }],
    defaults: { mode: 'Managed', region: 'here', machineType: 'm' },
  },
};

/** Another cloud, to which clusters may fall back. */
const elsewhereProfile: CloudProfile = {
  ...memoryProfile,
  metadata: { name: 'elsewhere', uid: 'e', resourceVersion: '1' },
  spec: { ...memoryProfile.spec, type: 'elsewhere' },
};
const PROFILES: Readonly<Record<string, CloudProfile>> = { memory: memoryProfile, elsewhere: elsewhereProfile };

/** What outlives an operator: the objects of a garden, without an API server. */
export class ManagedGarden {
  readonly clock = new FakeClock();
  readonly clusters = new Map<string, WorkerCluster>();
  /** As JSON: what is written is not what is held. */
  readonly receipts = new Map<string, string>();
  readonly kubeconfigs = new Map<string, StoredKubeconfig>();
  readonly secrets = new Map<string, Secret>();
  readonly bindings = new Map<string, CredentialsBinding>();
  /** Where real engines keep their state. */
  stateURL = 'file:///state';
  /** Nodes of every managed cluster, and pods. */
  nodes: Node[] = [];
  pods: Pod[] = [];
  /** What was decided for the pools of every managed cluster. */
  decided: Decided = 'none';
  /** Bearer tokens that managed clusters take; others are nobody. */
  readonly tokens = new Set(['cloud-token']);
  tokensMade = 0;
  /** Whether identities may make a ServiceAccount in the cluster. */
  ownAccounts = true;
  readonly events: string[] = [];
  /** Who follows whether API servers answer. */
  readonly lines = new Set<ConnectionListener>();
  /** Whether API servers of managed clusters answer: see goSilent. */
  answering = true;
  /** How often operators have written one. */
  statusWrites = 0;
  #serial = 0;
  #version = 0;

  constructor() {
    this.credentials('cloud', { accessKey: 'key-1' });
  }

  /** API servers of managed clusters stop answering, or answer again. */
  goSilent(silent: boolean): void {
    this.answering = !silent;
    for (const news of this.lines) news.answers(!silent);
  }

  now(): Date {
    return new Date(EPOCH + this.clock.now());
  }

  credentials(name: string, values: Record<string, string>, namespace = 'shop'): void {
    const data = Object.fromEntries(Object.entries(values).map(([k, v]) => [k, Buffer.from(v).toString('base64')]));
    const secret: Secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, data };
    this.secrets.set(`${namespace}/${name}`, secret);
  }

  /** Applies a cluster; its spec is as somebody would write it. */
  apply(name: string, spec: object = {}, namespace = 'shop'): string {
    const key = `${namespace}/${name}`;
    const old = this.clusters.get(key);
    const whole = { cloudProvider: 'memory', dataPlaneNodes: 2, credentialsRef: { name: 'cloud' }, ...spec };
    this.clusters.set(key, {
      apiVersion: API_VERSION,
      kind: 'WorkerCluster',
      ...(old?.status && { status: old.status }),
      spec: workerClusterSpec.parse(whole),
      metadata: {
        ...(old?.metadata ?? { name, namespace, uid: `uid-${++this.#serial}` }),
        generation: (old?.metadata.generation ?? 0) + 1,
        resourceVersion: String(++this.#version),
      },
    });
    return key;
  }

  annotate(key: string, annotations: Record<string, string>): void {
    this.change(key, (metadata) => ({ ...metadata, annotations }));
  }

  /** As an API server does: what nobody holds goes at once. */
  delete(key: string): string {
    if (!this.clusters.get(key)?.metadata.finalizers?.length) {
      this.clusters.delete(key);
      return key;
    }
    this.change(key, (metadata) => ({ ...metadata, deletionTimestamp: this.now().toISOString() }));
    return key;
  }

  /** As an operator writes them: an object on its way out that nobody holds any more is gone. */
  finalizers(key: string, finalizers: string[]): string {
    this.change(key, (metadata) => ({ ...metadata, finalizers }));
    const { deletionTimestamp } = this.clusters.get(key)!.metadata;
    if (deletionTimestamp && finalizers.length === 0) this.clusters.delete(key);
    return key;
  }

  writeStatus(key: string, status: WorkerCluster['status']): string {
    this.statusWrites++;
    this.clusters.set(key, { ...this.clusters.get(key)!, ...(status && { status }) });
    return key;
  }

  change(key: string, change: (metadata: WorkerCluster['metadata']) => WorkerCluster['metadata']): void {
    const cluster = this.clusters.get(key)!;
    const metadata = { ...change(cluster.metadata), resourceVersion: String(++this.#version) };
    this.clusters.set(key, { ...cluster, metadata });
  }

  receipt(key: string): ManagedReceipt | undefined {
    const text = this.receipts.get(key);
    return text === undefined ? undefined : (JSON.parse(text) as ManagedReceipt);
  }

  condition(key: string, type: string) {
    return findCondition(this.clusters.get(key)?.status?.conditions, type);
  }
}

/** An operator of managed clusters over a garden without an API server, and a cloud in memory. */
export class ManagedOperator {
  readonly controller: ManagedController;
  /** What it remembers of machines that were sold out. */
  readonly capacity: DepletedOffers;
  readonly garden: ManagedGarden;
  readonly #provider: ReturnType<typeof managedOnly>;
  readonly #queue: WorkQueue;
  readonly #clusterQueue: WorkQueue;
  readonly #runners: Controller[];
  #killed = false;

  constructor(
    garden: ManagedGarden,
    cloud: Pick<MemoryCloud, 'managed'>,
    name = 'one',
    version = '1',
    profiles: Readonly<Record<string, CloudProfile>> = PROFILES,
  ) {
    this.garden = garden;
    this.capacity = new DepletedOffers(() => garden.now());
    this.#provider = managedOnly('memory', cloud.managed(name, version));
    this.#queue = new WorkQueue({ clock: garden.clock });
    this.controller = new ManagedController(this.#deps());
    this.#clusterQueue = new WorkQueue({ clock: garden.clock });
    const deps = this.#clusterDependencies(profiles);
    this.#runners = [
      runController({
        name: 'managed',
        queue: this.#queue,
        concurrency: 16,
        reconcile: (key, stop) => this.controller.reconcile(key, stop),
      }),
      runController({
        name: 'workercluster',
        queue: this.#clusterQueue,
        concurrency: 16,
        reconcile: (key, stop) => reconcileWorkerCluster(deps, key, stop),
      }),
    ];
    for (const key of garden.clusters.keys()) this.look(key);
  }

  /** A cluster, or what is known about it, has changed. */
  look(key: string): void {
    if (this.#killed) return;
    if (this.garden.clusters.has(key)) this.#clusterQueue.add(key);
    else void this.controller.forget(key).then((isLeft) => isLeft && this.#queue.add(key));
  }

  /** Somebody changed a Secret or binding. */
  credentialsChanged(): void {
    for (const key of this.garden.clusters.keys()) this.#queue.add(key);
  }

  /** kill -9: nothing of what it was doing goes on. Tell the cloud as well. */
  kill(): void {
    this.#killed = true;
  }

  async stop(): Promise<void> {
    // What hangs in a killed one hangs for ever.
    if (this.#killed) return;
    await Promise.all(this.#runners.map((runner) => runner.stop(0)));
    await this.controller.stop();
  }

  /** What a dead operator still wanted to do never happens. */
  async #alive<T>(act: () => T): Promise<T> {
    if (this.#killed) await new Promise(() => {});
    return act();
  }

  /** The garden as the controller of WorkerClusters sees it: it writes nothing but their status and finalizers. */
  #clusterDependencies(profiles: Readonly<Record<string, CloudProfile>>): WorkerClusterDependencies {
    const { garden } = this;
    const none = { get: () => undefined, list: () => [], byIndex: () => [] };
    const write = (act: () => string) =>
      this.#alive(() => {
        const key = act();
        // Its own writes come back to it as changes.
        this.look(key);
        return garden.clusters.get(key);
      });
    return {
      garden: {
        apply: ({ metadata, status }: WorkerCluster) => write(() => garden.writeStatus(keyOf({ metadata }), status)),
        mergePatch: (_: Resource, name: string, namespace: string, patch: Pick<WorkerCluster, 'metadata'>) =>
          // The number for the scale subresource is nothing that this garden keeps.
          patch.metadata.finalizers
            ? write(() => garden.finalizers(`${namespace}/${name}`, patch.metadata.finalizers ?? []))
            : Promise.resolve(garden.clusters.get(`${namespace}/${name}`)),
        jsonPatch: (_: Resource, name: string, namespace: string) =>
          write(() => garden.finalizers(`${namespace}/${name}`, [])),
        delete: (_: Resource, name: string, namespace: string) => write(() => garden.delete(`${namespace}/${name}`)),
      },
      clusters: { ...none, get: (key: string) => garden.clusters.get(key), absorb: () => {} },
      profiles: { get: (name: string) => profiles[name], list: () => Object.values(profiles) },
      shoots: none,
      quotas: none,
      granted: new Map(),
      capacity: this.capacity,
      decided: () => garden.decided,
      sizes: { remove: async () => {}, sleepOrder: () => 'none' } satisfies WorkerClusterDependencies['sizes'],
      meshes: undefined,
      managed: this.controller,
      attached: undefined,
      autoscaler: undefined,
      holds: () => [],
      keepsAwake: () => [],
      now: () => garden.now(),
      provider: () => this.#provider,
      recordEvent: this.#receipt,
    } satisfies Record<
      keyof Omit<WorkerClusterDependencies, 'gardenApplier'>,
      unknown
    > as unknown as WorkerClusterDependencies;
  }

  readonly #receipt: ManagedDependencies['recordEvent'] = (_object, type, reason, message) =>
    void this.garden.events.push(`${type} ${reason}: ${message}`);

  #deps(): ManagedDependencies {
    const { garden } = this;
    const alive = <T>(act: () => T): Promise<T> => this.#alive(act);
    const checks = new AccountChecks();
    const receipt = this.#receipt;
    return {
      garden: 'garden-uid',
      log: silent,
      clock: garden.clock,
      now: () => garden.now(),
      random: () => 0.5,
      credentials: (cluster, profile) =>
        alive(() => {
          const use = credentialsOf(cluster, profile.spec.type, (ns, name) => garden.bindings.get(`${ns}/${name}`));
          return credentialsIn(garden.secrets.get(`${use.namespace}/${use.secret}`), use);
        }),
      checkAccount: (wish, ctx, version) => checks.check(wish.clouds!, ctx, version),
      stateBackend: async () => ({ url: garden.stateURL, passphrase: 'p', env: {} }),
      leaving: () => leavingIn(garden.decided),
      receipts: {
        get: (key) => garden.receipt(key),
        save: (receipt) =>
          alive(() => void garden.receipts.set(clusterOfReceipt(receipt), JSON.stringify(boundReceipt(receipt)))),
        remove: (key) => alive(() => void garden.receipts.delete(key)),
      },
      kubeconfigs: {
        get: (key) => garden.kubeconfigs.get(key),
        save: (cluster, stored) => alive(() => void garden.kubeconfigs.set(keyOf(cluster), stored)),
        remove: (cluster) => alive(() => void garden.kubeconfigs.delete(keyOf(cluster))),
      },
      connect: (_key, text, news) => alive(() => line(garden, text, news)),
      enqueue: (key) => this.#queue.add(key),
      changed: (key) => this.look(key),
      depleted: (wish, error) => {
        const { cluster, desired, profile = memoryProfile } = wish;
        const pools = desired?.pools ?? [];
        noteShortages(this.capacity, { recordEvent: receipt, cluster, profile, pools }, error);
      },
      clearRequest: (cluster) =>
        alive(() => {
          garden.change(keyOf(cluster), (metadata) => {
            const rest = { ...metadata };
            delete rest.annotations;
            return rest;
          });
          this.look(keyOf(cluster));
        }),
      recordEvent: receipt,
    };
  }
}

/** A line to a managed cluster that knows its own tokens. */
function line(garden: ManagedGarden, text: string, news: ConnectionListener): KubeconfigConnection {
  let current = parseUntrustedKubeconfig(text);
  const known = () => garden.tokens.has(current.token ?? '');
  if (!known()) throw new Error('401 Unauthorized');
  garden.lines.add(news);
  return {
    get answers() {
      return garden.answering;
    },
    get nodes() {
      return garden.nodes;
    },
    get pods() {
      return garden.pods;
    },
    ready: async () => garden.answering && known(),
    async ownKubeconfig() {
      if (!known() || !garden.ownAccounts) return undefined;
      const token = `own-token-${garden.tokensMade++}`;
      garden.tokens.add(token);
      const { server, ca } = current;
      return {
        kubeconfig: writeKubeconfigText({ server, ca: ca ?? '', token, name: 'cluster', user: 'coppice-admin' }),
        expiresAt: new Date(+garden.now() + 24 * 3600_000).toISOString(),
      };
    },
    use: (next) => {
      current = parseUntrustedKubeconfig(next);
    },
    close: async () => void garden.lines.delete(news),
  };
}

/** A Node that is Ready; without labels it is one that the cloud has for itself. */
export const readyNode = (name: string, labels: Record<string, string> = { [LABELS.pool]: 'default' }): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels },
  spec: {},
  status: {
    conditions: [{ type: 'Ready', status: 'True' }],
    allocatable: { cpu: '2', memory: '8Gi' },
  },
});
