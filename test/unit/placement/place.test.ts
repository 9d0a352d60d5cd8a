import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Seed } from '../../../operator/api/seed.ts';
import { shootSpec } from '../../../operator/api/shoot.ts';
import { FILTERS } from '../../../operator/placement/filters.ts';
import { placeShoot } from '../../../operator/placement/place.ts';
import { SCORES } from '../../../operator/placement/scores.ts';
import { buildCloudProfile, buildSeed, buildShoot } from '../../kit/builders/objects.ts';
import { tableRows } from '../../kit/pages.ts';

type PlacementInput = Parameters<typeof placeShoot>[0];

interface SeedOptions {
  region?: string;
  type?: string;
  zones?: string[];
  spec?: object;
  /** null: nobody has asked it yet. */
  ready?: boolean | null;
  limit?: number;
  metadata?: object;
}
const seed = (name: string, options: SeedOptions = {}) =>
  buildSeed({
    metadata: { name, ...options.metadata },
    spec: {
      provider: {
        type: options.type ?? 'aws',
        region: options.region ?? 'eu-central-1',
        zones: options.zones ?? ['a'],
      },
      networks: { pods: '10.1.0.0/16', services: '10.2.0.0/16', nodes: '10.3.0.0/16' },
      ...options.spec,
    },
    status: {
      conditions:
        options.ready === null
          ? []
          : [
              {
                type: 'Ready',
                status: options.ready === false ? 'False' : 'True',
                lastTransitionTime: '2026-01-01T00:00:00Z',
              },
            ],
      ...(options.limit === undefined ? {} : { allocatable: { shoots: options.limit } }),
    },
  });
const shoot = (spec: object = {}) =>
  buildShoot({
    metadata: { name: 's', namespace: 'default' },
    spec: shootSpec.parse({
      cloudProfile: { name: 'aws' },
      region: 'eu-central-1',
      provider: { type: 'aws' },
      networking: { pods: '100.96.0.0/11', services: '100.64.0.0/13' },
      ...spec,
    }),
  });
const profile = (spec: object = {}) =>
  buildCloudProfile({
    metadata: { name: 'aws' },
    spec: { type: 'aws', kubernetes: {}, machineTypes: [], regions: [], ...spec },
  });
const place = (seeds: Seed[], input: Partial<PlacementInput> = {}) =>
  placeShoot({ shoot: shoot(), profile: profile(), seeds, shootsPerSeed: {}, ...input });

describe('placement drops a seed', () => {
  const ha = { controlPlane: { highAvailability: { failureTolerance: { type: 'zone' } } } };
  test.each<[string, Seed, Partial<PlacementInput>, string]>([
    [
      'that is being deleted',
      seed('x', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }),
      {},
      '1 of 1 by deletion: x is being deleted',
    ],
    [
      'whose API servers machines in a cloud cannot reach',
      seed('x', { spec: { exposure: { type: 'ClusterIP' } } }),
      { outside: true },
      '1 of 1 by exposure: x exposes API servers by ClusterIP only, where machines in a cloud cannot reach them (spec.exposure.type LoadBalancer is needed)',
    ],
    [
      'that is not visible',
      seed('x', { spec: { settings: { scheduling: { visible: false } } } }),
      {},
      '1 of 1 by visible: x takes no shoots unless they name it (settings.scheduling.visible is false)',
    ],
    [
      'that is stopped',
      seed('x', { metadata: { annotations: { 'shoot.gardener.cloud/emergency-stop-reconciliations': 'true' } } }),
      {},
      '1 of 1 by emergencyStop: x is stopped by its annotation',
    ],
    ['that is not ready', seed('x', { ready: false }), {}, '1 of 1 by ready: x is not Ready'],
    [
      'that nobody has asked yet',
      seed('x', { ready: null }),
      {},
      '1 of 1 by ready: x has not been asked yet whether it answers',
    ],
    [
      'that the profile does not select',
      seed('x'),
      { profile: profile({ seedSelector: { matchLabels: { a: 'b' } } }) },
      '1 of 1 by profileSelector: x has not the labels that CloudProfile aws asks for',
    ],
    [
      'that the shoot does not select',
      seed('x', { metadata: { labels: { a: 'c' } } }),
      { shoot: shoot({ seedSelector: { matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['c'] }] } }) },
      '1 of 1 by shootSelector: x has not the labels that spec.seedSelector asks for',
    ],
    ['of another provider', seed('x', { type: 'gcp' }), {}, '1 of 1 by provider: x runs on provider gcp'],
    [
      'with too few zones',
      seed('x'),
      { shoot: shoot(ha) },
      '1 of 1 by zones: x has 1 zones, and tolerating the failure of a zone takes 3',
    ],
    [
      'without the access restriction',
      seed('x'),
      { shoot: shoot({ accessRestrictions: [{ name: 'eu' }] }) },
      '1 of 1 by accessRestrictions: x does not offer the access restriction eu',
    ],
    [
      'with a taint',
      seed('x', { spec: { taints: [{ key: 'k' }] } }),
      {},
      '1 of 1 by taints: x has the taint k, which the shoot does not tolerate',
    ],
    [
      'with an overlapping range',
      seed('x'),
      { shoot: shoot({ networking: { pods: '10.0.0.0/8' } }) },
      "1 of 1 by networks: x has the pods range 10.1.0.0/16, which overlaps with the shoot's pods (10.0.0.0/8)",
    ],
    ['that is full', seed('x', { limit: 2 }), { shootsPerSeed: { x: 2 } }, '1 of 1 by capacity: x hosts 2 of 2 shoots'],
  ])('%s', (_, one, input, reason) => {
    expect(place([one], input)).toMatchObject({ reasons: [reason] });
  });
});

