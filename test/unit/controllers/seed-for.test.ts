import { expect, it } from 'vitest';
import type { Seed } from '../../../operator/api/seed.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import type { ShootDependencies } from '../../../operator/controllers/shoot/dependencies.ts';
import { seedFor } from '../../../operator/controllers/shoot/seeds/seed-for.ts';
import { keyOf } from '../../../operator/kube/resources.ts';
import { buildSeed, buildShoot } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { profile } from '../providers/fixtures.ts';

const seed = (name: string, shoots: number) =>
  buildSeed({
    metadata: { name },
    spec: {
      provider: { type: 'test', region: 'north' },
      networks: { pods: '10.1.0.0/16', services: '10.2.0.0/16', nodes: '10.3.0.0/16' },
    },
    status: {
      conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }],
      allocatable: { shoots },
    },
  });

const shoot = (name: string, more: { seedName?: string; status?: Shoot['status']; deletionTimestamp?: string } = {}) =>
  buildShoot({
    metadata: { name, namespace: 'team', ...(more.deletionTimestamp && { deletionTimestamp: more.deletionTimestamp }) },
    spec: {
      cloudProfile: { name: 'test' },
      region: 'north',
      provider: { type: 'test' },
      networking: { pods: '100.96.0.0/11', services: '100.64.0.0/13' },
      ...(more.seedName && { seedName: more.seedName }),
    },
    ...(more.status && { status: more.status }),
  });

/** Where shoots are placed that come one after the other, none of which has a status yet. */
function placing(seeds: Seed[], shoots: Shoot[]) {
  const events: string[] = [];
  const byName = new Map(seeds.map((one) => [one.metadata.name, one]));
  const deps = partOf<ShootDependencies>({
    seeds: { get: (name: string) => byName.get(name), list: () => seeds },
    profiles: { get: () => profile },
    shoots: { list: () => shoots },
    provider: () => undefined,
    namesAccount: () => false,
    recordEvent: (object: Shoot, _: unknown, reason: string) => void events.push(`${keyOf(object)} ${reason}`),
  });
  const chosen = new Map<string, string>();
  return { events, chosen, place: (one: Shoot) => seedFor(deps, one, chosen)?.metadata.name };
}

it('a seed counts recent choices: simultaneous shoots do not exceed its capacity', () => {
  const shoots = ['a', 'b', 'c', 'd'].map((name) => shoot(name));
  const { place } = placing([seed('one', 2), seed('two', 1)], shoots);
  expect(shoots.slice(0, 3).map(place).sort()).toEqual(['one', 'one', 'two']);
  expect(() => place(shoots[3]!)).toThrow(/no seed can host team\/d/);
  expect(() => place(shoots[3]!)).toThrow(expect.objectContaining({ advice: expect.stringMatching(/^Make a Seed/) }));
});

it('a seed does not count a shoot against itself at a second choice', () => {
  const one = shoot('a');
  const { place } = placing([seed('one', 1)], [one]);
  expect([place(one), place(one)]).toEqual(['one', 'one']);
});

it('a seed gets back the place of a forgotten shoot', () => {
  const shoots = ['a', 'b'].map((name) => shoot(name));
  const { place, chosen } = placing([seed('one', 1)], shoots);
  place(shoots[0]!);
  expect(() => place(shoots[1]!)).toThrow(/no seed can host/);
  chosen.delete('team/a');
  expect(place(shoots[1]!)).toBe('one');
});

it('a seed counts shoots that name it themselves', () => {
  const pinned = shoot('a', { seedName: 'one' });
  const { place } = placing([seed('one', 1)], [pinned, shoot('b')]);
  expect(() => place(shoot('b'))).toThrow(/no seed can host/);
});

it.each<[string, (one: Seed) => void, RegExp]>([
  ['a taint', (one) => (one.spec.taints = [{ key: 'dedicated' }]), /has the taint dedicated/],
  ['no room', (one) => (one.status!.allocatable = { shoots: 0 }), /hosts 0 of 0 shoots/],
  [
    'an emergency stop',
    (one) => (one.metadata.annotations = { 'shoot.gardener.cloud/emergency-stop-reconciliations': 'true' }),
    /is stopped by its annotation/,
  ],
])('puts no shoot on a seed with %s, though it names the seed', (_, change, why) => {
  const named = seed('one', 5);
  change(named);
  expect(() => placing([named, seed('two', 5)], []).place(shoot('a', { seedName: 'one' }))).toThrow(why);
});

it.each<[string, 'new' | 'down', string | undefined, RegExp]>([
  [
    'waits for the first answer of a seed that was just registered',
    'new',
    undefined,
    /^Waiting for the first answer of seed one$/,
  ],
  [
    'says of a seed that does not answer that it is not Ready, and asks nobody to create one',
    'down',
    'ERR_RETRYABLE_INFRA_DEPENDENCIES',
    /one is not Ready/,
  ],
])('%s', (_, which, code, message) => {
  const only = seed('one', 5);
  only.status!.conditions![0]!.status = 'False';
  if (which === 'new') delete only.status!.conditions;
  const { place } = placing([only], []);
  expect(() => place(shoot('a'))).toThrow(
    expect.objectContaining({ message: expect.stringMatching(message), ...(code && { code }) }),
  );
});

it('a seed is requested where no existing one could ever host the shoot, reachable or not', () => {
  const other = seed('one', 0);
  delete other.status!.conditions;
  expect(() => placing([other], []).place(shoot('a'))).toThrow(
    expect.objectContaining({ code: 'ERR_RETRYABLE_CONFIGURATION_PROBLEM' }),
  );
});

it('a shoot uses the seed that its spec names, even when the seed has no room', () => {
  const named = seed('one', 0);
  const { place } = placing([named], []);
  expect(place(shoot('a', { seedName: 'one', status: { seedName: 'one' } as Shoot['status'] }))).toBe('one');
  expect(place(shoot('b', { seedName: 'one', deletionTimestamp: '2026-01-01T00:00:00Z' }))).toBe('one');
});

it('a shoot keeps the seed in its status, and none is chosen for a deleted one', () => {
  const { place, events } = placing([seed('one', 1), seed('two', 1)], []);
  expect(place(shoot('a', { status: { seedName: 'two' } as Shoot['status'] }))).toBe('two');
  expect(place(shoot('b', { deletionTimestamp: '2026-01-01T00:00:00Z' }))).toBeUndefined();
  expect(events).toEqual([]);
});
