import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { loadAll } from 'js-yaml';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { rfc3339 } from '../../../operator/api/conditions.ts';
import { ALPHA_API_VERSION, API_VERSION, LABELS } from '../../../operator/api/group.ts';
import type { Hub, HubSpec } from '../../../operator/api/hub.ts';
import { installManifests } from '../../../operator/api/install.ts';
import type { Membership } from '../../../operator/api/membership.ts';
import { membershipName } from '../../../operator/api/names.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { judgeHolds } from '../../../operator/clusters/deletion-gate.ts';
import { type OpenCluster, OpenClusters } from '../../../operator/clusters/open-clusters.ts';
import { requestToken } from '../../../operator/clusters/service-account-token.ts';
import { byNamespace } from '../../../operator/controllers/by-namespace.ts';
import type { Part } from '../../../operator/controllers/core.ts';
import { gardenIdentity } from '../../../operator/controllers/garden-identity.ts';
import { type Hubs, wireHubs } from '../../../operator/controllers/membership/wiring.ts';
import { KubeClient } from '../../../operator/kube/client.ts';
import { type Controller, runController } from '../../../operator/kube/controller.ts';
import { Informer, waitFor } from '../../../operator/kube/informer.ts';
import { parseUntrustedKubeconfig } from '../../../operator/kube/kubeconfig.ts';
import { silent } from '../../../operator/kube/log.ts';
import type { KubeClientOptions, RequestOptions } from '../../../operator/kube/requests/api-requests.ts';
import {
  CLOUDPROFILES,
  HUBS,
  type KubeObject,
  MEMBERSHIPS,
  NODES,
  type Node,
  type Pod,
  type Resource,
  WORKERCLUSTERS,
} from '../../../operator/kube/resources.ts';
import { WorkQueue } from '../../../operator/kube/workqueue.ts';
import { writeKubeconfigText } from '../../../operator/pki/kubeconfig.ts';
import { startApiserver, type TestApiserver } from '../apiserver.ts';
import { serveKinds } from './serve-kinds.ts';

type HubsCore = Parameters<typeof wireHubs>[0];

const CHART = fileURLToPath(new URL('../../../charts/coppice/templates', import.meta.url));
const PATIENCE_MS = 120_000;
/** Longer than one request takes on a busy machine, and than any delay of the controllers but their slow ones. */
const QUIET_MS = 1_500;

/** Ends, as far as its operator can tell, with one of its writes: that one is carried out, and nothing is after it. */
class Breakable {
  /** What was written, for example `PATCH /api/v1/namespaces/shop/secrets/x`. */
  readonly writes: string[] = [];
  /** How many requests were begun, reading ones too. */
  requests = 0;
  breaksAfter = Number.POSITIVE_INFINITY;
  broken = false;

  /** To be called when a write was carried out. */
  wrote(what: string): void {
    this.writes.push(what);
    if (this.writes.length < this.breaksAfter) return;
    this.broken = true;
    throw new Error(DEAD);
  }
}

const DEAD = 'the operator is dead';

class BreakableClient extends KubeClient {
  readonly #line: Breakable;

  constructor(options: KubeClientOptions, line: Breakable) {
    super(options);
    this.#line = line;
  }

