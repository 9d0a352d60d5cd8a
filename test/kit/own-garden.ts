import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inject } from 'vitest';
import { isTrue } from '../../operator/api/conditions.ts';
import { API_VERSION, LABELS } from '../../operator/api/group.ts';
import { COMPONENTS, KUBECONFIG_KEY, kubeconfigSecretName, technicalID } from '../../operator/api/names.ts';
import type { Shoot } from '../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import { EtcdClient } from '../../operator/etcd/etcd-client.ts';
import { type DaemonStatus, readStatus } from '../../operator/garden/daemon/status.ts';
import { Cgroups, cgroupName, readLayout } from '../../operator/garden/host/cgroups.ts';
import { readJson } from '../../operator/garden/host/files.ts';
import type { ProcessIdentity } from '../../operator/garden/host/process-identity.ts';
import { takeDownSeed } from '../../operator/garden/seed/cleanup.ts';
import { StateDirectory } from '../../operator/garden/state/state.ts';
import { KubeClient } from '../../operator/kube/client.ts';
import { Informer, waitFor } from '../../operator/kube/informer.ts';
import {
  type KubeObject,
  NAMESPACES,
  NODES,
  type PersistentVolume,
  PODS,
  type Pod,
  PVCS,
  PVS,
  type Resource,
  SECRETS,
  SERVICES,
  type Secret,
  type Service,
  SHOOTS,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import { ETCD_GATEWAY_PORT } from '../../operator/shoot/values.ts';
import { PATIENCE_MS } from './garden.ts';
import { makeHome } from './home.ts';
import { leftOvers } from './left-overs.ts';
import { COPPICE, type CommandResult, owned, type RunOptions, runCoppice } from './run.ts';
import { argsOnPage } from './task-pages/on-page.ts';

const RETRY_MS = 300;

/** The processes of a garden that its daemon keeps up. */
export type Part = 'etcd' | 'kube-apiserver' | 'kubelet' | 'containerd' | 'operator';

/** What there is of one cluster, to see that nothing was made twice. */
export interface Inventory {
  /** Namespaces in the seed that bear the cluster's labels. */
  namespaces: string[];
  machines: string[];
  etcdPods: string[];
  etcdVolumes: string[];
  etcdMembers: string[];
  /** Nodes that the cluster itself knows. */
  nodes: string[];
}

/** A garden of one test file alone, for tests that kill parts of it. End it with dispose(). */
export class OwnGarden {
  readonly home: string;
  readonly directory: StateDirectory;
  #client: KubeClient | undefined;
  readonly #informers = new Map<Resource, Informer<any>>();

  readonly #tools: string;
  readonly #env: NodeJS.ProcessEnv;

  private constructor(home: string, tools: string, env: NodeJS.ProcessEnv) {
    this.home = home;
    this.#tools = tools;
    this.#env = env;
    this.directory = new StateDirectory(home);
  }

  /**
   * Brings a new garden up. Throws with what `coppice up` said when it cannot be.
   * @param tools its COPPICE_TOOLS; absent: that of the end-to-end tests
   * @param env variables that it has besides
   */
  static async start(tools: string = inject('tools'), env: NodeJS.ProcessEnv = {}): Promise<OwnGarden> {
    const garden = await OwnGarden.make(tools, env);
    try {
      await garden.up();
    } catch (error) {
      await garden.dispose().catch(() => {});
      throw error;
    }
    return garden;
  }

  /** The same without bringing it up. */
  static async make(tools: string = inject('tools'), env: NodeJS.ProcessEnv = {}): Promise<OwnGarden> {
    return new OwnGarden(await makeHome(), tools, env);
  }

  /** What `coppice` runs, for who wants to start it in a way of its own. */
  command(args: readonly string[]): { file: string; args: string[]; env: NodeJS.ProcessEnv } {
    const { env = {} } = owned({ home: this.home, tools: this.#tools, env: this.#env });
    return { file: COPPICE, args: [...args], env };
  }

  coppice(args: readonly string[], options: RunOptions = {}): Promise<CommandResult> {
    const env = { ...this.#env, ...options.env };
    return runCoppice(args, { home: this.home, tools: this.#tools, timeoutMs: PATIENCE_MS, ...options, env });
  }

  async up(): Promise<void> {
    const { code, stdout, stderr } = await this.coppice([
      ...argsOnPage('docs/tasks/egress.md', 'coppice up'),
      '--detach',
    ]);
    if (code !== 0) throw new Error(`coppice up failed: ${stderr}${stdout}`);
  }

  get client(): KubeClient {
    if (!this.#client) throw new Error('call connect() first');
    return this.#client;
  }

  /** Opens the connection to the garden; informers live through every death of its API server. */
  async connect(): Promise<void> {
    const text = await readFile(this.directory.kubeconfigFile('admin'), 'utf8');
    this.#client = KubeClient.fromKubeconfig(text, undefined, { userAgent: 'coppice-e2e' });
    for (const resource of [WORKERCLUSTERS, SHOOTS, PODS, NAMESPACES]) {
      const informer = new Informer(this.#client, resource, { maxDelayMs: 1000 });
      this.#informers.set(resource, informer);
      informer.start();
    }
    await Promise.all([...this.#informers.values()].map((one) => one.whenSynced(AbortSignal.timeout(PATIENCE_MS))));
  }

  async disconnect(): Promise<void> {
    await Promise.all([...this.#informers.values()].map((informer) => informer.stop()));
    this.#informers.clear();
    await this.#client?.close();
    this.#client = undefined;
  }

  all<T extends KubeObject>(resource: Resource): Informer<T> {
    const found = this.#informers.get(resource);
    if (!found) throw new Error(`${resource.plural} are not followed`);
    return found as Informer<T>;
  }

  /** Waits, on events, for something that can be seen in the caches. */
  when<R>(what: string, predicate: () => R | undefined | false, timeoutMs = PATIENCE_MS): Promise<R> {
    return waitFor([...this.#informers.values()], predicate, {
      timeoutMs,
      what: () => {
        const statuses = [...this.all<WorkerCluster>(WORKERCLUSTERS).list(), ...this.all<Shoot>(SHOOTS).list()].map(
          ({ kind, metadata, status }) => ({ kind, name: metadata.name, status }),
        );
        const pods = this.all<Pod>(PODS)
          .list()
          .map(({ metadata, status }) => `${metadata.namespace}/${metadata.name} ${status?.phase}`);
        return `${what}; there are ${JSON.stringify({ statuses, pods }, undefined, 1)}`;
      },
    });
  }

  /** What the daemon says of itself and of the processes that it keeps up. */
  async status(): Promise<DaemonStatus & { isAlive: boolean }> {
    const status = await readStatus(this.directory.statusFile);
    if (!status) throw new Error('the garden has no status');
    return status;
  }

  /** kill -9 of one process of the garden. Returns its number. */
  async kill(part: Part): Promise<number> {
    const pid = (await this.status()).processes.find(({ name }) => name === part)?.pid;
    if (pid === undefined) throw new Error(`${part} does not run`);
    process.kill(pid, 'SIGKILL');
    return pid;
  }

  /** kill -9 of all that runs in the cluster's pod whose name begins like that. Kubernetes starts it anew. */
  async killPod(name: string, prefix: string): Promise<void> {
    const pod = this.pods(name).find(({ metadata }) => metadata.name.startsWith(prefix));
    const layout = await readLayout();
    if (!pod || !layout) throw new Error(`there is no pod ${prefix} of ${name}`);
    let killed = 0;
    for (const pid of await new Cgroups(layout, cgroupName(this.directory.id)).processes()) {
      const groups = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '');
      if (!groups.includes(`pod${pod.metadata.uid}`)) continue;
      try {
        process.kill(pid, 'SIGKILL');
      } catch (error) {
        // The first process of a container takes the others with it.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
      killed++;
    }
    if (killed === 0) throw new Error(`nothing runs in pod ${pod.metadata.name} of ${name}`);
  }

  /** kill -9 of the daemon, which leaves its processes behind. */
  async killDaemon(): Promise<void> {
    const { daemon, isAlive } = await this.status();
    if (isAlive) process.kill(daemon.pid, 'SIGKILL');
  }

  /** kill -9 of the daemon and of every process of the garden, those of pods included: what a power cut leaves. */
  async killEverything(): Promise<void> {
    await this.killDaemon();
    const layout = await readLayout();
    if (layout) await new Cgroups(layout, cgroupName(this.directory.id)).killAll();
    // Those that are not in the garden's cgroup.
    for (const { pid } of (await this.status()).processes) {
      if (pid === undefined) continue;
      const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      if (commandLine.includes(this.directory.root)) process.kill(pid, 'SIGKILL');
    }
  }

  /**
   * What a reboot of the machine leaves: the state directory, and nothing that ran, was mounted, or was in the network. Numbers that
   * are recorded there are those of another boot.
   * @param stranger has the number of the garden's etcd, and of its daemon, afterwards
   */
  async reboot(stranger: ProcessIdentity): Promise<void> {
    await this.killEverything();
    await takeDownSeed(this.directory);
    const before = { pid: stranger.pid, started: stranger.started.replace(/^[^/]+/, 'another-boot') };
    const folder = dirname(this.directory.pidFile('any'));
    const records = (await readdir(folder)).map((name) => join(folder, name));
    for (const file of [...records, this.directory.daemonLock]) {
      const record = await readJson<object>(file);
      if (record) await writeFile(file, JSON.stringify({ ...record, ...before }));
    }
    await writeFile(this.directory.statusFile, JSON.stringify({ ...(await this.status()), daemon: before }));
  }

  apply(name: string, spec: Partial<WorkerCluster['spec']>): Promise<KubeObject> {
    return this.client.apply(
      {
        apiVersion: API_VERSION,
        kind: 'WorkerCluster',
        metadata: { name, namespace: 'default' },
        spec: { cloudProvider: 'local', ...spec },
      },
      { fieldManager: 'coppice-e2e' },
    );
  }

  /** Waits until the cluster is Ready for the spec of that generation, or a later one. */
  ready(name: string, generation = 0): Promise<WorkerCluster> {
    return this.when(`WorkerCluster ${name} to be Ready`, () => {
      const found = this.all<WorkerCluster>(WORKERCLUSTERS).get(`default/${name}`);
      const observed = found?.status?.observedGeneration ?? 0;
      const current = observed === found?.metadata.generation && observed >= generation;
      return current && isTrue(found.status?.conditions, 'Ready') && found;
    });
  }

  /** Tries until it does not throw, for what an API server tells that may be down. */
  async eventually(attempt: () => Promise<void>): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        if (Date.now() > deadline) throw error;
        await sleep(RETRY_MS);
      }
    }
  }

  /** Waits until neither the cluster nor anything of it in the seed is there. */
  gone(name: string): Promise<true> {
    const seedNamespace = technicalID('default', name);
    return this.when(`WorkerCluster ${name} to be gone`, () => {
      const left = [
        this.all(WORKERCLUSTERS).get(`default/${name}`),
        this.all(SHOOTS).get(`default/${name}`),
        this.all(NAMESPACES).get(seedNamespace),
      ];
      return left.every((one) => one === undefined) && true;
    });
  }

  shoot(name: string): Shoot | undefined {
    return this.all<Shoot>(SHOOTS).get(`default/${name}`);
  }

  /** Pods of the cluster in the seed that are not on their way out. */
  pods(name: string): Pod[] {
    const seedNamespace = technicalID('default', name);
    return this.all<Pod>(PODS)
      .list()
      .filter((pod) => pod.metadata.namespace === seedNamespace && !pod.metadata.deletionTimestamp);
  }

  async clusterClient(name: string): Promise<KubeClient> {
    const secret = await this.client.get<Secret>(SECRETS, kubeconfigSecretName(name), 'default');
    return KubeClient.fromKubeconfig(Buffer.from(secret.data?.[KUBECONFIG_KEY] ?? '', 'base64').toString());
  }

  /** What the volumes that there are were made for, sorted: `<namespace in the seed>/<claim>`. */
  async volumes(): Promise<string[]> {
    const { items } = await this.client.list<PersistentVolume>(PVS);
    return items.map(({ spec }) => `${spec.claimRef?.namespace}/${spec.claimRef?.name}`).sort();
  }

  async inventory(name: string): Promise<Inventory> {
    const namespace = technicalID('default', name);
    const labelSelector = `${LABELS.shoot}=${name}`;
    const [namespaces, pods, volumes] = await Promise.all([
      this.client.list(NAMESPACES, { labelSelector }),
      this.client.list<Pod>(PODS, { namespace }),
      this.client.list(PVCS, { namespace }),
    ]);
    const names = (objects: KubeObject[], prefix: string) =>
      objects
        .filter(({ metadata }) => metadata.name.startsWith(prefix) && !metadata.deletionTimestamp)
        .map(({ metadata }) => metadata.name)
        .sort();
    const inside = await this.clusterClient(name);
    try {
      return {
        namespaces: names(namespaces.items, ''),
        machines: names(pods.items, 'machines-'),
        etcdPods: names(pods.items, COMPONENTS.etcd),
        etcdVolumes: names(volumes.items, 'data-'),
        etcdMembers: await this.#etcdMembers(namespace),
        nodes: names((await inside.list(NODES)).items, ''),
      };
    } finally {
      await inside.close();
    }
  }

  async #etcdMembers(namespace: string): Promise<string[]> {
    const [service, secret] = await Promise.all([
      this.client.get<Service>(SERVICES, `${COMPONENTS.etcd}-0`, namespace),
      this.client.get<Secret>(SECRETS, COMPONENTS.etcd, namespace),
    ]);
    const file = (name: string) => Buffer.from(secret.data?.[name] ?? '', 'base64').toString();
    const etcd = new EtcdClient(
      [`https://${service.spec.clusterIP}:2379`],
      {
        ca: file('ca.crt'),
        cert: file('tls.crt'),
        key: file('tls.key'),
      },
      { gatewayPort: ETCD_GATEWAY_PORT },
    );
    try {
      const members = await etcd.memberList();
      return members.map((member) => `${member.name}${member.isLearner ? ' (learner)' : ''}`).sort();
    } finally {
      await etcd.close();
    }
  }

  /** `coppice down`. Returns what is left on the machine afterwards. */
  async down(): Promise<string[]> {
    await this.disconnect();
    const { code, stdout, stderr } = await this.coppice(['down']);
    if (code !== 0) throw new Error(`coppice down failed: ${stderr}${stdout}`);
    return leftOvers(this.directory);
  }

  /** Takes everything away, whatever state it is in. */
  async dispose(): Promise<void> {
    await this.down();
    await rm(this.home, { recursive: true, force: true });
  }
}
