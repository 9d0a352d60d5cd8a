import { get } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { findCondition } from '../../operator/api/conditions.ts';
import { API_VERSION, LABELS } from '../../operator/api/group.ts';
import { COMPONENTS, KUBECONFIG_KEY, kubeconfigSecretName, technicalID } from '../../operator/api/names.ts';
import { KubeClient } from '../../operator/kube/client.ts';
import { Informer, waitFor } from '../../operator/kube/informer.ts';
import {
  type CertificateSigningRequest,
  CLUSTERROLEBINDINGS,
  CLUSTERROLES,
  CSRS,
  conditionIsTrue,
  type KubeObject,
  keyOf,
  NODES,
  type Node,
  PODS,
  type Pod,
  SERVICEACCOUNTS,
  SERVICES,
  type Service,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import { API_SERVER_PORT } from '../../operator/shoot/values.ts';
import { type BenchGarden, componentOf, PATIENCE_MS, secondsSince } from './garden.ts';
import { bootOffsetMs, isRunning, type Process } from './processes.ts';
import { isWrite, sumOf } from './prometheus.ts';
import type { Marks, Milestone } from './timeline.ts';

const NAMESPACE = 'default';
const RETRY_MS = 20;
const READYZ_MS = 50;
const POD_IMAGE = 'coppice.test/echo:1';

/** Names of control plane components in milestones. */
const SHORT: Readonly<Record<string, 'etcd' | 'apiserver' | 'kcm' | 'scheduler'>> = {
  [COMPONENTS.etcd]: 'etcd',
  [COMPONENTS.apiServer]: 'apiserver',
  [COMPONENTS.controllerManager]: 'kcm',
  [COMPONENTS.scheduler]: 'scheduler',
};
/** The kernel keeps 15 characters of a process's name. */
const PROCESS_MILESTONES: Readonly<Record<string, Milestone>> = {
  etcd: 'etcd.process',
  'kube-apiserver': 'apiserver.process',
  'kube-controller': 'kcm.process',
  'kube-scheduler': 'scheduler.process',
};

/** Seconds from the delete. */
export interface Gone {
  object: number;
  namespace: number;
  processes: number;
  /** Of `processes`, the last of each component. */
  parts: ReadonlyMap<string, number>;
}

let counter = 0;

/** One WorkerCluster that is made, watched and deleted; times are of performance.now(). */
export class BenchCluster {
  readonly name = `bench-${(counter++).toString(36)}`;
  readonly #key = `${NAMESPACE}/${this.name}`;
  readonly #seedNamespace = technicalID(NAMESPACE, this.name);
  readonly #garden: BenchGarden;
  readonly #signal: AbortSignal;
  readonly #times = new Map<Milestone, number>();
  readonly #cleanup: (() => unknown)[] = [];
  #client: KubeClient | undefined;
  #nodes: Informer<Node> | undefined;

  constructor(garden: BenchGarden, signal: AbortSignal) {
    this.#garden = garden;
    this.#signal = signal;
    this.#watch();
  }

  /** Sends the POST of the WorkerCluster. */
  async create(dataPlaneNodes: number | undefined, more: object = {}): Promise<void> {
    this.#mark('posted');
    await this.#garden.client.create({
      apiVersion: API_VERSION,
      kind: 'WorkerCluster',
      metadata: { name: this.name, namespace: NAMESPACE },
      spec: {
        cloudProvider: 'local',
        controlPlaneNodes: 1,
        ...(dataPlaneNodes !== undefined && { dataPlaneNodes }),
        ...more,
      },
    });
  }

  /** Resolves when the kubeconfig of the Secret has really made a namespace. */
  async usable(): Promise<void> {
    const { kubeconfigs } = this.#garden;
    const secret = await waitFor(
      [kubeconfigs],
      () => kubeconfigs.get(`${NAMESPACE}/${kubeconfigSecretName(this.name)}`),
      {
        ...this.#patience,
        what: `the kubeconfig of ${this.name}`,
      },
    );
    const yaml = Buffer.from(secret.data?.[KUBECONFIG_KEY] ?? '', 'base64').toString();
    const client = KubeClient.fromKubeconfig(yaml, undefined, { userAgent: 'coppice-bench' });
    this.#client = client;
    this.#cleanup.push(() => client.close());
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'bench' } };
    await this.#until('to be usable', () =>
      client.request('POST', '/api/v1/namespaces', { body, timeoutMs: 2000, retries: 0, signal: this.#signal }),
    );
    this.#mark('usable');
  }

  /** Resolves when the WorkerCluster says Ready. Rejects when it says that it has failed for good. */
  async ready(): Promise<void> {
    const { clusters } = this.#garden;
    await waitFor(
      [clusters],
      () => {
        const status = clusters.get(this.#key)?.status;
        if (status?.lastOperation?.state === 'Failed')
          throw new Error(`${this.name}: ${status.lastOperation.description}`);
        return this.#times.has('ready');
      },
      { ...this.#patience, what: () => `${this.name} to be Ready: ${JSON.stringify(clusters.get(this.#key)?.status)}` },
    );
  }

  /** Resolves when it is in the inventory of the garden. */
  async joined(): Promise<void> {
    const { memberships } = this.#garden.hubs;
    await waitFor([memberships], () => this.#times.has('joined'), {
      ...this.#patience,
      what: () => `${this.name} to have joined: ${JSON.stringify(memberships.list().map(({ status }) => status))}`,
    });
  }

  /** The administrator of the usable cluster. */
  get client(): KubeClient {
    return this.#client!;
  }

  /** Makes a pod in the usable cluster and resolves to its name when it runs on a node that is Ready. */
  async firstPod(): Promise<string> {
    const client = this.#client!;
    const nodes = new Informer<Node>(client, NODES);
    const pods = new Informer<Pod>(client, PODS);
    nodes.onChange(({ object }) => {
      this.#mark('node.registered');
      if (conditionIsTrue(object, 'Ready')) this.#mark('node.ready');
    });
    pods.onChange(({ object }) => {
      const prefix =
        object.metadata.labels?.['k8s-app'] === 'kube-dns'
          ? 'dns'
          : object.metadata.name === 'bench'
            ? 'pod'
            : undefined;
      if (!prefix) return;
      if (object.spec.nodeName) this.#mark(`${prefix}.scheduled`);
      if (prefix === 'dns' && conditionIsTrue(object, 'Ready')) this.#mark('dns.ready');
      if (prefix === 'pod' && object.status?.phase === 'Running') this.#mark('pod.running');
    });
    for (const informer of [nodes, pods]) {
      informer.start();
      this.#cleanup.push(() => informer.stop());
    }
    this.#nodes = nodes;
    const body = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'bench', namespace: 'default' },
      spec: { containers: [{ name: 'echo', image: POD_IMAGE }], terminationGracePeriodSeconds: 1 },
    };
    // Refused until the controller manager has made the namespace's service account.
    await this.#until('to accept a pod', () =>
      client.request('POST', '/api/v1/namespaces/default/pods', {
        body,
        timeoutMs: 2000,
        retries: 0,
        signal: this.#signal,
      }),
    );
    await waitFor([pods, nodes], () => this.#times.has('pod.running') && this.#times.has('node.ready'), {
      ...this.#patience,
      what: `a pod of ${this.name} to run`,
    });
    return body.metadata.name;
  }

  /**
   * Fills the one node there is, and makes a pod that does not fit. After firstPod.
   * @returns seconds from the POST of that pod until its node is Ready, and until it runs
   */
  async podOnNewNode(): Promise<{ node: number; running: number }> {
    const pods = new Informer<Pod>(this.#client!, PODS);
    pods.start();
    this.#cleanup.push(() => pods.stop());
    const runs = async (name: string) => {
      const resources = { requests: { cpu: '1500m' } };
      const containers = [{ name: 'echo', image: POD_IMAGE, resources }];
      const metadata = { name, namespace: 'default' };
      await this.#client!.create({ apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers } } as KubeObject);
      await waitFor([pods], () => pods.get(`default/${name}`)?.status?.phase === 'Running', {
        ...this.#patience,
        what: `pod ${name} of ${this.name} to run`,
      });
    };
    await runs('filler');
    const start = performance.now();
    const isNew = () => this.#nodes!.list().filter((node) => conditionIsTrue(node, 'Ready')).length > 1;
    const node = waitFor([this.#nodes!], isNew, { ...this.#patience, what: 'a node to be added' }).then(() =>
      secondsSince(start),
    );
    await runs('waits');
    return { running: secondsSince(start), node: await node };
  }

  /** Changes dataPlaneNodes; resolves to the seconds until so many nodes are Ready. */
  async scale(dataPlaneNodes: number): Promise<number> {
    const start = performance.now();
    const nodes = this.#nodes!;
    await this.#garden.client.mergePatch(WORKERCLUSTERS, this.name, NAMESPACE, { spec: { dataPlaneNodes } });
    const ready = () => nodes.list().filter((node) => conditionIsTrue(node, 'Ready')).length;
    await waitFor([nodes], () => ready() >= dataPlaneNodes, {
      ...this.#patience,
      what: () => `${dataPlaneNodes} nodes of ${this.name} to be Ready (${ready()} are)`,
    });
    return secondsSince(start);
  }

  /** Deletes it; resolves when the object, its namespace in the seed and all its processes have gone. */
  async delete(): Promise<Gone> {
    const { client, clusters, namespaces } = this.#garden;
    const pods = this.#pods();
    const parts = new Map(
      this.processes().map(({ pid, pod, isSandbox }) => {
        const component = componentOf(pods.get(pod ?? '')!) ?? 'other';
        return [pid, isSandbox ? `${component}: shim and pause` : component];
      }),
    );
    await this.close();
    const start = performance.now();
    const gone = (informer: Informer<any>, key: string) =>
      waitFor([informer], () => !informer.get(key), {
        ...this.#patience,
        what: `${informer.resource.kind} ${key} to be gone`,
      });
    await client.delete(WORKERCLUSTERS, this.name, NAMESPACE);
    const [object, namespace, ended] = await Promise.all([
      gone(clusters, this.#key).then(() => secondsSince(start)),
      gone(namespaces, this.#seedNamespace).then(() => secondsSince(start)),
      this.#ended(parts, start),
    ]);
    return { object, namespace, processes: Math.max(0, ...ended.values()), parts: ended };
  }

  /** Stops watching; the cluster stays. */
  async close(): Promise<void> {
    for (const end of this.#cleanup.splice(0).reverse()) await end();
  }

  /** By performance.now(); undefined when it was not seen. */
  time(milestone: Milestone): number | undefined {
    return this.#times.get(milestone);
  }

  /** Seconds from the POST; undefined when it was not seen. */
  at(milestone: Milestone): number | undefined {
    const [time, posted] = [this.#times.get(milestone), this.#times.get('posted')];
    return time === undefined || posted === undefined ? undefined : (time - posted) / 1000;
  }

  /** All milestones, those of processes included (they must run still). */
  marks(): Marks {
    const offset = bootOffsetMs();
    const pods = this.#pods();
    // The first of each name: a machine's own pods may well run a second one.
    for (const process of this.processes().sort((a, b) => a.startedAt - b.startedAt)) {
      const isMachine = pods.get(process.pod ?? '')?.metadata.labels?.[LABELS.role] === 'machine';
      const time = process.startedAt * 1000 + offset;
      if (process.isSandbox || process.name === 'pause') continue;
      if (!isMachine) {
        const milestone = PROCESS_MILESTONES[process.name];
        if (milestone) this.#mark(milestone, time);
        continue;
      }
      this.#mark('machine.process', time);
      if (process.name === 'containerd') this.#mark('machine.containerd', time);
      if (process.name === 'kubelet') this.#mark('machine.kubelet', time);
    }
    return Object.fromEntries([...this.#times.keys()].map((milestone) => [milestone, this.at(milestone)]));
  }

  /** Asks /readyz of the API server through its Service, from now until it says ok: a light load of its own. */
  async watchReadyz(): Promise<void> {
    let address = '';
    await this.#until('to have an address', async () => {
      const service = await this.#garden.client.get<Service>(SERVICES, COMPONENTS.apiServer, this.#seedNamespace);
      address = service.spec.clusterIP ?? '';
    });
    while (!this.#times.has('usable') && !this.#signal.aborted) {
      if (await saysReady(address)) return this.#mark('apiserver.readyz');
      await sleep(READYZ_MS);
    }
  }

  /** Those of its pods in the seed, machines and what runs in them included. @param component of the pods of this one alone */
  processes(component?: string): Process[] {
    const pods = this.#pods();
    const isOf = (pod: Pod | undefined) => pod && (component === undefined || componentOf(pod) === component);
    return this.#garden.processes().filter((process) => process.pod && isOf(pods.get(process.pod)));
  }

  /**
   * The operator's writes inside of the cluster, from what they left: the API server counts applies of all its clients,
   * which but for two of Kubernetes' own controllers are the operator's, and approvals show in the requests. `join`: of hubs' accounts, what
   * each takes to be made, with its token.
   */
  async writesInside(): Promise<{ own: number; join: number }> {
    const client = this.#client!;
    const labelSelector = LABELS.membership;
    const [metrics, roles, requests, tokens, ...ofHubs] = await Promise.all([
      client.request<string>('GET', '/metrics'),
      client.request<{ items: KubeObject[] }>('GET', '/apis/rbac.authorization.k8s.io/v1/clusterroles'),
      client.list<CertificateSigningRequest>(CSRS),
      client.request<{ items: KubeObject[] }>('GET', '/api/v1/namespaces/kube-system/secrets'),
      ...[SERVICEACCOUNTS, CLUSTERROLES, CLUSTERROLEBINDINGS].map((kind) => client.list(kind, { labelSelector })),
    ]);
    const [accounts = 0, ...rights] = ofHubs.map(({ items }) => items.length);
    const joining = accounts + rights.reduce((sum, count) => sum + count, 0);
    const ours = (object: KubeObject) =>
      (object.metadata.managedFields as { manager?: string }[] | undefined)?.some(
        ({ manager }) => manager === 'coppice',
      ) ?? false;
    const applies = sumOf(
      metrics,
      'apiserver_request_total',
      (labels) =>
        labels.verb === 'APPLY' && isWrite(labels) && labels.resource !== 'clusterroles' && !labels.subresource,
    );
    const approvals = requests.items.filter(
      ({ spec, status }) => spec.signerName === 'kubernetes.io/kubelet-serving' && status?.conditions?.length,
    );
    const created = tokens.items.filter((secret) => secret.type === 'bootstrap.kubernetes.io/token');
    const own = applies + roles.items.filter(ours).length + approvals.length + created.length - joining;
    return { own, join: joining + accounts };
  }

  get #patience() {
    return { timeoutMs: PATIENCE_MS, signal: this.#signal };
  }

  #mark(milestone: Milestone, time = performance.now()): void {
    if (!this.#times.has(milestone)) this.#times.set(milestone, time);
  }

  #pods(): Map<string, Pod> {
    const own = this.#garden.pods.list().filter((pod) => pod.metadata.namespace === this.#seedNamespace);
    return new Map(own.map((pod) => [pod.metadata.uid ?? '', pod]));
  }

  /** Takes the time of what the caches tell of this cluster. */
  #watch(): void {
    const { clusters, shoots, namespaces, pods, deployments, statefulSets, kubeconfigs, hubs } = this.#garden;
    const on = <T extends KubeObject>(
      informer: Informer<T>,
      isOurs: (object: T) => boolean,
      look: (object: T) => void,
    ) =>
      this.#cleanup.push(
        informer.onChange(({ type, object }) => {
          if (type !== 'deleted' && isOurs(object)) look(object);
        }),
      );
    const inSeed = (object: KubeObject) => object.metadata.namespace === this.#seedNamespace;
    on(
      shoots,
      (shoot) => keyOf(shoot) === this.#key,
      () => this.#mark('shoot'),
    );
    on(
      namespaces,
      (namespace) => namespace.metadata.name === this.#seedNamespace,
      () => this.#mark('namespace'),
    );
    on(statefulSets, inSeed, () => this.#mark('etcd.object'));
    on(deployments, inSeed, ({ metadata }) => {
      if (metadata.name === COMPONENTS.apiServer) this.#mark('apiserver.object');
    });
    on(
      kubeconfigs,
      ({ metadata }) => metadata.name === kubeconfigSecretName(this.name),
      () => this.#mark('kubeconfig'),
    );
    on(
      clusters,
      (cluster) => keyOf(cluster) === this.#key,
      ({ status }) => {
        if (findCondition(status?.conditions, 'Ready')?.status === 'True') this.#mark('ready');
      },
    );
    on(
      hubs.memberships,
      ({ metadata, spec }) => metadata.namespace === NAMESPACE && spec.cluster === this.name,
      () => {
        if (hubs.hasJoined(NAMESPACE, this.name)) this.#mark('joined');
      },
    );
    on(pods, inSeed, (pod) => {
      const component = componentOf(pod) ?? '';
      if (component === 'machine') return this.#mark('machine.pod');
      const short = SHORT[component];
      if (!short) return;
      this.#mark(`${short}.pod`);
      if (pod.spec.nodeName && (short === 'etcd' || short === 'apiserver')) this.#mark(`${short}.scheduled`);
      if (conditionIsTrue(pod, 'Ready')) this.#mark(`${short}.ready`);
    });
  }

  /** Tries each 20 ms until it goes well. */
  async #until(what: string, attempt: () => Promise<unknown>): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      try {
        await attempt();
        return;
      } catch (error) {
        this.#signal.throwIfAborted();
        if (Date.now() > deadline) throw new Error(`waited for ${this.name} ${what}`, { cause: error });
        await sleep(RETRY_MS);
      }
    }
  }

  /** Seconds after `start` when the last process of each part (by pid) has ended. */
  async #ended(parts: ReadonlyMap<number, string>, start: number): Promise<Map<string, number>> {
    const deadline = Date.now() + PATIENCE_MS;
    const ended = new Map<string, number>();
    let left = [...parts.keys()];
    for (; left.length > 0; await sleep(RETRY_MS, undefined, { signal: this.#signal })) {
      if (Date.now() > deadline) throw new Error(`processes ${left.join(', ')} of ${this.name} do not end`);
      left = left.filter((pid) => {
        if (isRunning(pid)) return true;
        ended.set(parts.get(pid)!, secondsSince(start));
        return false;
      });
    }
    return ended;
  }
}

/** Each time over a connection of its own: one that was tried before the address led anywhere may hang for long. */
const saysReady = (host: string): Promise<boolean> =>
  new Promise((resolve) => {
    const options = { host, port: API_SERVER_PORT, path: '/readyz', agent: false, rejectUnauthorized: false };
    const request = get({ ...options, signal: AbortSignal.timeout(500) }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on('error', () => resolve(false));
  });