  override async request<T = any>(method: string, path: string, more?: RequestOptions): Promise<T> {
    if (this.#line.broken) throw new Error(DEAD);
    this.#line.requests++;
    const answer = await super.request<T>(method, path, more);
    // Events are told beside what is done, and a token that was asked for leaves nothing behind.
    if (method !== 'GET' && !path.includes('/events') && !path.endsWith('/token'))
      this.#line.wrote(`${method} ${path}`);
    return answer;
  }
}

interface RunningOperator {
  readonly hubs: Hubs;
  readonly controllers: Controller[];
  readonly caches: Informer<any>[];
  readonly clients: KubeClient[];
  /** Of the members, by name. */
  readonly inside: ReadonlyMap<string, { readonly client: KubeClient; readonly nodes: Informer<Node> }>;
  readonly line: Breakable;
  readonly held: () => boolean;
}

/** A garden that is a hub too, and a cluster with a node: real API servers, and nothing of the operator but its membership controllers. */
export class HubTestbed {
  readonly garden: TestApiserver;
  readonly member: TestApiserver;
  /** API servers of the clusters, by name in namespace shop; `demo` is `member`. */
  readonly #members = new Map<string, TestApiserver>();
  readonly memberships: Informer<Membership>;
  readonly hubs: Informer<Hub>;
  /** Reason and message of each Event, with the kind. */
  readonly events: string[] = [];
  now = (): Date => new Date();
  readonly #ends: (() => Promise<void>)[] = [];
  readonly #spec: HubSpec;
  /** Kubeconfig of the operator in the garden. */
  #gardenAccess: string;
  #operator: RunningOperator | undefined;
  #openClusters = new OpenClusters();
  /** Controllers that run beside those of hubs, in operators that start after this was set. */
  beside: (core: HubsCore, hubs: Hubs) => Part = () => ({ controllers: [] });

  private constructor(garden: TestApiserver, member: TestApiserver, spec: HubSpec) {
    this.garden = garden;
    this.member = member;
    this.#members.set('demo', member);
    this.#spec = spec;
    this.#gardenAccess = garden.kubeconfig;
    this.memberships = new Informer<Membership>(garden.client, MEMBERSHIPS);
    this.hubs = new Informer<Hub>(garden.client, HUBS);
  }

  /**
   * @param crds folders whose kinds the hub serves: in test/fixtures/hubs, or absolute paths
   * @param account 'chart': in the garden the operator has the ServiceAccount and the roles of the chart, where it is not a seed
   * @param running an API server that is garden and hub; absent: a new one. Either is stopped with the testbed
   */
  static async start(
    spec: HubSpec,
    crds: readonly string[],
    account: 'admin' | 'chart' = 'admin',
    running?: TestApiserver,
  ): Promise<HubTestbed> {
    const [garden, member] = await Promise.all([running ?? startApiserver(), startApiserver()]);
    const testbed = new HubTestbed(garden, member, spec);
    for (const manifest of installManifests()) await garden.client.apply(manifest);
    await serveKinds(garden.client, crds);
    if (account === 'chart') testbed.#gardenAccess = await accessOfChart(garden);
    await addNode(member, 'one', '4', '8Gi');
    for (const cache of [testbed.memberships, testbed.hubs]) {
      cache.start();
      await cache.whenSynced(AbortSignal.timeout(PATIENCE_MS));
    }
    return testbed;
  }

  /** What else is to end with the testbed, before its API servers do. */
  onStop(end: () => Promise<void>): void {
    this.#ends.push(end);
  }

