import { expect, it } from 'vitest';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { DepletedOffers } from '../../../operator/capacity/depleted-offers.ts';
import {
  reconcileWorkerCluster,
  type WorkerClusterDependencies,
} from '../../../operator/controllers/workercluster/controller.ts';
import { buildWorkerCluster } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';

const KEY = 'shop/brief';

/** A garden that has one cluster, and what is done to it. */
function gardenWith(spec: object) {
  let cluster = buildWorkerCluster({
    metadata: {
      name: 'brief',
      namespace: 'shop',
      uid: 'u-1',
      generation: 1,
      creationTimestamp: '2026-11-21T00:00:00Z',
      finalizers: ['multi-cluster.demo.io/coppice'],
    },
    spec: { cloudProvider: 'aws', controlPlaneNodes: 1, dataPlaneNodes: 1, ...spec },
  });
  const events: string[] = [];
  const deleted: unknown[] = [];
  let now = new Date('2026-11-21T00:00:00Z');
  const none = { get: () => undefined, list: () => [], byIndex: () => [] };
  const deps = partOf<WorkerClusterDependencies>({
    garden: {
      apply: async ({ status }: WorkerCluster) => {
        cluster = { ...cluster, status: status! };
        return cluster;
      },
      delete: async (_: unknown, name: string, namespace: string, { preconditions }: { preconditions: object }) =>
        void deleted.push([name, namespace, preconditions]),
    },
    clusters: { ...none, get: () => cluster, absorb: () => {} },
    profiles: none,
    shoots: none,
    quotas: none,
    granted: new Map(),
    capacity: new DepletedOffers(() => now),
    now: () => now,
    provider: () => undefined,
    recordEvent: (_: unknown, type: string, reason: string) => events.push(`${type} ${reason}`),
  });
  return {
    events,
    deleted,
    expiring: () => cluster.status?.conditions?.find(({ type }) => type === 'Expiring')?.reason,
    status: () => cluster.status,
    prolong: (ttl: string) => {
      cluster = { ...cluster, spec: { ...cluster.spec, ttl } };
    },
    /** The clock steps, with nobody looking meanwhile. */
    step(hours: number) {
      now = new Date(+now + hours * 3600_000);
    },
    /** Lets time pass, to the moment that the controller asked for. @returns how long that was, in minutes. */
    async next(): Promise<number | undefined> {
      const asked = await reconcileWorkerCluster(deps, KEY, new AbortController().signal);
      if (asked) now = new Date(+now + asked.requeueAfterMs);
      return asked && Math.round(asked.requeueAfterMs / 60_000);
    },
  };
}

it('a cluster with a ttl is reconciled at its warning and its end, and not in between', async () => {
  const garden = gardenWith({ ttl: '8h' });
  expect(await garden.next()).toBe(7 * 60 + 12);
  expect(garden.status()).toMatchObject({ expiresAt: '2026-11-21T08:00:00Z' });
  expect(garden.expiring()).toBeUndefined();
  expect(await garden.next()).toBe(48);
  expect(garden.expiring()).toBe('EndIsNear');
  expect(garden.deleted).toEqual([]);
  expect(await garden.next()).toBeUndefined();
  expect(garden.deleted).toEqual([['brief', 'shop', { uid: 'u-1' }]]);
  expect(garden.events.filter((event) => /EndIsNear|Over/.test(event))).toEqual(['Warning EndIsNear', 'Warning Over']);
});

it('a prolonged ttl keeps the cluster', async () => {
  const garden = gardenWith({ ttl: '8h' });
  await garden.next();
  await garden.next();
  garden.prolong('24h');
  expect(await garden.next()).toBe(15 * 60);
  expect(garden.expiring()).toBeUndefined();
  expect(garden.deleted).toEqual([]);
});

it('a clock that jumps forward deletes no cluster without its warning', async () => {
  const garden = gardenWith({ ttl: '8h' });
  await garden.next();
  garden.step(24 * 30);
  expect(await garden.next()).toBe(24);
  expect([garden.expiring(), garden.deleted]).toEqual(['EndIsNear', []]);
  garden.step(-24 * 30 - 8);
  expect(await garden.next()).toBeGreaterThan(24);
  expect([garden.expiring(), garden.deleted]).toEqual([undefined, []]);
});

it('a cluster is deleted in time although a fast clock warned earlier', async () => {
  const garden = gardenWith({ ttl: '8h' });
  garden.step(24 * 30);
  await garden.next();
  garden.step(-24 * 30 + 8);
  expect(await garden.next()).toBe(24);
  expect(garden.deleted).toEqual([]);
  await garden.next();
  expect(garden.deleted).toHaveLength(1);
});

it('a cluster without a ttl is not requeued', async () => {
  expect(await gardenWith({}).next()).toBeUndefined();
});
