import { describe, expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import { FINALIZER } from '../../../operator/api/group.ts';
import type { Seed } from '../../../operator/api/seed.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { type Hold, holdsFrom, judgeDeletion, sleepHoldsFrom } from '../../../operator/clusters/deletion-gate.ts';
import { OpenClusters } from '../../../operator/clusters/open-clusters.ts';
import type { ManagedFacts, ManagedWish } from '../../../operator/controllers/managed/facts.ts';
import { isToBeRemoved, wishSignature } from '../../../operator/controllers/managed/wish.ts';
import { clusterOfSeed, seedHolds } from '../../../operator/controllers/seed/seed-holds.ts';
import { planWorkerCluster } from '../../../operator/controllers/workercluster/plan.ts';
import type { WorkerClusterView } from '../../../operator/controllers/workercluster/view.ts';
import { providerNamed } from '../../../providers/index.ts';
import { buildCloudProfile, buildSeed, buildShoot, buildWorkerCluster } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { managedOnly } from '../../kit/managed-only.ts';
import { MemoryCloud } from '../../kit/memory-cloud.ts';

const NOW = new Date('2026-11-22T12:00:00Z');
const minutes = (count: number) => new Date(+NOW + count * 60_000);
const hold: Hold = { by: 'Seed on-demo', advice: 'delete Seed on-demo' };

const profile = buildCloudProfile({
  metadata: { name: 'aws' },
  spec: { type: 'aws', kubernetes: { versions: [{ version: '1.36.3' }] }, machineTypes: [], regions: [] },
});

const dying = (spec: object = {}, status?: object): WorkerCluster =>
  buildWorkerCluster({
    metadata: {
      name: 'demo',
      namespace: 'shop',
      uid: 'u',
      generation: 2,
      finalizers: [FINALIZER],
      deletionTimestamp: NOW.toISOString(),
    },
    spec: { cloudProvider: 'aws', controlPlaneNodes: 1, dataPlaneNodes: 2, ...spec },
    status,
  });

const view = (more: Partial<WorkerClusterView>): WorkerClusterView => ({
  cluster: dying(),
  profile,
  profileNames: ['aws'],
  provider: providerNamed('simulated'),
  shoot: undefined,
  ...more,
});
const shoot = (metadata: object = {}, workers: object[] = []): Shoot =>
  buildShoot({
    metadata: { name: 'demo', namespace: 'shop', uid: 's', ...metadata },
    spec: { provider: { type: 'aws', workers } },
    status: {},
  });
const deleting = (plan: ReturnType<typeof planWorkerCluster>) => findCondition(plan.status.conditions, 'Deleting');

describe('a held cluster is not deleted', () => {
  it.each([
    ['Hosted', shoot()],
    ['SelfManaged', shoot({}, [{ name: 'control-plane', controlPlane: {} }])],
  ])('mode %s: its Shoot stays, and the condition says who holds it and what to do', (mode, made) => {
    const cluster = dying({ mode });
    const held = planWorkerCluster(view({ cluster, shoot: made, holds: [hold] }), NOW);
    expect(held.deleteShoot).toBeUndefined();
    expect(held.finalizer).toBeUndefined();
    expect(deleting(held)).toMatchObject({
      status: 'True',
      reason: 'Held',
      message: 'Seed on-demo holds the cluster: delete Seed on-demo',
    });
    expect(planWorkerCluster(view({ cluster, shoot: made, holds: [] }), NOW).deleteShoot).toBe(true);
  });

  describe('mode Managed', () => {
    const provider = managedOnly('aws', new MemoryCloud().managed());
    const cluster = dying({ mode: 'Managed', credentialsRef: { name: 'cloud' } }, { mode: 'Managed' });
    const facts = partOf<ManagedFacts>({
      seen: true,
      exists: true,
      gone: false,
      errors: [],
      operation: undefined,
    });
    const planned = (more: Partial<WorkerClusterView>) =>
      planWorkerCluster(view({ cluster, provider, managed: facts, ...more }), NOW);
    const wish = (plan: ReturnType<typeof planWorkerCluster>): ManagedWish => ({
      cluster,
      place: 0,
      profile,
      clouds: provider.managed,
      ...plan.managed!,
    });

    it('keeps its cloud resources until it is released; then they are deleted', () => {
      const held = planned({ holds: [hold] });
      expect(deleting(held)?.reason).toBe('Held');
      expect(isToBeRemoved(wish(held))).toBe(false);
      const freed = planned({ holds: [] });
      expect(isToBeRemoved(wish(freed))).toBe(true);
      // Or the controller of managed clusters would never hear of it.
      expect(wishSignature(wish(freed))).not.toBe(wishSignature(wish(held)));
    });

    it('stays asleep without nodes', () => {
      const schedules = [{ start: '0 8 * * *', end: '0 20 * * *' }];
      const asleep = dying({ ...cluster.spec, hibernation: { enabled: true, schedules } }, { mode: 'Managed' });
      const held = planned({ cluster: asleep, holds: [hold] });
      expect(held.managed).toEqual({ desired: undefined, held: true });
    });

    it('ignores holds that began after its deletion', () => {
      const operation = {
        type: 'Delete',
        state: 'Processing',
        progress: 10,
        description: '',
        lastUpdateTime: '',
      } as const;
      const late = planned({ managed: { ...facts, operation }, holds: [hold] });
      expect(isToBeRemoved(wish(late))).toBe(true);
    });
  });

  it('is deleted when nothing is left of it or was ever created', () => {
    expect(planWorkerCluster(view({ holds: [hold] }), NOW).finalizer).toBe('remove');
  });

  it('waits no longer than the hold', () => {
    const made = shoot();
    const until = minutes(10);
    const held = planWorkerCluster(view({ shoot: made, holds: [{ ...hold, until }] }), NOW);
    expect(held).toMatchObject({ next: until });
    expect(held.deleteShoot).toBeUndefined();
    expect(planWorkerCluster(view({ shoot: made, holds: [{ ...hold, until }] }), until).deleteShoot).toBe(true);
  });
});

describe('the holder of a cluster', () => {
  const seed = (name: string, kubeconfigRef?: object): Seed =>
    buildSeed({ metadata: { name }, spec: { kubeconfigRef } });

  it('is the Seed that it was made into', () => {
    const seeds = [
      seed('garden'),
      seed('on-demo', { name: 'demo-kubeconfig', namespace: 'shop' }),
      seed('elsewhere', { name: 'demo-kubeconfig', namespace: 'other' }),
      seed('foreign', { name: 'a-secret-of-mine', namespace: 'shop' }),
    ];
    const holds = holdsFrom(seedHolds({ list: () => seeds }), () => []);
    expect(holds('shop', 'demo').map(({ by }) => by)).toEqual(['Seed on-demo']);
    expect(holds('shop', 'a-secret-of-mine')).toEqual([]);
    expect(seeds.map(clusterOfSeed)).toEqual([undefined, 'shop/demo', 'other/demo', undefined]);
    // Control planes in it would end with its nodes, also if these only went for a night.
    const awake = sleepHoldsFrom(holds, () => [{ by: 'Membership one', advice: 'it moves work', until: NOW }]);
    expect(awake('shop', 'demo', NOW).map(({ by }) => by)).toEqual(['Seed on-demo', 'Membership one']);
  });

  it('is named, and counted where there are many', () => {
    const many = ['a', 'b', 'c', 'd', 'e'].map((name) => ({ by: `Seed ${name}`, advice: 'delete it' }));
    const { message } = judgeDeletion(many, false, NOW);
    expect(message).toContain('Seed c holds the cluster');
    expect(message).not.toContain('Seed d');
    expect(message).toMatch(/; and 2 more$/);
  });
});

describe('the open clusters', () => {
  const connection = () => {
    const listeners: (() => void)[] = [];
    return {
      cluster: { onStop: (listener: () => void) => listeners.push(listener) } as never,
      stop() {
        for (const listener of listeners.splice(0)) listener();
      },
    };
  };

  it("are those not closed; a replaced connection's end removes nothing", () => {
    const open = new OpenClusters();
    const told: string[] = [];
    open.onChange((key) => told.push(key));
    const [first, second] = [connection(), connection()];
    open.add('shop/demo', first.cluster);
    open.add('shop/demo', second.cluster);
    first.stop();
    expect(open.get('shop/demo')).toBe(second.cluster);
    second.stop();
    expect(open.get('shop/demo')).toBeUndefined();
    expect(told).toEqual(['shop/demo', 'shop/demo', 'shop/demo']);
  });
});
