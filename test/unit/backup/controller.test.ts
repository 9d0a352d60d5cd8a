import { beforeEach, describe, expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import { configurationProblem } from '../../../operator/api/errors.ts';
import { ANNOTATIONS } from '../../../operator/api/group.ts';
import type { Seed } from '../../../operator/api/seed.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import { BackupController } from '../../../operator/controllers/backup/controller.ts';
import { backupsConcern, seedConcernsBackups } from '../../../operator/controllers/backup/news.ts';
import { snapshotName } from '../../../operator/controllers/backup/plan.ts';
import { Spool } from '../../../operator/controllers/backup/take-snapshot.ts';
import { silent } from '../../../operator/kube/log.ts';
import { buildShoot } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { BACKUP, MemoryBuckets, NOW, seedWith, sourceOf } from './memory-bucket.ts';

type BackupDependencies = ConstructorParameters<typeof BackupController>[0];

const HOUR = 3600_000;
const { signal } = new AbortController();
const KEY = 'shop/blue';
const PREFIX = 'shoot--shop--blue/u-1/';
const READY = [{ type: 'BackupBucketsReady', status: 'True' as const, lastTransitionTime: '2026-11-21T11:00:00Z' }];

const shootWith = (change: { metadata?: object; status?: object } = {}): Shoot =>
  buildShoot({
    metadata: { name: 'blue', namespace: 'shop', uid: 'u-1', generation: 1, ...change.metadata },
    status: { seedName: 'blue', controlPlane: { desired: 1, ready: 1 }, ...change.status },
  });

describe('the backup controller', () => {
  let buckets: MemoryBuckets;
  let source: ReturnType<typeof sourceOf>;
  let shoot: Shoot | undefined;
  let seed: Seed;
  let told: string[];
  let events: string[];
  /** undefined: there is none. */
  let etcdReady: number | undefined;
  let controller: BackupController;

  const reconcile = () => controller.reconcile(KEY, signal);
  const said = () => controller.condition(shoot!);
  const put = (...hours: number[]) => {
    for (const hour of hours)
      buckets.objects.set(`${PREFIX}${snapshotName(hour + 100, new Date(NOW + hour * HOUR))}`, Buffer.alloc(512));
  };

  beforeEach(() => {
    buckets = new MemoryBuckets();
    source = sourceOf(buckets);
    [shoot, seed] = [shootWith(), seedWith({ ...BACKUP, maxBackupsLimitBasedGC: 2 }, READY)];
    [told, events, etcdReady] = [[], [], 1];
    controller = new BackupController(
      partOf<BackupDependencies>({
        source,
        shoots: { get: () => shoot },
        seeds: { get: () => seed },
        registry: {
          get: () => ({
            statefulSets: {
              get: () => (etcdReady === undefined ? undefined : { status: { readyReplicas: etcdReady } }),
            },
            secrets: { get: () => undefined },
            services: { get: () => undefined },
          }),
        },
        spool: new Spool(undefined),
        log: silent,
        recordEvent: (_object: unknown, _type: string, reason: string) => events.push(reason),
        told: (key: string) => told.push(key),
      }),
    );
  });

  it('requests nothing without backups', async () => {
    seed = seedWith(undefined);
    expect(await reconcile()).toEqual({});
    expect([buckets.asked, told, said()]).toEqual([[], [], undefined]);
  });

  it('reports the last snapshot once, and requeues when the next is due', async () => {
    put(-5, -1);
    expect(await reconcile()).toEqual({ requeueAfterMs: 23 * HOUR });
    expect(said()).toMatchObject({ type: 'BackupReady', status: 'True' });
    expect(said()?.message).toContain('2026-11-21T11:00:00Z');
    expect(told).toEqual([KEY]);
    // Its status says so by now: nothing is to be told again, and nothing asked.
    shoot = shootWith({ status: { conditions: [{ ...said(), lastTransitionTime: '' }] } });
    const asked = buckets.asked.length;
    await reconcile();
    expect([told, buckets.asked.length]).toEqual([[KEY], asked]);
  });

  it('deletes the oldest snapshots beyond the limit', async () => {
    put(-5, -3, -2, -1);
    await reconcile();
    expect([...buckets.objects.keys()].map((key) => Number(key.split('-').at(-1)))).toEqual([
      (NOW - 2 * HOUR) / 1000,
      (NOW - HOUR) / 1000,
    ]);
  });

  it('ignores an etcd that does not exist, or whose cluster is still to be created', async () => {
    etcdReady = undefined;
    expect(await reconcile()).toEqual({});
    // Nothing is sure to tell when it is back.
    etcdReady = 0;
    expect(await reconcile()).toEqual({ requeueAfterMs: 60_000 });
    etcdReady = 1;
    shoot = shootWith({ status: { lastOperation: { type: 'Create', state: 'Processing' } } });
    expect(await reconcile()).toEqual({});
    shoot = shootWith({ metadata: { annotations: { [ANNOTATIONS.ignore]: 'true' } } });
    expect(await reconcile()).toEqual({});
    expect(buckets.asked).toEqual([]);
  });

  it('reports a cluster as not backed up when its last snapshot is old', async () => {
    put(-5);
    await reconcile();
    expect(said()).toMatchObject({ status: 'True' });
    etcdReady = 0;
    source.now = () => new Date(NOW + 50 * HOUR);
    await reconcile();
    expect(said()).toMatchObject({ status: 'False', reason: 'SnapshotOverdue' });
    expect(told).toEqual([KEY, KEY]);
  });

  it('requires no snapshot of a sleeping cluster, in which nothing changes', async () => {
    const lastOperation = { type: 'Hibernate', state: 'Succeeded' };
    const spec = { hibernation: { enabled: true }, provider: { workers: [] } };
    shoot = { ...shootWith({ status: { lastOperation } }), spec: spec as unknown as Shoot['spec'] };
    put(-5);
    await reconcile();
    etcdReady = 0;
    source.now = () => new Date(NOW + 50 * HOUR);
    await reconcile();
    expect(said()).toMatchObject({ status: 'True' });
  });

  it('reports the last snapshot of a sleeping cluster after a restart of the operator', async () => {
    const spec = { hibernation: { enabled: true }, provider: { workers: [] } };
    const status = { lastOperation: { type: 'Hibernate', state: 'Succeeded' } };
    shoot = { ...shootWith({ status }), spec: spec as unknown as Shoot['spec'] };
    etcdReady = 0;
    put(-50);
    expect(await reconcile()).toEqual({ requeueAfterMs: 60_000 });
    expect(said()).toMatchObject({ status: 'True', reason: 'SnapshotTaken' });
    const asked = buckets.asked.length;
    await reconcile();
    expect(buckets.asked).toHaveLength(asked);
  });

  it('takes a last snapshot before a cluster sleeps, where its seed has a bucket', async () => {
    // There is no etcd here: that it is asked is all that can be seen.
    await expect(controller.takeLast(shoot!, signal)).rejects.toThrow('etcd');
    buckets.broken = configurationProblem('the bucket says no');
    await expect(controller.takeLast(shoot!, signal)).rejects.toThrow();
    seed = seedWith(undefined);
    await controller.takeLast(shoot!, signal);
  });

  it('reports a seed without bucket, and waits for it', async () => {
    seed = seedWith(BACKUP);
    expect(await reconcile()).toEqual({});
    expect(said()).toMatchObject({ status: 'False', message: expect.stringContaining('BackupBucketsReady') });
    expect(buckets.asked).toEqual([]);
  });

  it('reports why a snapshot is missing, with the error code and the last one', async () => {
    put(-30);
    await expect(reconcile()).rejects.toThrow();
    expect(said()).toMatchObject({
      status: 'False',
      reason: 'SnapshotFailed',
      codes: [expect.stringMatching(/^ERR_/)],
      message: expect.stringContaining('the last snapshot was taken at 2026-11-20T06:00:00Z'),
    });
    buckets.broken = configurationProblem('the bucket says no', 'Do this.');
    controller = Object.assign(controller);
    shoot = shootWith({ metadata: { uid: 'u-2' } });
    await expect(reconcile()).rejects.toThrow('the bucket says no');
    expect(said()).toMatchObject({ codes: ['ERR_CONFIGURATION_PROBLEM'], message: 'the bucket says no. Do this.' });
  });

  it('takes a requested snapshot however recent the last one is', async () => {
    put(-1);
    await reconcile();
    shoot = shootWith({ metadata: { annotations: { [ANNOTATIONS.backupRequestedAt]: '2026-11-21T12:00:00Z' } } });
    // There is no etcd here: that it is asked is all that can be seen.
    await expect(reconcile()).rejects.toThrow('etcd');
  });

  it('keeps the previous condition until it has looked itself', () => {
    const before = { type: 'BackupReady', status: 'True', reason: 'SnapshotTaken', message: 'long ago' };
    shoot = shootWith({ status: { conditions: [{ ...before, lastTransitionTime: '2026-11-20T00:00:00Z' }] } });
    expect(said()).toEqual(before);
  });

  it('deletes backups with their shoot', async () => {
    put(-1);
    await controller.retire(shoot!, signal);
    expect(buckets.objects.size).toBe(0);
  });

  it('does not block a deletion by a broken bucket, and reports where the backups are', async () => {
    put(-1);
    buckets.broken = configurationProblem('the bucket says no');
    await controller.retire(shoot!, signal);
    expect(events).toEqual(['BackupsLeft']);
  });

  describe('the backup controller reconciles on', () => {
    const seeds = { get: () => seed };
    const changed = (change: Parameters<typeof shootWith>[0], before: Parameters<typeof shootWith>[0] = {}) =>
      backupsConcern({ type: 'updated', object: shootWith(change), old: shootWith(before) }, seeds);
    it.each([
      ['a request', { metadata: { annotations: { [ANNOTATIONS.backupRequestedAt]: '2026-11-21T12:00:00Z' } } }, {}],
      ['a deletion', { metadata: { deletionTimestamp: '2026-11-21T12:00:00Z' } }, {}],
      ['an etcd that is up', {}, { status: { controlPlane: { desired: 1, ready: 0 } } }],
      ['a cluster that is made', {}, { status: { lastOperation: { type: 'Create', state: 'Processing' } } }],
    ])('%s', (_, now, before) => expect(changed(now, before)).toBe(true));
    it('no change of a status without etcd fields', () => {
      expect(changed({ status: { nodes: { desired: 3, current: 3, ready: 2 } } })).toBe(false);
    });
    it('no shoot of a seed without backups', () => {
      seed = seedWith(undefined);
      expect(backupsConcern({ type: 'added', object: shootWith() }, seeds)).toBe(false);
    });
    it('a seed whose bucket becomes ready, and no other change of it', () => {
      const [without, having] = [seedWith(BACKUP), seedWith(BACKUP, READY)];
      expect(seedConcernsBackups({ type: 'updated', object: having, old: without })).toBe(true);
      expect(seedConcernsBackups({ type: 'updated', object: having, old: having })).toBe(false);
      expect(findCondition(having.status?.conditions, 'BackupBucketsReady')).toBeDefined();
    });
  });
});
