import { describe, expect, it, test } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { findCondition } from '../../../operator/api/conditions.ts';
import type { ClusterSize } from '../../../operator/api/cost.ts';
import type { Quota } from '../../../operator/api/quota.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { DepletedOffers } from '../../../operator/capacity/depleted-offers.ts';
import { claimantsIn } from '../../../operator/controllers/quota/claimants.ts';
import { type QuotaDependencies, reconcileQuota } from '../../../operator/controllers/quota/controller.ts';
import { concernsOthers, quotaChanged, sharesChanged } from '../../../operator/controllers/quota/news.ts';
import { quotaStatus } from '../../../operator/controllers/quota/status.ts';
import { byTechnicalID } from '../../../operator/controllers/same-technical-id.ts';
import { onlyStatusChanged } from '../../../operator/controllers/status-writer.ts';
import {
  reconcileWorkerCluster,
  type WorkerClusterDependencies,
} from '../../../operator/controllers/workercluster/controller.ts';
import { usageTogether } from '../../../operator/cost/admission.ts';
import { Applier } from '../../../operator/kube/applier.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { CLOUDPROFILES, keyOf, QUOTAS, SHOOTS, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import type { WorkQueue } from '../../../operator/kube/workqueue.ts';
import type { Provider } from '../../../providers/contract.ts';
import { buildShoot, buildWorkerCluster } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { MemoryApiServer } from '../../kit/memory-api-server.ts';
import { pick, seeded } from '../../kit/seeded.ts';
import { profile, quota, size } from '../cost/objects.ts';

const NOW = new Date('2026-11-21T12:00:00Z');
const NEVER = new AbortController().signal;

class Killed extends Error {}

/** A project with its operator: writes take a moment, in which others go on, and may be the last thing a process does. */
class Project {
  readonly garden = new MemoryApiServer(profile());
  readonly clusters = this.garden.cache<WorkerCluster>(WORKERCLUSTERS, byTechnicalID);
  readonly shoots = this.garden.cache<Shoot>(SHOOTS, byTechnicalID);
  readonly quotas = this.garden.cache<Quota>(QUOTAS);
  readonly queue = new Set<string>();
  readonly quotaQueue = new Set<string>();
  /** What clusters could use of it, so: what exists. */
  readonly made: string[] = [];
  granted = new Map<string, ClusterSize>();
  readonly capacity = new DepletedOffers(() => NOW);
  killed: () => boolean = () => false;
  #uid = 0;

