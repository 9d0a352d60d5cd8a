import type { BurstPolicy, BurstPolicySpec } from '../../../operator/api/burstpolicy.ts';
import { findCondition } from '../../../operator/api/conditions.ts';
import { ALPHA_API_VERSION, LABELS } from '../../../operator/api/group.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import type { StoredReceipt } from '../../../operator/burst/clusters/stored-receipt.ts';
import type { DecidedSize } from '../../../operator/capacity/desired-sizes.ts';
import { type DepletedOffer, type Offer, sameOffer } from '../../../operator/capacity/offers.ts';
import type { SleepOrder } from '../../../operator/capacity/sleep-order.ts';
import { reconcileBurst } from '../../../operator/controllers/burst/controller.ts';
import { type BurstDependencies, burstReceipts } from '../../../operator/controllers/burst/dependencies.ts';
import { gardenWorld } from '../../../operator/controllers/burst/garden-world.ts';
import { BurstMemory } from '../../../operator/controllers/burst/memory.ts';
import type { Asking, Demand, PlacedSource, PlacedWork, StatusPart } from '../../../operator/hubs/contract.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { Registry } from '../../../operator/kube/metrics.ts';
import { receiptIn } from '../../../operator/kube/receipt.ts';
import {
  BURSTPOLICIES,
  HUBS,
  type KubeObject,
  MEMBERSHIPS,
  type Node,
  type Pod,
  QUOTAS,
  type Resource,
  type Secret,
  SHOOTS,
  WORKERCLUSTERS,
} from '../../../operator/kube/resources.ts';
import { profile } from '../../unit/cost/objects.ts';
import { partOf } from '../builders/partial.ts';
import { MemoryApiServer } from '../memory-api-server.ts';

export const START = Date.parse('2026-11-23T12:00:00Z');
export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
const NEVER = new AbortController().signal;
export class Killed extends Error {}

export const demand = (source: string, count: number, more: Partial<Demand> = {}): Demand => ({
  source,
  namespace: 'shop',
  count,
  each: { cpu: '1', memory: '1Gi' },
  since: '1970-01-01T00:00:00Z',
  ...more,
});

export const spec = (more: Partial<BurstPolicySpec> = {}): BurstPolicySpec => ({
  hub: 'production',
  maximumClusters: 3,
  budget: { hourly: '10', currency: 'USD' },
  candidates: [
    {
      name: 'cloud',
      template: {
        metadata: { labels: { fleet: 'production' } },
        spec: { cloudProvider: 'cloud', controlPlaneNodes: 1, pools: [{ name: 'a', minimum: 1, maximum: 10 }] },
      },
    },
    {
      name: 'there',
      template: {
        spec: { cloudProvider: 'cloud', controlPlaneNodes: 1, region: 'there', pools: [{ name: 'a', maximum: 10 }] },
      },
    },
  ],
  ...more,
});

export const policyNamed = (name: string, more: Partial<BurstPolicySpec> = {}, created = START): BurstPolicy => ({
  apiVersion: ALPHA_API_VERSION,
  kind: 'BurstPolicy',
  metadata: {
    name,
    namespace: 'shop',
    uid: `uid-of-${name}`,
    generation: 1,
    creationTimestamp: new Date(created).toISOString(),
  },
  spec: spec(more),
});

/** A garden with a hub, whose clusters come when the test says so. */
export class BurstTestbed {
  readonly objects = new MemoryApiServer();
  readonly events: string[] = [];
  readonly metrics = new Registry();
  readonly open = new Map<string, { nodes: Node[]; pods: Pod[] }>();
  /** What was decided for pools, by cluster. */
  readonly sizes = new Map<string, ReadonlyMap<string, DecidedSize>>();
  /** What clusters were told about sleep. */
  readonly orders = new Map<string, SleepOrder>();
  depleted: DepletedOffer[] = [];
  /** Whether the cloud's own service ends nodes by name. */
  removesNodes = false;
  /** undefined: hubs of this type do not tell. */
  demands: readonly Demand[] | Error | undefined = [];
  /** What the hub has decided to run where. */
  decidedFor: readonly PlacedSource[] = [];
  /** What the hub asks about work that it holds, and what is done with answers. Absent: nothing. */
  asked: ((signal: AbortSignal) => Promise<Asking | undefined>) | undefined;
  answered: (part: StatusPart) => void = () => {};
  /** By the name of the member what the hub has placed there and would move. undefined: hubs of this type do not tell. */
  placedBy: ((member: string) => readonly PlacedWork[] | string) | undefined;
  /** Besides nodes and pods, what is in the clusters: by kind. */
  readonly inside = new Map<string, KubeObject[]>();
  now = START;
  memory = new BurstMemory();
  profile = profile();
  refuse: (cluster: WorkerCluster) => string | undefined = () => undefined;
  /** Name of the cluster that nobody may delete. */
  protect = '';
  /** Name of the cluster that nobody may change. */
  frozen = '';
  /** What caches show; undefined: what there is. */
  stale: Map<string, KubeObject> | undefined;
  /** Writes until the operator is killed. */
  lives = Number.POSITIVE_INFINITY;

