import { expect, it } from 'vitest';
import { FINALIZER } from '../../../operator/api/group.ts';
import type { Seed } from '../../../operator/api/seed.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import { ShootController } from '../../../operator/controllers/shoot/controller.ts';
import type { ShootDependencies } from '../../../operator/controllers/shoot/dependencies.ts';
import { SeedShares } from '../../../operator/controllers/shoot/seeds/seed-shares.ts';
import { runController } from '../../../operator/kube/controller.ts';
import { silent } from '../../../operator/kube/log.ts';
import { keyOf } from '../../../operator/kube/resources.ts';
import { WorkQueue } from '../../../operator/kube/workqueue.ts';
import { providerNamed } from '../../../providers/index.ts';
import { buildSeed, buildShoot } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { profile } from '../providers/fixtures.ts';

const WORKERS = 64;
const OF_DEAD = 300;

const seed = (name: string) => buildSeed({ metadata: { name, finalizers: [FINALIZER] } });
const shoot = (name: string, seedName: string) =>
  buildShoot({
    metadata: { name, namespace: 'team', uid: name, finalizers: [FINALIZER] },
    spec: { cloudProfile: { name: 'test' }, region: 'north', provider: { type: 'test', workers: [] }, kubernetes: {} },
    status: { seedName },
  });

it('a seed that does not answer, with 300 shoots, leaves workers for shoots of another seed', async () => {
  const seeds = new Map(['dead', 'sound'].map((name) => [name, seed(name)]));
  const shoots = new Map(
    [...Array.from({ length: OF_DEAD }, (_, i) => shoot(`d${i}`, 'dead')), shoot('one', 'sound')].map((one) => [
      keyOf(one),
      one,
    ]),
  );
  const opened = Promise.withResolvers<void>();
  let waiting = 0;
  const deps = partOf<ShootDependencies>({
    workers: WORKERS,
    garden: { apply: async (object: object) => object },
    gardenID: 'garden',
    seeds: { get: (name: string) => seeds.get(name), list: () => [...seeds.values()] },
    shoots: { get: (key: string) => shoots.get(key), list: () => [...shoots.values()], absorb: () => {} },
    profiles: { get: () => profile },
    registry: {
      all: () => [],
      open: async ({ metadata }: Seed, signal: AbortSignal) => {
        if (metadata.name === 'sound') opened.resolve();
        else waiting++;
        // Both hang: what counts is who is asked at all.
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
      },
    },
    holds: () => [],
    log: silent,
    now: () => new Date('2026-11-22T12:00:00Z'),
    provider: () => providerNamed('simulated'),
    namesAccount: () => false,
    recordEvent: () => {},
  });
  const shootController = new ShootController(deps);
  const queue = new WorkQueue();
  for (const key of shoots.keys()) queue.add(key);
  const controller = runController({
    name: 'shoot',
    queue,
    concurrency: WORKERS,
    reconcile: (key, stop) => shootController.reconcile(key, stop),
  });
  await opened.promise;
  expect(waiting).toBe(WORKERS / 2);
  await controller.stop(1);
});

it('many shoots that come at once to a new seed hold it by one request', async () => {
  const seeds = new Map<string, Seed>([['new', { ...seed('new'), metadata: { name: 'new', resourceVersion: '1' } }]]);
  const shoots = new Map(Array.from({ length: 20 }, (_, i) => shoot(`n${i}`, 'new')).map((one) => [keyOf(one), one]));
  let patches = 0;
  let opened = 0;
  const all = Promise.withResolvers<void>();
  const deps = partOf<ShootDependencies>({
    workers: WORKERS,
    garden: {
      mergePatch: async (_: unknown, name: string) => {
        patches++;
        // As long as a server takes to answer.
        await new Promise(setImmediate);
        return seed(name);
      },
    },
    seeds: {
      get: (name: string) => seeds.get(name),
      list: () => [...seeds.values()],
      absorb: (one: Seed) => void seeds.set(one.metadata.name, one),
    },
    shoots: { get: (key: string) => shoots.get(key), list: () => [...shoots.values()] },
    profiles: { get: () => profile },
    registry: {
      open: async (_: Seed, signal: AbortSignal) => {
        if (++opened === shoots.size) all.resolve();
        await new Promise((__, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
      },
    },
    holds: () => [],
    log: silent,
    now: () => new Date('2026-11-22T12:00:00Z'),
    provider: () => providerNamed('simulated'),
    namesAccount: () => false,
  });
  const stop = new AbortController();
  const controller = new ShootController(deps);
  const looks = [...shoots.keys()].map((key) => controller.reconcile(key, stop.signal));
  await all.promise;
  stop.abort(new Error('over'));
  await Promise.allSettled(looks);
  expect(patches).toBe(1);
});

it('a single seed may use all workers, and returns them', () => {
  let seeds = 1;
  const shares = new SeedShares(64, () => seeds);
  const taken = Array.from({ length: 64 }, () => shares.enter('only'));
  expect(taken.every(Boolean)).toBe(true);
  expect(shares.enter('only')).toBeUndefined();
  seeds = 2;
  expect(shares.enter('other')).toBeDefined();
  for (const leave of taken) leave!();
  expect(shares.enter('only')).toBeDefined();
});

it("a cluster waits for its seed's first check without an error", async () => {
  const fresh = partOf<Seed>({ ...seed('new'), spec: { provider: { type: 'test' }, networks: {} } });
  const one = shoot('one', 'new');
  delete one.status;
  const events: string[] = [];
  const written: Shoot[] = [];
  const deps = partOf<ShootDependencies>({
    workers: WORKERS,
    garden: {
      apply: async (object: Shoot) => {
        written.push(object);
        return object;
      },
    },
    seeds: { get: () => fresh, list: () => [fresh] },
    shoots: { get: () => one, list: () => [one], absorb: () => {} },
    profiles: { get: () => profile },
    holds: () => [],
    log: silent,
    now: () => new Date('2026-11-22T12:00:00Z'),
    provider: () => providerNamed('simulated'),
    namesAccount: () => false,
    recordEvent: (_: Shoot, __: string, reason: string) => void events.push(reason),
  });
  const again = await new ShootController(deps).reconcile(keyOf(one), new AbortController().signal);
  // Nothing is tried again by the clock: what is said of the seed queues the shoot.
  expect({ again, events }).toEqual({ again: undefined, events: [] });
  expect(written.map(({ status }) => status)).toMatchObject([
    {
      conditions: [{ type: 'Ready', status: 'False', reason: 'WaitingForSeed' }],
      lastErrors: [],
      lastOperation: { state: 'Processing', description: 'Waiting for the first answer of seed new' },
    },
  ]);
});
