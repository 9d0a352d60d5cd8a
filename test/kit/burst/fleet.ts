import { ALPHA_API_VERSION, API_VERSION, LABELS } from '../../../operator/api/group.ts';
import type { Hub } from '../../../operator/api/hub.ts';
import type { Membership } from '../../../operator/api/membership.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import type { StoredReceipt } from '../../../operator/burst/clusters/stored-receipt.ts';
import { BurstMemory } from '../../../operator/controllers/burst/memory.ts';
import type { PlacedWork } from '../../../operator/hubs/contract.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { HUBS, MEMBERSHIPS, type Node, type Pod, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { BurstTestbed, demand, Killed, MINUTE, policyNamed, SECOND } from './testbed.ts';

/** CPUs of a node in thousandths, of which the system has its part. */
const NODE_CPU = 1900;
/** Price of a node in an hour, in millionths, by region. */
export const NODE_PRICE = { here: 100_000n, there: 120_000n } as const;
export type Region = keyof typeof NODE_PRICE;
/** After this long nobody counts on nodes of a cluster that has joined without them. */
const SETTLE_MS = 5 * MINUTE;

const labelsOf = (cluster: WorkerCluster) => cluster.metadata.labels ?? {};
export const regionOf = ({ spec }: WorkerCluster): Region => (spec.region === 'there' ? 'there' : 'here');
export const nodesOf = ({ spec }: WorkerCluster): number => spec.pools?.[0]?.minimum ?? 0;

/**
 * A hub that divides work among its clusters, each workload as a whole or not at all, and a cloud whose clusters come and go in time. It
 * takes a step when told to; the real controller decides, and may be killed between any two of its writes.
 */
export class BurstFleet extends BurstTestbed {
  /** Replicas that somebody wants, by workload. */
  readonly wanted = new Map<string, number>();
  /** What the hub has placed. */
  readonly placed = new Set<string>();
  /** Numbers of purchases of which a cluster was made, in turn. */
  readonly made: string[] = [];
  /** Names of clusters that were taken away with work on them. */
  readonly killed: string[] = [];
  /** Purchases, and clusters that were given back, in turn. */
  readonly history: string[] = [];
  /** Candidates that have no machines to be had, and those whose machines never come. */
  readonly soldOut = new Set<Region>();
  readonly broken = new Set<Region>();
  /** Workloads of a priority below 0. */
  readonly low = new Set<string>();
  /** CPU of each replica in thousandths. */
  cpu = 1000;
  startMs = 2 * MINUTE;
  leaveMs = MINUTE;
  /** What happens when the operator is killed, besides. */
  onKilled = () => {};
  /** The hub does not answer. */
  isSilent = false;
  /** So long the hub goes on to say of what it has placed on clusters that were bought that it has no place. */
  repeatsMs = 0;
  /** Until when it says so of a workload. */
  readonly #repeated = new Map<string, number>();
  /** The hub moves nothing away from clusters that are to be emptied. */
  isStuck = false;
  /** Called when a cluster is to be emptied, with the replicas on it and the room for them elsewhere. */
  onEmptying = (_name: string, _replicas: number, _room: number) => {};
  /** What was stored before the last look, and what the hub could have placed then, also on nodes that were on their way. */
  before: { readonly receipt: StoredReceipt | undefined; readonly room: number } = { receipt: undefined, room: 0 };
  readonly #born = new Map<string, number>();
  readonly #joined = new Map<string, number>();
  readonly #leaving = new Map<string, number>();
  readonly #emptied = new Set<string>();
  /** Clusters that sleep, and since when they are told to wake. */
  readonly #asleep = new Map<string, number | undefined>();
  #serial = 0;

