import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LABELS } from '../../operator/api/group.ts';
import type { Seed } from '../../operator/api/seed.ts';
import type { Shoot } from '../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import { readStatus } from '../../operator/garden/daemon/status.ts';
import { cgroupName, readLayout } from '../../operator/garden/host/cgroups.ts';
import { StateDirectory } from '../../operator/garden/state/state.ts';
import { KubeClient } from '../../operator/kube/client.ts';
import { Informer, waitFor } from '../../operator/kube/informer.ts';
import {
  conditionIsTrue,
  DEPLOYMENTS,
  type KubeObject,
  LEASES,
  NAMESPACES,
  NODES,
  type Node,
  PODS,
  type Pod,
  SECRETS,
  SEEDS,
  type Secret,
  SHOOTS,
  STATEFULSETS,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import { leftOvers } from '../kit/left-overs.ts';
import { runCoppice } from '../kit/run.ts';
import { HubWatch } from './hub-watch.ts';
import { type GardenProcesses, type Process, readProcesses } from './processes.ts';
import { isWrite, sumOf } from './prometheus.ts';

/** For anything that a garden or a cluster is waited for: a limit for a busy machine, not a promise. */
export const PATIENCE_MS = 5 * 60_000;
/** For a thousand clusters at once. */
export const LONG_PATIENCE_MS = 20 * 60_000;
const METRICS_MS = 50;
const OPERATOR_LEASE = 'kube-system/coppice-operator';

/** Seconds from the start of the command. */
export interface UpTimes {
  api: number;
  node: number;
  operator: number;
  up: number;
}

/** Writes since their counters' start. */
export interface Writes {
  /** The operator's, to the garden and its own seed; Lease renewals too. */
  operator: number;
  /** Of `operator`, renewals of its leader Lease. */
  leases: number;
  /** Of `operator`, what was written because clusters join a hub or leave it. */
  hubs: number;
  /** Everybody's. */
  all: number;
}

export const secondsSince = (since: number): number => (performance.now() - since) / 1000;

/** A garden of the bench's own: `coppice up` in a temporary folder, and caches that follow what happens in it. */
export class BenchGarden {
  readonly directory: StateDirectory;
  readonly client: KubeClient;
  readonly clusters: Informer<WorkerCluster>;
  readonly shoots: Informer<Shoot>;
  readonly namespaces: Informer;
  readonly pods: Informer<Pod>;
  readonly deployments: Informer;
  readonly statefulSets: Informer;
  readonly kubeconfigs: Informer<Secret>;
  readonly hubs: HubWatch;
  readonly #leases: Informer;
  readonly #informers: readonly Informer<any>[];
  readonly #tools: string;
  #leaseWrites = 0;
  #metricsUrl = '';
  #processes: (GardenProcesses & { components: Map<number, string> }) | undefined;

  private constructor(directory: StateDirectory, tools: string, client: KubeClient) {
    this.directory = directory;
    this.#tools = tools;
    this.client = client;
    const ofShoots = { labelSelector: LABELS.shoot };
    this.clusters = new Informer<WorkerCluster>(client, WORKERCLUSTERS);
    this.shoots = new Informer<Shoot>(client, SHOOTS);
    this.namespaces = new Informer(client, NAMESPACES, ofShoots);
    this.pods = new Informer<Pod>(client, PODS, ofShoots);
    this.deployments = new Informer(client, DEPLOYMENTS, ofShoots);
    this.statefulSets = new Informer(client, STATEFULSETS, ofShoots);
    this.kubeconfigs = new Informer<Secret>(client, SECRETS, { labelSelector: LABELS.clusterName });
    this.hubs = new HubWatch(client);
    this.#leases = new Informer(client, LEASES, { namespace: 'kube-system' });
    const { clusters, shoots, namespaces, pods, deployments, statefulSets, kubeconfigs } = this;
    const own = [clusters, shoots, namespaces, pods, deployments, statefulSets, kubeconfigs, this.#leases];
    this.#informers = [...own, ...this.hubs.informers];
  }

  /** Brings a new garden up. Rejects with what `coppice up` says when that fails; what there is of it is taken down then. */
  static async up(tools: string, signal: AbortSignal): Promise<{ garden: BenchGarden; begun: number; times: UpTimes }> {
    const home = await mkdtemp(join(tmpdir(), 'coppice-bench-'));
    const directory = new StateDirectory(home);
    const stop = new AbortController();
    let client: KubeClient | undefined;
    try {
      const start = performance.now();
      const command = runCoppice(['up', '--detach'], { home, tools, timeoutMs: PATIENCE_MS }).then((result) => {
        if (result.code !== 0) throw new Error(`coppice up failed:\n${result.stderr}${result.stdout}`.slice(0, 4000));
        return secondsSince(start);
      });
      const failed = command.then(() => new Promise<never>(() => {}));
      failed.catch(() => stop.abort());
      const either = <T>(work: Promise<T>) => Promise.race([work, failed]);
      const ended = AbortSignal.any([signal, stop.signal]);

      client = await either(connect(directory, ended));
      const api = secondsSince(start);
      const nodes = new Informer<Node>(client, NODES);
      const seeds = new Informer<Seed>(client, SEEDS, { maxDelayMs: 50 });
      for (const informer of [nodes, seeds]) informer.start();
      const ready = (informer: Informer<any>) =>
        waitFor([informer], () => informer.list().some((object) => conditionIsTrue(object, 'Ready')), {
          timeoutMs: PATIENCE_MS,
          signal: ended,
          what: `a ${informer.resource.kind} to be Ready`,
        }).then(() => secondsSince(start));
      const [node, operator, up] = await either(Promise.all([ready(nodes), ready(seeds), command]));
      await Promise.all([nodes, seeds].map((informer) => informer.stop()));
      return { garden: new BenchGarden(directory, tools, client), begun: start, times: { api, node, operator, up } };
    } catch (error) {
      stop.abort();
      await client?.close();
      await takeDown(directory, tools).catch((second: Error) => process.stderr.write(`${second.message}\n`));
      throw error;
    }
  }

  /** Follows everything. Once, before anything is measured in it. */
  async follow(signal: AbortSignal): Promise<void> {
    for (const informer of this.#informers) informer.start();
    await Promise.all(this.#informers.map((informer) => informer.whenSynced(signal)));
    this.#leases.onChange(({ type, object }) => {
      const { namespace, name } = object.metadata;
      if (type === 'updated' && `${namespace}/${name}` === OPERATOR_LEASE) this.#leaseWrites++;
    });
    const { daemon, processes } = (await readStatus(this.directory.statusFile))!;
    const layout = (await readLayout())!;
    this.#processes = {
      cgroup: join(layout.tracker, cgroupName(this.directory.id)),
      components: new Map([[daemon.pid, 'daemon'], ...processes.map(({ pid, name }) => [pid ?? 0, name] as const)]),
    };
    await this.#findMetrics('');
  }

  /** Resolves when the seed has all images: until then they are being imported. */
  async settle(signal: AbortSignal): Promise<void> {
    const status = async () => (await readStatus(this.directory.statusFile))!;
    const deadline = Date.now() + PATIENCE_MS;
    while (!(await status()).progress.events.some(({ stage, fraction }) => stage === 'images' && fraction === 1)) {
      if (Date.now() > deadline) throw new Error('the seed does not get all images');
      await sleep(200, undefined, { signal });
    }
  }

  /**
   * Resolves when the operator has tried, once in the life of a garden, whether its network enforces NetworkPolicies: an idle garden does
   * not.
   */
  async networkTried(signal: AbortSignal): Promise<void> {
    const seeds = new Informer<Seed>(this.client, SEEDS);
    seeds.start();
    const isTried = (seed: Seed) => seed.status?.networkTriedAt !== undefined;
    try {
      const what = 'the network of the seed to be tried';
      await waitFor([seeds], () => seeds.list().every(isTried), { timeoutMs: PATIENCE_MS, signal, what });
    } finally {
      await seeds.stop();
    }
  }

  /** Resolves when an operator has said in its log, after `before`, where its metrics are. */
  async #findMetrics(before: string): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      const log = (await readFile(this.directory.logFile('operator'), 'utf8')).slice(before.length);
      const url = [...log.matchAll(/"health":"([^"]+)"/g)].at(-1)?.[1];
      this.#metricsUrl = `${url}/metrics`;
      if (url) return;
      if (Date.now() > deadline) throw new Error("the operator's log does not say where its metrics are");
      await sleep(METRICS_MS);
    }
  }

  /**
   * kill -9 of the operator. Resolves when the one after it has looked at `count` shoots at least and nothing waits or is worked on.
   * @returns seconds from the kill; the operator's counters begin anew.
   * @throws when the signal aborts.
   */
  async killOperator(count: number, signal: AbortSignal): Promise<number> {
    const find = async () =>
      (await readStatus(this.directory.statusFile))?.processes.find(({ name }) => name === 'operator')?.pid;
    const before = await readFile(this.directory.logFile('operator'), 'utf8');
    const old = await find();
    if (old === undefined) throw new Error('the operator does not run');
    const start = performance.now();
    process.kill(old, 'SIGKILL');
    await this.#findMetrics(before);
    const deadline = Date.now() + LONG_PATIENCE_MS;
    for (;;) {
      // Until it serves there is nobody to ask, and one that fell over has a successor at another port.
      const text = await fetch(this.#metricsUrl, { signal }).then(
        (response) => response.text(),
        () => this.#findMetrics(before).then(() => ''),
      );
      signal.throwIfAborted();
      const looks = sumOf(text, 'coppice_reconcile_total', ({ controller }) => controller === 'shoot');
      const left = sumOf(text, 'coppice_queue_depth') + sumOf(text, 'coppice_queue_processing');
      if (looks >= count && left === 0) break;
      if (Date.now() > deadline) throw new Error('the operator does not settle after kill -9');
      await sleep(METRICS_MS, undefined, { signal });
    }
    const seconds = secondsSince(start);
    const pid = await find();
    if (pid !== undefined) this.#processes!.components.set(pid, 'operator');
    return seconds;
  }

  /** All processes of the garden, now. */
  processes(): Process[] {
    return readProcesses(this.#processes!);
  }

  async writes(): Promise<Writes> {
    const [own, server] = await Promise.all([
      fetch(this.#metricsUrl).then((response) => response.text()),
      this.client.request<string>('GET', '/metrics'),
    ]);
    return {
      operator: sumOf(own, 'coppice_api_requests_total', isWrite),
      leases: this.#leaseWrites,
      hubs: this.hubs.writes,
      all: sumOf(server, 'apiserver_request_total', isWrite),
    };
  }

  /** `coppice down`. Resolves to its seconds. Rejects when it fails or leaves something behind. */
  async down(): Promise<number> {
    await Promise.all(this.#informers.map((informer) => informer.stop()));
    await this.client.close();
    return takeDown(this.directory, this.#tools);
  }

  /** Deletes clusters that a failed run has left. */
  async sweep(): Promise<void> {
    for (const { metadata } of this.clusters.list()) {
      await this.client.delete(WORKERCLUSTERS, metadata.name, metadata.namespace);
    }
    await waitFor([this.clusters, this.namespaces], () => this.clusters.size + this.namespaces.size === 0, {
      timeoutMs: PATIENCE_MS,
      what: 'the clusters of a failed run to be gone',
    });
  }
}

/** Resolves when the API server of a garden that is coming up serves. */
async function connect(directory: StateDirectory, signal: AbortSignal): Promise<KubeClient> {
  for (; ; await sleep(20, undefined, { signal })) {
    const yaml = await readFile(directory.kubeconfigFile('admin'), 'utf8').catch(() => '');
    if (!yaml) continue;
    const client = KubeClient.fromKubeconfig(yaml, undefined, { userAgent: 'coppice-bench' });
    for (; !signal.aborted; await sleep(20)) if (await client.ready({ signal })) return client;
    await client.close();
    signal.throwIfAborted();
  }
}

async function takeDown(directory: StateDirectory, tools: string): Promise<number> {
  const start = performance.now();
  const { home } = directory;
  const { code, stderr } = await runCoppice(['down'], { home, tools, timeoutMs: PATIENCE_MS });
  const seconds = secondsSince(start);
  if (code !== 0) throw new Error(`coppice down failed (state in ${home}):\n${stderr}`);
  const left = await leftOvers(directory);
  await rm(home, { recursive: true, force: true });
  if (left.length > 0) throw new Error(`coppice down has left behind:\n${left.join('\n')}`);
  return seconds;
}

/** Objects whose labels say that they belong to a shoot. */
export const componentOf = (object: KubeObject): string | undefined =>
  object.metadata.labels?.app ?? object.metadata.labels?.[LABELS.role];