  constructor() {
    this.objects.put({
      apiVersion: ALPHA_API_VERSION,
      kind: 'Hub',
      metadata: { name: 'production' },
      spec: { type: 'Karmada', allowedNamespaces: ['shop'] },
      status: { conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '' }] },
    });
  }

  #cache<T extends KubeObject>(resource: Resource) {
    const byHub = ({ spec }: T) => [spec?.hub as string];
    return this.objects.cache<T>(resource, { hub: byHub }, () => this.stale ?? this.objects.objects);
  }

  get deps(): BurstDependencies {
    const { objects } = this;
    const write = async <T>(act: () => T | Promise<T>): Promise<T> => {
      const done = await act();
      if (--this.lives <= 0) throw new Killed('the operator was killed');
      return done;
    };
    objects.around = write;
    objects.admit = (verb, object) => {
      const { name } = object.metadata;
      const message =
        verb === 'create' && object.kind === 'WorkerCluster' ? this.refuse(object as WorkerCluster) : undefined;
      if (message) throw new KubeApiError('POST', 422, { reason: 'Invalid', message });
      if (verb === 'delete' && name === this.protect)
        throw new KubeApiError('DELETE', 403, { reason: 'Forbidden', message: 'it is protected' });
      if (verb === 'patch' && name === this.frozen)
        throw new KubeApiError('PATCH', 403, { reason: 'Forbidden', message: 'it is frozen' });
    };
    const garden = partOf<KubeClient>(objects);
    return {
      garden,
      policies: this.#cache(BURSTPOLICIES),
      hubs: this.#cache(HUBS),
      memberships: this.#cache(MEMBERSHIPS),
      clusters: this.#cache(WORKERCLUSTERS),
      shoots: this.#cache(SHOOTS),
      quotas: this.#cache(QUOTAS),
      profiles: { get: (name: string) => (name === 'cloud' ? this.profile : undefined) },
      granted: new Map(),
      provider: () => ({ ...(this.removesNodes && { managed: { removeNodes: () => {} } }) }),
      capacity: {
        known: () => ({ depleted: this.depleted, tries: [] }),
        interrupted: (offer: Offer) => {
          if (this.depleted.some((one) => one.interrupted && sameOffer(one, offer))) return;
          this.depleted = [...this.depleted, { ...offer, until: this.now + 180_000, interrupted: true }];
        },
      },
      decided: ({ metadata }: WorkerCluster) => this.sizes.get(`${metadata.namespace}/${metadata.name}`) ?? 'none',
      sizes: {
        decide: ({ key, pool, size }: { key: string; pool: { name: string }; size: DecidedSize }) =>
          write(async () => {
            this.sizes.set(key, new Map([...(this.sizes.get(key) ?? []), [pool.name, size]]));
            this.objects.writes.push(`decide ${key} ${pool.name} ${size.count}`);
          }),
        sleepOrder: (key: string) => this.orders.get(key) ?? 'none',
        orderSleep: (key: string, _uid: string, order: SleepOrder | undefined) =>
          write(async () => {
            if (order) this.orders.set(key, order);
            else this.orders.delete(key);
            this.objects.writes.push(`order ${key} ${order ? `asleep=${order.asleep}` : 'nothing'}`);
          }),
      },
      openClusters: {
        get: (key: string) => {
          const open = this.open.get(key);
          const client = { list: async ({ kind }: Resource) => ({ items: this.inside.get(kind) ?? [] }) };
          return open && { client, nodes: { list: () => open.nodes }, pods: { list: () => open.pods } };
        },
      },
      receipts: burstReceipts(garden, 'kube-system'),
      metrics: this.metrics,
      hear: async (_hub: unknown, signal: AbortSignal) => {
        if (this.demands instanceof Error) throw this.demands;
        return { demands: this.demands, placed: this.decidedFor, asking: await this.asked?.(signal) };
      },
      asksOf: async (_hub: unknown, signal: AbortSignal) => this.asked?.(signal),
      writeStatus: async (_hub: unknown, part: StatusPart) => this.answered(part),
      placedWork: async (_hub: unknown, member: string) => this.placedBy?.(member),
      now: () => new Date(this.now),
      recordEvent: (_object: unknown, _type: string, reason: string, message: string) =>
        this.events.push(`${reason} ${message}`),
    } as unknown as BurstDependencies;
  }

  async look(after = 0): Promise<void> {
    this.now += after;
    await reconcileBurst(gardenWorld(this.deps), this.memory, 'production', NEVER);
  }

  /**
   * Looks as often as the operator would.
   * @param every ms from one look to the next: in long stretches nothing depends on each of them
   */
  async looks(during: number, every = during > 5 * MINUTE ? MINUTE : 10 * SECOND): Promise<void> {
    for (let past = 0; past < during; past += every) await this.look(every);
  }

  clusters(): WorkerCluster[] {
    return [...this.objects.objects.values()].filter(({ kind }) => kind === 'WorkerCluster') as WorkerCluster[];
  }

  policy(name = 'peak'): BurstPolicy | undefined {
    return this.objects.find<BurstPolicy>(BURSTPOLICIES, name, 'shop');
  }

  receipt(): StoredReceipt | undefined {
    return receiptIn<StoredReceipt>(this.#record());
  }

  /** Name of the Secret with the receipt. */
  recordName(): string {
    return this.#record()!.metadata.name;
  }

  #record(): Secret | undefined {
    return [...this.objects.objects.values()].find(({ type }) => type?.includes('burst-record')) as Secret | undefined;
  }

  /** A cluster joins its hub, with the nodes that it asks for and so many replicas on them. */
  join(cluster: WorkerCluster, replicas: number): void {
    const { name, namespace = '' } = cluster.metadata;
    const key = `${namespace}/${name}`;
    this.objects.put({
      apiVersion: ALPHA_API_VERSION,
      kind: 'Membership',
      metadata: { name: `${name}.production`, namespace },
      spec: { cluster: name, hub: 'production' },
      status: { state: 'Joined', memberName: name },
    });
    const node = (index: number): Node =>
      ({
        kind: 'Node',
        metadata: {
          name: `${name}-${index}`,
          labels: {
            [LABELS.pool]: 'a',
            'node.kubernetes.io/instance-type': 'small',
            'kubernetes.io/hostname': `${name}-${index}`,
          },
        },
        spec: {},
        status: {
          allocatable: { cpu: '1900m', memory: '7Gi', pods: '110' },
          conditions: [{ type: 'Ready', status: 'True' }],
        },
      }) as unknown as Node;
    const pod = (index: number): Pod =>
      ({
        kind: 'Pod',
        metadata: { name: `web-${index}`, namespace: 'shop' },
        spec: {
          nodeName: `${name}-${index}`,
          containers: [{ name: 'web', resources: { requests: { cpu: '1', memory: '1Gi' } } }],
        },
      }) as unknown as Pod;
    const count = cluster.spec.pools![0]!.minimum!;
    this.open.set(key, {
      nodes: Array.from({ length: count }, (_, index) => node(index)),
      pods: Array.from({ length: replicas }, (_, index) => pod(index)),
    });
  }

  empty(cluster: WorkerCluster): void {
    this.open.get(`shop/${cluster.metadata.name}`)!.pods = [];
  }

  /** What became of the decisions of policy peak, the newest first; `Buy ?`: nothing is known yet. */
  outcomes(): string[] {
    return (this.policy()?.status?.decisions ?? []).map(
      ({ action, outcome }) => `${action} ${outcome ? `${outcome.result}: ${outcome.message}` : '?'}`,
    );
  }

  says(type: string, name?: string) {
    const found = findCondition(this.policy(name)?.status?.conditions, type);
    return found && `${found.status} ${found.reason}`;
  }
}