  constructor(spec: Parameters<typeof policyNamed>[1], ownNodes: number) {
    super();
    this.placedBy = (member) => this.#placedOn(member);
    const hub = this.objects.find<Hub>(HUBS, 'production')!;
    // One that counts on nodes what is free there, as this one does.
    this.objects.put({ ...hub, spec: { ...hub.spec, type: 'ClusterProfile' } });
    this.objects.put(policyNamed('peak', spec));
    const metadata = { name: 'private', namespace: 'shop', labels: {} };
    const pools = [{ name: 'a', minimum: ownNodes, maximum: ownNodes }];
    const own: WorkerCluster = {
      apiVersion: API_VERSION,
      kind: 'WorkerCluster',
      metadata,
      spec: { cloudProvider: 'cloud', controlPlaneNodes: 1, pools },
    };
    this.objects.put(own);
    this.#join(own, ownNodes);
  }

  /** How many replicas a node takes. */
  get slots(): number {
    return Math.floor(NODE_CPU / this.cpu);
  }

  /** Clusters that were bought and are there. */
  bought(): WorkerCluster[] {
    return this.clusters().filter((one) => labelsOf(one)[LABELS.burstPolicy] !== undefined);
  }

  /** Replicas without a place. */
  get waiting(): number {
    return [...this.wanted].reduce((sum, [name, count]) => sum + (this.placed.has(name) ? 0 : count), 0);
  }

  /** Those of them that are not of a low priority. */
  get waitingAbove(): number {
    return this.waiting - [...this.low].reduce((sum, name) => sum + this.#unplaced(name), 0);
  }

  #unplaced(name: string): number {
    return this.placed.has(name) ? 0 : (this.wanted.get(name) ?? 0);
  }

  scale(name: string, count: number): void {
    for (const open of this.open.values()) open.pods = open.pods.filter((pod) => labelOf(pod) !== name);
    this.placed.delete(name);
    if (count > 0) this.wanted.set(name, count);
    else this.wanted.delete(name);
  }

  /** Fewer replicas of what is placed, of each cluster in turn, as hubs take them that divide by weight. */
  shrink(name: string, count: number): void {
    if (!this.placed.has(name)) {
      this.scale(name, count);
      return;
    }
    const holders = [...this.open.values()];
    const left = () => holders.reduce((sum, { pods }) => sum + pods.filter((pod) => labelOf(pod) === name).length, 0);
    for (let turn = 0; left() > count; turn++) {
      const { pods } = holders[turn % holders.length]!;
      const index = pods.findIndex((pod) => labelOf(pod) === name);
      if (index >= 0) pods.splice(index, 1);
    }
    this.wanted.set(name, count);
  }