describe('placement keeps a seed', () => {
  test.each<[string, Seed, Partial<PlacementInput>]>([
    [
      'of any provider, where the profile says so',
      seed('x', { type: 'local' }),
      { profile: profile({ seedSelector: { providerTypes: ['*'] } }) },
    ],
    [
      'that the shoot names, though it is not visible',
      seed('x', { spec: { settings: { scheduling: { visible: false } } } }),
      { shoot: shoot({ seedName: 'x' }) },
    ],
    [
      'whose taint is tolerated',
      seed('x', { spec: { taints: [{ key: 'k', value: 'v' }] } }),
      { shoot: shoot({ tolerations: [{ key: 'k' }] }) },
    ],
    [
      'with three zones',
      seed('x', { zones: ['a', 'b', 'c'] }),
      { shoot: shoot({ controlPlane: { highAvailability: { failureTolerance: { type: 'zone' } } } }) },
    ],
    ['with room for one', seed('x', { limit: 2 }), { shootsPerSeed: new Map([['x', 1]]) }],
    ['that does not say how many it takes', seed('x'), { shootsPerSeed: { x: 5000 } }],
  ])('%s', (_, one, input) => expect(place([one], input)).toMatchObject({ seed: 'x' }));
});

describe('the chosen seed', () => {
  const any = profile({ seedSelector: { providerTypes: ['*'] } });
  test.each<[string, Seed[], Record<string, number>, string, RegExp]>([
    ['is in the region', [seed('a', { region: 'us-east-1' }), seed('b')], { b: 100 }, 'b', /by distance/],
    [
      'is else of the provider',
      [seed('a', { type: 'local' }), seed('b', { region: 'us-east-1' })],
      {},
      'b',
      /by distance/,
    ],
    [
      'is else in a region with a like name',
      [seed('a', { region: 'us-east-1' }), seed('b', { region: 'eu-west-1' })],
      {},
      'b',
      /by regionName/,
    ],
    [
      'is the emptiest in proportion',
      [seed('a', { limit: 10 }), seed('b', { limit: 100 })],
      { a: 5, b: 20 },
      'b',
      /by load/,
    ],
    ['is the emptiest', [seed('a'), seed('b')], { a: 2, b: 1 }, 'b', /by (load|shoots)/],
    ['is else the first by name', [seed('b'), seed('a')], {}, 'a', /by name, all else being equal/],
    [
      'is the only one',
      [seed('a', { ready: false }), seed('b')],
      {},
      'b',
      /b is the only seed that can host it, 1 of 2 cannot/,
    ],
  ])('%s', (_, seeds, shootsPerSeed, name, why) => {
    const placed = place(seeds, { shootsPerSeed, profile: any });
    expect(placed).toMatchObject({ seed: name });
    expect((placed as { why: string }).why).toMatch(why);
  });
});

test('is explained by the number each filter dropped, and why', () => {
  const seeds = [...['a', 'b', 'c', 'd', 'e'].map((name) => seed(name, { ready: false })), seed('f', { type: 'gcp' })];
  const placed = place(seeds);
  expect(placed).toMatchObject({
    reasons: [
      '1 of 6 by provider: f runs on provider gcp',
      '5 of 6 by ready: a is not Ready; b is not Ready; c is not Ready, and 2 more',
    ],
  });
  expect(placed.steps.map(({ filter, left }) => [filter, left])).toEqual([
    ['provider', 5],
    ['ready', 0],
  ]);
});

test('is missing with a list of seeds that could host it if they were Ready', () => {
  const seeds = [
    seed('new', { ready: null }),
    seed('down', { ready: false }),
    seed('other', { ready: false, type: 'gcp' }),
    seed('full', { ready: null, limit: 0 }),
  ];
  const { unready } = place(seeds) as { unready: readonly Seed[] };
  expect(unready.map(({ metadata }) => metadata.name)).toEqual(['new', 'down']);
});

test('is missing without seeds', () => expect(place([])).toMatchObject({ reasons: [/there is no Seed/] }));
test('is missing when the named seed does not exist', () => {
  expect(place([seed('x')], { shoot: shoot({ seedName: 'y' }) })).toMatchObject({
    reasons: ['there is no Seed y, which spec.seedName names'],
  });
});
test('is explained by the named seed only', () => {
  const seeds = [seed('x', { ready: false }), seed('y')];
  expect(place(seeds, { shoot: shoot({ seedName: 'x' }) })).toMatchObject({
    reasons: ['1 of 2 by ready: x is not Ready'],
  });
});

test('follows filters and scores that docs/concepts/placement.md lists in order', () => {
  const page = readFileSync('docs/concepts/placement.md', 'utf8');
  const shown = (heading: string) =>
    tableRows(page, heading).flatMap((row) => [...row[heading]!.matchAll(/`(\w+)`/g)].map(([, name]) => name));
  expect(shown('filter')).toEqual(FILTERS.map(({ name }) => name));
  expect(shown('score')).toEqual(SCORES.map(({ name }) => name));
});