  constructor() {
    this.garden.around = async (write) => {
      await Promise.resolve();
      if (this.killed()) throw new Killed('killed before the write');
      const made = await write();
      await Promise.resolve();
      if (this.killed()) throw new Killed('killed after the write');
      return made;
    };
    this.garden.onChange<WorkerCluster>(WORKERCLUSTERS, (event) => {
      if (event.type !== 'deleted') this.queue.add(keyOf(event.object));
      else this.granted.delete(event.object.metadata.uid!);
      if (concernsOthers(event)) sharesChanged(this.quotas, this.#queueOf(this.quotaQueue), 'shop');
    });
    this.garden.onChange<Quota>(QUOTAS, (event) => {
      if (onlyStatusChanged(event)) return;
      this.quotaQueue.add(keyOf(event.object));
      quotaChanged(this.clusters, this.#queueOf(this.queue), 'shop');
    });
  }

  #queueOf(keys: Set<string>): WorkQueue {
    return partOf<WorkQueue>({ add: (key: string) => keys.add(key), addAfter: (key: string) => keys.add(key) });
  }

  get deps(): WorkerClusterDependencies & QuotaDependencies {
    const client = partOf<KubeClient>(this.garden);
    return partOf<WorkerClusterDependencies & QuotaDependencies>({
      clusters: this.clusters,
      shoots: this.shoots,
      profiles: this.garden.cache<CloudProfile>(CLOUDPROFILES),
      quotas: this.quotas,
      granted: this.granted,
      capacity: this.capacity,
      now: () => NOW,
      provider: () => partOf<Provider>({ name: 'fake', simulated: false, validate: () => [] }),
      recordEvent: () => {},
      judge: (key: string) => this.queue.add(key),
      garden: client,
      gardenApplier: new Applier(client, (object) => ({ live: this.shoots.get(keyOf(object)) })),
    });
  }

  ask(name: string, dataPlaneNodes: number, second = 0): void {
    const before = this.clusters.get(`shop/${name}`);
    this.garden.put(
      buildWorkerCluster({
        metadata: before
          ? { ...before.metadata, generation: before.metadata.generation! + 1 }
          : {
              name,
              namespace: 'shop',
              uid: `u${this.#uid++}`,
              generation: 1,
              creationTimestamp: `2026-11-21T00:00:${String(second).padStart(2, '0')}Z`,
            },
        spec: { cloudProvider: 'cloud', controlPlaneNodes: 1, dataPlaneNodes },
        ...(before?.status && { status: before.status }),
      }),
    );
  }

  remove(name: string): void {
    this.garden.remove(SHOOTS, name, 'shop');
    this.garden.remove(WORKERCLUSTERS, name, 'shop');
    this.queue.delete(`shop/${name}`);
  }

  /** Works on everything in the queue, all at the same time, until there is nothing to do. */
  async settle(): Promise<void> {
    for (let round = 0; this.queue.size + this.quotaQueue.size > 0; round++) {
      if (round > 200) throw new Error(`does not come to rest: ${[...this.queue].join(', ')}`);
      const [keys, quotaKeys] = [[...this.queue], [...this.quotaQueue]];
      this.queue.clear();
      this.quotaQueue.clear();
      await Promise.all([
        ...keys.map((key) =>
          reconcileWorkerCluster(this.deps, key, NEVER).catch((error: unknown) => {
            // A queue tries again after a conflict, too.
            if (!(error instanceof Killed || (error instanceof KubeApiError && error.isConflict))) throw error;
            this.queue.add(key);
          }),
        ),
        ...quotaKeys.map((key) => reconcileQuota(this.deps, key, NEVER)),
      ]);
    }
  }

  accepted = (name: string): string | undefined =>
    findCondition(this.clusters.get(`shop/${name}`)?.status?.conditions, 'SpecAccepted')?.reason;
  nodesMade = (): number =>
    this.shoots
      .list()
      .flatMap(({ spec }) => spec.provider.workers ?? [])
      .reduce((sum, { minimum }) => sum + minimum, 0);
  get used() {
    return usageTogether(claimantsIn(this.deps, 'shop'), 'USD').amounts;
  }
}

const project = async (metrics: Quota['spec']['metrics'], ...asked: [string, number][]): Promise<Project> => {
  const made = new Project();
  made.garden.put(quota(metrics));
  for (const [index, [name, nodes]] of asked.entries()) made.ask(name, nodes, index);
  await made.settle();
  return made;
};

describe('a project with a quota', () => {
  it('refuses what does not fit as a whole, and creates none of it', async () => {
    const shop = await project({ nodes: 4 }, ['a', 5]);
    const { status } = shop.clusters.get('shop/a')!;
    expect(shop.shoots.list()).toEqual([]);
    expect(status).toMatchObject({ phase: 'Pending', lastErrors: [{ codes: ['ERR_INFRA_QUOTA_EXCEEDED'] }] });
    expect(status).not.toHaveProperty('admitted');
    expect(findCondition(status?.conditions, 'SpecAccepted')).toMatchObject({
      status: 'False',
      reason: 'QuotaExceeded',
      codes: ['ERR_INFRA_QUOTA_EXCEEDED'],
      message: expect.stringContaining(
        'spec.dataPlaneNodes: quota "team" allows nodes 4: 0 used, 5 more requested, 4 left',
      ),
    });
  });

  it('names no size field where it permits no more clusters', async () => {
    const shop = await project({ clusters: 1 }, ['a', 1], ['b', 1]);
    const said = ['a', 'b'].map((name) => shop.clusters.get(`shop/${name}`)!.status?.conditions);
    expect(said.map((conditions) => findCondition(conditions, 'SpecAccepted')?.message)).toContainEqual(
      expect.stringMatching(/^metadata\.namespace: quota "team" allows clusters 1: 1 used, 1 more requested, 0 left/),
    );
  });

  it('gives the last place to the older of two simultaneous requests', async () => {
    const shop = new Project();
    shop.garden.put(quota({ nodes: 4 }));
    shop.ask('younger', 4, 2);
    shop.ask('older', 4, 1);
    await shop.settle();
    expect([shop.accepted('older'), shop.accepted('younger')]).toEqual(['Accepted', 'QuotaExceeded']);
    expect(shop.nodesMade()).toBe(4);
  });

  it('counts recent grants that are not recorded yet', async () => {
    const shop = await project({ nodes: 4 }, ['older', 1]);
    shop.ask('younger', 3, 1);
    const underWay = reconcileWorkerCluster(shop.deps, 'shop/younger', NEVER);
    shop.ask('older', 4);
    await Promise.all([underWay, shop.settle()]);
    expect([shop.accepted('older'), shop.accepted('younger')]).toEqual(['QuotaExceeded', 'Accepted']);
    expect(shop.nodesMade()).toBe(4);
  });

  it('leaves a running cluster unchanged when it may not grow', async () => {
    const shop = await project({ nodes: 4 }, ['a', 3]);
    shop.ask('a', 9);
    await shop.settle();
    expect(shop.nodesMade()).toBe(3);
    const accepted = findCondition(shop.clusters.get('shop/a')?.status?.conditions, 'SpecAccepted');
    expect(accepted?.message).toContain('6 more requested, 1 left');
    expect(accepted?.message).toContain('The cluster stays as it was');
  });

  test.each<[string, (shop: Project) => void]>([
    ['the quota is raised', (shop) => shop.garden.put(quota({ nodes: 10 }))],
    ['the quota is taken away', (shop) => shop.garden.remove(QUOTAS, 'team', 'shop')],
    ['a cluster goes', (shop) => shop.remove('a')],
    ['less is asked for', (shop) => shop.ask('b', 1)],
  ])('a cluster that waits is looked at again when %s', async (_what, happen) => {
    const shop = await project({ nodes: 4 }, ['a', 3], ['b', 3]);
    expect(shop.accepted('b')).toBe('QuotaExceeded');
    happen(shop);
    await shop.settle();
    expect(shop.accepted('b')).toBe('Accepted');
  });

  it('counts a cluster that fell back to another cloud by its size there', async () => {
    const shop = await project({ cpu: 12, 'cost.hourly': 9 });
    const large = { name: 'large', cpu: '8', gpu: '0', memory: '8Gi', price: { hourly: '2', currency: 'USD' } };
    const other = profile({ machineTypes: [large], regions: [{ name: 'abroad' }], defaults: {} });
    shop.garden.put({ ...other, metadata: { name: 'other' } });
    shop.ask('a', 1);
    const fallback = [{ cloudProvider: 'other', machineTypes: ['large'] }];
    const { spec, ...known } = shop.clusters.get('shop/a')!;
    shop.garden.put(
      partOf<WorkerCluster>({
        ...known,
        spec: { ...spec, fallback },
        status: { admitted: size('abroad', 'Managed', 'large*1') },
      }),
    );
    expect(shop.used).toMatchObject({ cpu: 8_000n, 'cost.hourly': 2_100_000n });
  });

  it('gives room only when machines are gone, then automatically', async () => {
    const shop = await project({ nodes: 4 }, ['a', 4], ['b', 2]);
    const count = (current: number) => {
      const shoot = shop.shoots.get('shop/a')!;
      const workers = [{ name: 'default', desired: 0, current, ready: current }];
      shop.garden.put({ ...shoot, status: { nodes: { desired: 0, current, ready: current }, workers } } as Shoot);
      shop.queue.add('shop/a');
    };
    count(4);
    shop.ask('a', 2);
    await shop.settle();
    expect([shop.nodesMade(), shop.accepted('b')]).toEqual([2, 'QuotaExceeded']);
    count(2);
    await shop.settle();
    expect(shop.accepted('b')).toBe('Accepted');
  });

  it('reserves nothing for an invalid spec', async () => {
    const shop = new Project();
    shop.garden.put(quota({ nodes: 4 }));
    shop.ask('older', 4, 1);
    const older = shop.clusters.get('shop/older')!;
    shop.garden.put({ ...older, spec: { ...older.spec, region: 'nowhere' } });
    shop.ask('younger', 4, 2);
    await shop.settle();
    expect([shop.accepted('older'), shop.accepted('younger')]).toEqual(['ConfigurationProblem', 'Accepted']);
  });

  it('counts a Shoot made by hand', async () => {
    const shop = new Project();
    shop.garden.put(quota({ nodes: 4 }));
    shop.garden.put(
      buildShoot({
        metadata: { name: 'by-hand', namespace: 'shop' },
        spec: {
          region: 'here',
          cloudProfile: { name: 'cloud' },
          provider: { workers: [{ name: 'w', machine: { type: 'small' }, minimum: 3, maximum: 3 }] },
        },
      }),
    );
    shop.ask('a', 2);
    await shop.settle();
    expect(shop.accepted('a')).toBe('QuotaExceeded');
  });

  it('records its grants before anything is created', async () => {
    const shop = new Project();
    shop.garden.put(quota({ nodes: 4 }));
    let recorded: unknown;
    shop.garden.onChange(SHOOTS, () => {
      recorded ??= shop.clusters.get('shop/a')?.status?.admitted?.pools;
    });
    shop.ask('a', 3);
    await shop.settle();
    expect(recorded).toEqual([{ name: 'default', machineType: 'small', count: 3 }]);
  });

  it('does not write a thousand waiting clusters when one that they do not fit for is deleted', async () => {
    const shop = await project({ nodes: 4 }, ['a', 3], ['b', 2], ['c', 4], ['d', 5]);
    const [c, d] = [shop.clusters.get('shop/c'), shop.clusters.get('shop/d')];
    shop.remove('a');
    await shop.settle();
    expect(['b', 'c', 'd'].map(shop.accepted)).toEqual(['Accepted', 'QuotaExceeded', 'QuotaExceeded']);
    expect([shop.clusters.get('shop/c'), shop.clusters.get('shop/d')]).toEqual([c, d]);
    expect(shop.quotas.get('shop/team')?.status?.summary).toBe('nodes 2/4');
  });

  it('causes no write while nothing changes', async () => {
    const shop = await project({ nodes: 4 }, ['a', 3], ['b', 3]);
    const before = shop.clusters.list();
    const quotaBefore = shop.quotas.list();
    shop.quotaQueue.add('shop/team');
    for (const { metadata } of before) shop.queue.add(`shop/${metadata.name}`);
    await shop.settle();
    expect(shop.clusters.list().every((cluster, index) => cluster === before[index])).toBe(true);
    expect(shop.quotas.list()[0]).toBe(quotaBefore[0]);
  });

  it('is never exceeded by any simultaneous requests, with the operator killed at any moment', async () => {
    for (let seed = 1; seed <= 25; seed++) {
      const random = seeded(seed);
      const limit = 6 + Math.floor(random() * 10);
      const shop = new Project();
      shop.garden.put(quota({ nodes: limit }));
      const names = ['a', 'b', 'c', 'd', 'e', 'f'];
      for (let step = 0; step < 25; step++) {
        for (const name of names.filter(() => random() < 0.5)) {
          if (random() < 0.2) shop.remove(name);
          else shop.ask(name, Math.floor(random() * 8), Math.floor(random() * 3));
        }
        // The process dies in the middle of its writes; the next one knows only what was written.
        shop.killed = () => random() < 0.15;
        const underWay = [...shop.queue].map((key) => reconcileWorkerCluster(shop.deps, key, NEVER).catch(() => {}));
        shop.ask(pick(random, names), Math.floor(random() * 8));
        await Promise.all([
          ...underWay,
          ...[...shop.queue].map((key) => reconcileWorkerCluster(shop.deps, key, NEVER).catch(() => {})),
        ]);
        const dead = pick(random, [true, false]);
        shop.killed = () => false;
        if (dead) {
          shop.granted = new Map();
          for (const cluster of shop.clusters.list()) shop.queue.add(keyOf(cluster));
        }
        if (shop.nodesMade() > limit) expect.fail(`seed ${seed}, step ${step}: ${shop.nodesMade()} of ${limit} made`);
        await shop.settle();
        if (shop.nodesMade() > limit || shop.used.nodes > limit)
          expect.fail(`seed ${seed}, step ${step}: ${shop.nodesMade()} made, ${shop.used.nodes} used of ${limit}`);
      }
    }
  });
});

describe('the status of a quota', () => {
  const claimant = (name: string, held: ClusterSize) => ({
    key: `shop/${name}`,
    createdAt: '2026-11-21T00:00:00Z',
    profile: profile(),
    held,
    asked: undefined,
  });
  const two = [claimant('a', size('here', 'Managed', 'small*3')), claimant('b', size('here', 'Hosted', 'gpu*1'))];

  it('reports usage of limited metrics', () => {
    const status = quotaStatus(quota({ nodes: 10, memory: '64Gi', 'cost.hourly': '2' }), two, NOW);
    expect(status.used).toEqual({ nodes: '4', memory: '40Gi', 'cost.hourly': '1.400001' });
    expect(status.summary).toBe('nodes 4/10, memory 40Gi/64Gi, cost.hourly 1.400001/2 USD');
    expect(findCondition(status.conditions, 'WithinLimits')?.status).toBe('True');
  });

  it('reports usage above a lowered limit', () => {
    const status = quotaStatus(quota({ nodes: 3, clusters: 2 }), two, NOW);
    expect(findCondition(status.conditions, 'WithinLimits')?.message).toContain('above the limit: nodes 4/3;');
  });

  it('reports fields without effect, and what cannot be counted', () => {
    const gardener = quota({ cpu: '200', 'storage.standard': '8000Gi' }, { clusterLifetimeDays: 14 });
    expect(findCondition(quotaStatus(gardener, [], NOW).conditions, 'AllFieldsActedOn')?.message).toBe(
      'stored without effect: metrics["storage.standard"], clusterLifetimeDays',
    );
    const unknown = quotaStatus(quota({ 'cost.hourly': 1 }), [claimant('c', size('here', 'Hosted', 'free*1'))], NOW);
    expect(findCondition(unknown.conditions, 'EverythingCounted')?.message).toContain('shop/c: pool p0');
    const secret = quotaStatus(quota({ nodes: 1 }, { scope: { kind: 'Secret' } }), two, NOW);
    expect(findCondition(secret.conditions, 'Ready')).toMatchObject({ status: 'False', reason: 'ScopeNotActedOn' });
    expect(secret).not.toHaveProperty('used');
  });

  it('is not written when usage is unchanged', () => {
    const first = quota({ nodes: 3, 'cost.hourly': 1 });
    const status = quotaStatus(first, two, NOW);
    expect(quotaStatus({ ...first, status }, two, new Date(+NOW + 60_000))).toEqual(status);
  });
});