  /** The world takes a step, then the operator looks at it. */
  async step(during: number): Promise<void> {
    this.now += during;
    this.#cloud();
    this.#move();
    this.#place();
    const isTold = (name: string) => !this.placed.has(name) || (this.#repeated.get(name) ?? 0) > this.now;
    const waiting = [...this.wanted].filter(([name]) => isTold(name));
    const each = { cpu: `${this.cpu}m`, memory: '1Gi' };
    const priority = (name: string) => (this.low.has(name) ? { priority: -1 } : {});
    this.demands = this.isSilent
      ? new Error('refused')
      : waiting.map(([name, count]) => demand(name, count, { each, ...priority(name) }));
    this.before = { receipt: this.receipt(), room: this.free + this.#coming() };
    const known = new Set(this.bought().map(({ metadata }) => metadata.name));
    try {
      await this.look();
    } catch (error) {
      const isConflict = error instanceof KubeApiError && error.isConflict;
      if (!(error instanceof Killed) && !isConflict) throw error;
      if (error instanceof Killed) {
        this.restart();
        this.onKilled();
      }
    }
    for (const { metadata } of this.bought()) {
      const isNew = this.#isMarked(metadata.name) && !this.#emptied.has(metadata.name);
      if (isNew) this.onEmptying(metadata.name, this.open.get(`shop/${metadata.name}`)!.pods.length, this.free);
      if (isNew) this.#emptied.add(metadata.name);
      else if (!this.#isMarked(metadata.name)) this.#emptied.delete(metadata.name);
    }
    for (const cluster of this.bought()) {
      if (known.has(cluster.metadata.name)) continue;
      this.made.push(labelsOf(cluster)[LABELS.burstPurchase]!);
      this.history.push(
        `${this.#time()} make ${cluster.metadata.name} of ${nodesOf(cluster)} nodes ${regionOf(cluster)}`,
      );
    }
    this.#noteLeaving();
  }

  /** Another operator takes over, which knows only what was written. */
  restart(): void {
    this.lives = Number.POSITIVE_INFINITY;
    this.memory = new BurstMemory();
  }

  async pass(during: number, every = during > 20 * MINUTE ? MINUTE : 10 * SECOND): Promise<void> {
    for (let past = 0; past < during; past += every) await this.step(every);
  }

  #time(): string {
    return new Date(this.now).toISOString().slice(11, 19);
  }

  #noteLeaving(): void {
    for (const { metadata } of this.bought()) {
      if (!metadata.deletionTimestamp || this.#leaving.has(metadata.name)) continue;
      this.#leaving.set(metadata.name, this.now);
      this.history.push(`${this.#time()} delete ${metadata.name}`);
      if ((this.open.get(`shop/${metadata.name}`)?.pods.length ?? 0) > 0) this.killed.push(metadata.name);
    }
  }

  /** Clusters come, as far as there are machines, and go. */
  #cloud(): void {
    for (const cluster of this.bought()) {
      const { name, namespace } = cluster.metadata;
      const since = this.#born.get(name) ?? this.now;
      if (!this.#born.has(name)) {
        this.#born.set(name, since);
        this.objects.put({
          ...cluster,
          metadata: { ...cluster.metadata, finalizers: ['coppice.test/cloud'] },
          status: { admitted: sizeOf(cluster), conditions: [said('SpecAccepted', 'True')] },
        } as WorkerCluster);
      }
      const left = this.#leaving.get(name);
      if (left !== undefined) {
        this.objects.objects.delete(`${MEMBERSHIPS.plural}/${namespace}/${name}.production`);
        if (this.now - left < this.leaveMs) continue;
        this.objects.objects.delete(`${WORKERCLUSTERS.plural}/${namespace}/${name}`);
        this.open.delete(`shop/${name}`);
      } else if (this.#asleep.has(name) || this.#isToSleep(name)) this.#sleepOrWake(cluster);
      else if (!this.#joined.has(name)) {
        const region = regionOf(cluster);
        if (this.soldOut.has(region)) this.#say(name, ['ERR_INFRA_RESOURCES_DEPLETED']);
        else if (this.now - since >= this.startMs) {
          this.#join(cluster, this.broken.has(region) ? 0 : nodesOf(cluster));
          this.#say(name);
        }
      } else if (!this.#isWarm(name)) this.#putMembership(name, { state: 'Joined', memberName: name });
    }
  }

  #isToSleep(name: string): boolean {
    return this.#joined.has(name) && this.orders.get(`shop/${name}`)?.asleep === true;
  }

  /** A cluster falls asleep at once, and takes as long to wake as to come; as far as there are machines. */
  #sleepOrWake(cluster: WorkerCluster): void {
    const { name } = cluster.metadata;
    const region = regionOf(cluster);
    if (this.#isToSleep(name)) {
      if (!this.#asleep.has(name)) this.history.push(`${this.#time()} sleep ${name}`);
      if ((this.open.get(`shop/${name}`)?.pods.length ?? 0) > 0) this.killed.push(name);
      this.#asleep.set(name, undefined);
      this.open.delete(`shop/${name}`);
      this.#putMembership(name, { state: this.#isWarm(name) ? 'Pending' : 'Asleep' });
      this.#say(name, undefined, true);
      return;
    }
    const since = this.#asleep.get(name) ?? this.now;
    this.#asleep.set(name, since);
    if (this.soldOut.has(region)) this.#say(name, ['ERR_INFRA_RESOURCES_DEPLETED']);
    else this.#say(name);
    if (this.soldOut.has(region) || this.now - since < this.startMs) return;
    this.#asleep.delete(name);
    this.history.push(`${this.#time()} wake ${name}`);
    this.#join(cluster, this.broken.has(region) ? 0 : nodesOf(cluster));
  }

  /** Whether it waits, closed for work. */
  #isWarm(name: string): boolean {
    const cluster = this.objects.find<WorkerCluster>(WORKERCLUSTERS, name, 'shop');
    return cluster !== undefined && labelsOf(cluster)[LABELS.burstWarm] === 'true';
  }

  #putMembership(name: string, status: object): void {
    const known = this.objects.find<Membership>(MEMBERSHIPS, `${name}.production`, 'shop');
    if (known?.status?.state === (status as Membership['status'])?.state) return;
    this.objects.put({
      apiVersion: ALPHA_API_VERSION,
      kind: 'Membership',
      metadata: { name: `${name}.production`, namespace: 'shop' },
      spec: { cluster: name, hub: 'production' },
      status,
    } as never);
  }