  async stop(): Promise<void> {
    await this.stopOperator();
    for (const end of this.#ends) await end();
    await Promise.all([this.memberships.stop(), this.hubs.stop()]);
    await Promise.all([this.garden.stop(), ...[...this.#members.values()].map((member) => member.stop())]);
  }

  /** One more cluster, known to operators that start after it. @returns its API server, with a node of this size */
  async addMember(name: string, cpu: string, memory: string): Promise<TestApiserver> {
    const member = await startApiserver();
    this.#members.set(name, member);
    await addNode(member, 'one', cpu, memory);
    return member;
  }

  /** @param breaksAfter so many writes the operator lives */
  async startOperator(breaksAfter = Number.POSITIVE_INFINITY): Promise<void> {
    const line = new Breakable();
    line.breaksAfter = breaksAfter;
    const client = (access: string) => new BreakableClient(parseUntrustedKubeconfig(access), line);
    const garden = client(this.#gardenAccess);
    const inside = new Map(
      [...this.#members].map(([name, { kubeconfig }]) => {
        const opened = client(kubeconfig);
        return [name, { client: opened, nodes: new Informer<Node>(opened, NODES) }] as const;
      }),
    );
    const clusters = new Informer<WorkerCluster>(garden, WORKERCLUSTERS, { indexes: byNamespace });
    const profiles = new Informer<CloudProfile>(garden, CLOUDPROFILES);
    this.#openClusters = new OpenClusters();
    const core: HubsCore = {
      garden,
      gardenID: await gardenIdentity(this.garden.client, AbortSignal.timeout(PATIENCE_MS)),
      state: { namespace: 'kube-system', directory: undefined },
      log: silent,
      queue: () => new WorkQueue(),
      queues: { clusters: new WorkQueue(), shoots: new WorkQueue() },
      clusters,
      profiles,
      provider: () => undefined,
      openClusters: this.#openClusters,
      now: () => this.now(),
      recordEvent: (object, _type, reason, message) => this.events.push(`${object.kind} ${reason}: ${message}`),
    };
    const hubs = wireHubs(core);
    const parts = [hubs, this.beside(core, hubs)];
    const caches = [clusters, profiles, ...[...inside.values()].map(({ nodes }) => nodes)].concat(
      parts.flatMap((part) => part.caches ?? []),
    );
    for (const cache of caches) cache.start();
    await Promise.all(caches.map((cache) => cache.whenSynced(AbortSignal.timeout(PATIENCE_MS))));
    const held = () => hubs.holds('shop', 'demo').length > 0;
    this.#operator = {
      hubs,
      controllers: parts.flatMap((part) => part.controllers).map((controller) => runController(controller)),
      caches,
      clients: [garden, ...[...inside.values()].map(({ client }) => client)],
      inside,
      line,
      held,
    };
  }

  async stopOperator(): Promise<void> {
    const operator = this.#operator;
    this.#operator = undefined;
    if (!operator) return;
    await Promise.all(operator.controllers.map((controller) => controller.stop(0)));
    await operator.hubs.close?.();
    await Promise.all(operator.caches.map((cache) => cache.stop()));
    await Promise.all(operator.clients.map((client) => client.close()));
  }

  get line(): Breakable {
    return this.#operator!.line;
  }

  /** Whether memberships keep the cluster from being taken apart. */
  get isHeld(): boolean {
    return this.#operator!.held();
  }

  /** Whether memberships keep the cluster from falling asleep, that is to sleep from now on. */
  get isKeptAwake(): boolean {
    return judgeHolds(this.#operator!.hubs.keepsAwake('shop', 'demo', this.now()), this.now()).open === false;
  }

  /**
   * What other controllers of the operator do when they have a connection to the cluster, or lose it.
   * @param as name of the WorkerCluster, where a policy has given it another one
   * @param isAnswering whether they have noticed nothing that is wrong with it
   */
  open(pods: readonly Pod[] = [], name = 'demo', as = name, isAnswering = () => true): () => void {
    const { client, nodes } = this.#operator!.inside.get(name)!;
    const listeners: (() => void)[] = [];
    const cluster: OpenCluster = {
      client,
      server: this.#members.get(name)!.url,
      nodes,
      pods: { list: () => [...pods] },
      get answers() {
        return isAnswering();
      },
      onStop: (listener) => listeners.push(listener),
    };
    this.#openClusters.add(`shop/${as}`, cluster);
    return () => {
      for (const listener of listeners.splice(0)) listener();
    };
  }

  async makeHub(name = 'test', more: Partial<HubSpec> = {}): Promise<void> {
    const member = { ...this.#spec.member, ...more.member };
    const spec = {
      ...this.#spec,
      allowedNamespaces: ['shop'],
      ...more,
      // An API server makes null of an object that is emptied, which the Hub's schema refuses.
      ...(Object.keys(member).length > 0 && { member }),
    };
    await this.garden.client.apply({ apiVersion: ALPHA_API_VERSION, kind: 'Hub', metadata: { name }, spec });
  }

  async makeCluster(labels: Record<string, string> = {}, name = 'demo'): Promise<void> {
    const { client } = this.garden;
    await client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    await client.apply({
      apiVersion: API_VERSION,
      kind: 'WorkerCluster',
      metadata: { name, namespace: 'shop', labels, finalizers: [`${API_VERSION.split('/')[0]}/test`] },
      spec: { cloudProvider: 'local', dataPlaneNodes: 1 },
    });
  }

  /** Until the operator has stopped asking anybody for anything. */
  async quiet(): Promise<void> {
    for (let before = -1; before !== this.line.requests; ) {
      before = this.line.requests;
      await delay(QUIET_MS);
    }
  }

  /** What other controllers say of a cluster whose API server does not answer. */
  async silence(): Promise<void> {
    const condition = { type: 'APIServerAvailable', status: 'False', lastTransitionTime: '2026-11-22T12:00:00Z' };
    const status = { conditions: [condition] };
    await this.garden.client.mergePatch(WORKERCLUSTERS, 'demo', 'shop', { status }, { subresource: 'status' });
  }

  /** What other controllers say of a cluster that is to sleep, or to wake. */
  async sleep(asleep: boolean): Promise<void> {
    const status = { hibernation: { asleep, since: rfc3339(this.now()) } };
    await this.garden.client.mergePatch(WORKERCLUSTERS, 'demo', 'shop', { status }, { subresource: 'status' });
  }

  membership(hub = 'test', cluster = 'demo'): Membership | undefined {
    return this.memberships.get(`shop/${membershipName(cluster, hub)}`);
  }

  state = (hub = 'test', cluster = 'demo'): string | undefined => this.membership(hub, cluster)?.status?.state;

  until(what: string, predicate: () => boolean, timeoutMs = PATIENCE_MS): Promise<unknown> {
    return waitFor([this.memberships, this.hubs], () => predicate() || undefined, {
      timeoutMs,
      what: () =>
        `${what}; last said: ${JSON.stringify(this.memberships.list().map(({ status }) => status))} ${JSON.stringify(this.hubs.list()[0]?.status)}`,
    });
  }

  /** Everything on either side that bears the label of a membership, as `kind namespace/name`. */
  async made(kinds: { hub: readonly Resource[]; member: readonly Resource[] }): Promise<string[]> {
    const on = async ({ client }: TestApiserver, resources: readonly Resource[]) =>
      (await Promise.all(resources.map((kind) => client.list(kind, { labelSelector: LABELS.membership })))).flatMap(
        ({ items }) => items,
      );
    const all = [...(await on(this.garden, kinds.hub)), ...(await on(this.member, kinds.member))];
    return all.map(({ kind, metadata: { namespace = '', name } }) => `${kind} ${namespace}/${name}`).sort();
  }
}

/** What `helm install coppice` gives the operator in a garden that is no seed, without the chart's objects that need a node. */
async function accessOfChart({ client, url, ca }: TestApiserver): Promise<string> {
  const roles = loadAll(await readFile(`${CHART}/clusterroles.yaml`, 'utf8')) as KubeObject[];
  const role = roles.find(({ metadata }) => metadata.name === 'coppice-operator')!;
  const account = { name: 'coppice-operator', namespace: 'kube-system' };
  await client.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: account });
  await client.apply(role);
  await client.apply({
    apiVersion: role.apiVersion,
    kind: 'ClusterRoleBinding',
    metadata: { name: account.name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role.metadata.name },
    subjects: [{ kind: 'ServiceAccount', ...account }],
  });
  const { token } = await requestToken(client, account, 3600, AbortSignal.timeout(PATIENCE_MS));
  return writeKubeconfigText({ server: url, ca, token, name: 'garden', user: account.name });
}

/** A node as its kubelet would report it, or with another size than before. */
export async function addNode({ client }: TestApiserver, name: string, cpu: string, memory: string): Promise<void> {
  const node: KubeObject = { apiVersion: 'v1', kind: 'Node', metadata: { name } };
  const amounts = { cpu, memory, pods: '110' };
  const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'ready' };
  await client.apply(node);
  const status = {
    capacity: amounts,
    allocatable: amounts,
    conditions: [{ ...ready, lastHeartbeatTime: null, lastTransitionTime: null }],
  };
  await client.apply({ ...node, status }, { subresource: 'status' });
}