  #say(name: string, codes?: string[], asleep = false): void {
    const cluster = this.objects.find<WorkerCluster>(WORKERCLUSTERS, name, 'shop')!;
    const hourly = NODE_PRICE[regionOf(cluster)] * BigInt(nodesOf(cluster));
    const ready = codes ? [{ ...said('Ready', 'False'), message: 'no machines are left', codes }] : [];
    const cost = { hourly: asleep ? '0' : String(Number(hourly) / 1e6), currency: 'USD' };
    const hibernated = { ...said('Hibernated', 'True'), lastTransitionTime: new Date(this.now).toISOString() };
    const conditions = [said('SpecAccepted', 'True'), ...ready, ...(asleep ? [hibernated] : [])];
    const hibernation = asleep ? { asleep, since: '' } : undefined;
    this.objects.put({
      ...cluster,
      status: { ...cluster.status, conditions, hibernation, ...(!codes && { cost }) },
    } as WorkerCluster);
  }

  #join(cluster: WorkerCluster, count: number): void {
    const { name, namespace = '' } = cluster.metadata;
    this.#joined.set(name, this.now);
    const warm = { state: 'Joining', conditions: [said('Warm', 'True')] };
    this.#putMembership(name, this.#isWarm(name) ? warm : { state: 'Joined', memberName: name });
    const nodes = Array.from({ length: count }, (_, index) => nodeNamed(`${name}-${index}`));
    this.open.set(`${namespace}/${name}`, { nodes, pods: [] });
  }

  /** Clusters that take work. */
  #open() {
    return [...this.open]
      .map(([key, open]) => ({ name: key.slice(key.indexOf('/') + 1), open }))
      .filter(({ name }) => !this.#leaving.has(name) && !this.#isMarked(name) && !this.#isWarm(name))
      .map(({ open }) => open);
  }

  /** Whether its policy wants it emptied. */
  #isMarked(name: string): boolean {
    const cluster = this.objects.find<WorkerCluster>(WORKERCLUSTERS, name, 'shop');
    return cluster !== undefined && labelsOf(cluster)[LABELS.burstEmptying] === 'true';
  }

  #placedOn(member: string): PlacedWork[] {
    const counts = new Map<string, number>();
    for (const pod of this.open.get(`shop/${member}`)?.pods ?? [])
      counts.set(labelOf(pod)!, (counts.get(labelOf(pod)!) ?? 0) + 1);
    return [...counts].map(([name, count]) => ({
      source: name,
      count,
      each: { cpu: `${this.cpu}m`, memory: '1Gi' },
      workload: { kind: 'Deployment', namespace: 'shop', name },
    }));
  }

  /** The hub moves work away from clusters that are to be emptied, as far as there is room, and says so. */
  #move(): void {
    if (this.isSilent) return;
    for (const { metadata } of this.bought()) {
      const { name } = metadata;
      const there = this.open.get(`shop/${name}`);
      if (!there || this.#leaving.has(name) || this.#isWarm(name)) continue;
      if (this.#isMarked(name) && !this.isStuck) there.pods = there.pods.filter((pod) => !this.#takes(pod));
      const isDone = there.pods.length === 0;
      const drained = { ...said('Drained', isDone ? 'True' : 'False'), reason: isDone ? 'Drained' : 'Draining' };
      const membership = this.objects.find<Membership>(MEMBERSHIPS, `${name}.production`, 'shop')!;
      const conditions = this.#isMarked(name) ? [drained] : [];
      this.objects.put({ ...membership, status: { ...membership.status, conditions } });
    }
  }

  #takes(pod: Pod): boolean {
    for (const { nodes, pods } of this.#open())
      for (const { metadata } of nodes) {
        if (pods.filter(({ spec }) => spec.nodeName === metadata.name).length >= this.slots) continue;
        pods.push({ ...pod, spec: { ...pod.spec, nodeName: metadata.name } });
        return true;
      }
    return false;
  }

  /** How many replicas the hub could place now. */
  get free(): number {
    return this.#open().reduce((sum, { nodes, pods }) => sum + nodes.length * this.slots - pods.length, 0);
  }

  #coming(): number {
    const { purchases = [] } = this.receipt() ?? {};
    return purchases
      .filter(({ leaving, name, warm }) => {
        const joined = this.#joined.get(name);
        const isThere = (this.open.get(`shop/${name}`)?.nodes.length ?? 0) > 0;
        return !leaving && !warm && !isThere && !(joined !== undefined && this.now - joined >= SETTLE_MS);
      })
      .reduce((sum, { nodes }) => sum + (nodes.a ?? 0) * this.slots, 0);
  }

  #place(): void {
    for (const [name, count] of this.wanted) {
      if (this.placed.has(name) || this.isSilent || count > this.free) continue;
      this.placed.add(name);
      this.#repeated.set(name, this.now + this.repeatsMs);
      let left = count;
      for (const { nodes, pods } of this.#open())
        for (const { metadata } of nodes) {
          const room = this.slots - pods.filter(({ spec }) => spec.nodeName === metadata.name).length;
          for (let index = 0; index < room && left > 0; index++, left--)
            pods.push(podOn(metadata.name, name, this.cpu, ++this.#serial));
        }
    }
  }
}

const labelOf = ({ metadata }: Pod): string | undefined => metadata.labels?.app;

const said = (type: string, status: string) => ({ type, status, reason: type, message: '', lastTransitionTime: '' });

const sizeOf = (cluster: WorkerCluster) => ({
  region: regionOf(cluster),
  mode: 'Hosted' as const,
  pools: [{ name: 'a', machineType: 'small', count: nodesOf(cluster) }],
});

const nodeNamed = (name: string): Node =>
  ({
    kind: 'Node',
    metadata: { name, labels: { [LABELS.pool]: 'a', 'node.kubernetes.io/instance-type': 'small' } },
    spec: {},
    status: {
      allocatable: { cpu: `${NODE_CPU}m`, memory: '7Gi', pods: '110' },
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  }) as unknown as Node;

const podOn = (nodeName: string, app: string, cpu: number, serial: number): Pod =>
  ({
    kind: 'Pod',
    metadata: {
      name: `${app}-${serial}`,
      namespace: 'shop',
      labels: { app, 'pod-template-hash': 'h' },
      ownerReferences: [{ kind: 'ReplicaSet', name: `${app}-h`, uid: app, controller: true }],
    },
    spec: { nodeName, containers: [{ name: 'c', resources: { requests: { cpu: `${cpu}m`, memory: '1Gi' } } }] },
  }) as unknown as Pod;
