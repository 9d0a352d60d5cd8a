import { describe, expect, test } from 'vitest';
import { type CloudProfile, cloudProfileSpec, providerOf } from '../../../operator/api/cloudprofile.ts';
import { poolsOf } from '../../../operator/api/pools.ts';
import { profileManifests, simulatedProfile } from '../../../operator/api/profiles.ts';
import { parseBytes, parseCpu } from '../../../operator/api/quantity.ts';
import { controlPlaneMembers, shootSpec, unactedFields } from '../../../operator/api/shoot.ts';
import { profileNameOf, unactedClusterFields, workerClusterSpec } from '../../../operator/api/workercluster.ts';
import { buildCloudProfile, buildWorkerCluster } from '../../kit/builders/objects.ts';

const cluster = (spec: object) =>
  buildWorkerCluster({
    metadata: { name: 'a', namespace: 'default' },
    spec: workerClusterSpec.parse({ cloudProvider: 'aws', ...spec }),
  });
const profile = buildCloudProfile({
  metadata: { name: 'aws' },
  spec: {
    type: 'aws',
    kubernetes: {},
    machineTypes: [],
    regions: [{ name: 'r', zones: [{ name: 'ra' }, { name: 'rb' }] }],
    defaults: { region: 'r', machineType: 'm' },
  },
});

describe('poolsOf', () => {
  const counts = (spec: object) => poolsOf(cluster(spec), profile).map(({ name, count }) => [name, count]);
  test.each<[string, object, [string, number][]]>([
    ['one pool of all nodes', { dataPlaneNodes: 20 }, [['default', 20]]],
    ['no nodes', { dataPlaneNodes: 0 }, [['default', 0]]],
    ['an empty list of pools', { dataPlaneNodes: 2, pools: [] }, [['default', 2]]],
    [
      'minimums without a number',
      { pools: [{ name: 'a', minimum: 2, maximum: 5 }, { name: 'b' }] },
      [
        ['a', 2],
        ['b', 0],
      ],
    ],
    [
      'minimums first',
      {
        dataPlaneNodes: 3,
        pools: [
          { name: 'a', minimum: 1 },
          { name: 'b', minimum: 2 },
        ],
      },
      [
        ['a', 1],
        ['b', 2],
      ],
    ],
    [
      'then in the order written',
      {
        dataPlaneNodes: 7,
        pools: [
          { name: 'a', minimum: 1, maximum: 3 },
          { name: 'b', minimum: 2 },
        ],
      },
      [
        ['a', 3],
        ['b', 4],
      ],
    ],
    ['no more than all maximums', { dataPlaneNodes: 9, pools: [{ name: 'a', maximum: 3 }] }, [['a', 3]]],
  ])('%s', (_, spec, expected) => expect(counts(spec)).toEqual(expected));

  test('a growing cluster takes no node from a pool', () => {
    const pools = [{ name: 'a', minimum: 1, maximum: 4 }, { name: 'b', minimum: 2, maximum: 3 }, { name: 'c' }];
    let before = [0, 0, 0];
    for (let dataPlaneNodes = 3; dataPlaneNodes < 12; dataPlaneNodes++) {
      const now = poolsOf(cluster({ dataPlaneNodes, pools }), profile).map(({ count }) => count);
      expect(now.reduce((sum, count) => sum + count)).toBe(dataPlaneNodes);
      expect(now.every((count, index) => count >= before[index]!)).toBe(true);
      before = now;
    }
  });

  test('a pool inherits from cluster and profile', () => {
    const taints = [{ key: 'k', effect: 'NoSchedule' as const }];
    const pools = [
      { name: 'a', minimum: 1 },
      { name: 'b', minimum: 1, machineType: 'x', zones: ['rb'], labels: { l: 'v' }, taints },
    ];
    const [a, b] = poolsOf(cluster({ pools }), profile);
    expect(a).toMatchObject({ machineType: 'm', zones: ['ra', 'rb'], labels: {}, taints: [] });
    expect(b).toMatchObject({ machineType: 'x', zones: ['rb'], labels: { l: 'v' }, taints });
    expect(poolsOf(cluster({ pools, machineType: 'y', zones: ['ra'] }), profile)[0]).toMatchObject({
      machineType: 'y',
      zones: ['ra'],
    });
  });
});

describe('unacted fields', () => {
  test('lists those of a WorkerCluster', () => {
    const spec = cluster({
      dataPlaneNodes: 1,
      ttl: '1h',
      hibernation: { enabled: true },
      pools: [{ name: 'a', spot: true, gpu: 1 }],
    }).spec;
    expect(unactedClusterFields(spec)).toEqual(['pools[0].spot']);
    expect(unactedClusterFields(spec, 'SelfManaged').sort()).toEqual(['hibernation', 'pools[0].spot']);
    expect(unactedClusterFields(spec, 'Hosted', { lacksControlPlane: true }).sort()).toEqual([
      'hibernation',
      'pools[0].spot',
    ]);
    expect(unactedClusterFields(spec, 'Managed')).toEqual([]);
    expect(unactedClusterFields(cluster({ controlPlaneNodes: 3, dataPlaneNodes: 20 }).spec)).toEqual([]);
    expect(
      unactedClusterFields(cluster({ dns: { domain: 'x.example' } }).spec, 'Hosted', { lacksControlPlane: true }),
    ).toEqual(['dns.domain']);
  });
  test('lists those of a Shoot', () => {
    const spec = shootSpec.parse({
      cloudProfile: { name: 'aws' },
      region: 'r',
      kubernetes: { version: '1.36.3', kubelet: { maxPods: 5 } },
      hibernation: { enabled: true, schedules: [{ start: '0 20 * * *' }] },
      dns: { domain: 'x', providers: [{ type: 'aws-route53', domains: { include: ['y'] } }] },
      provider: {
        type: 'aws',
        workers: [
          { name: 'a', machine: { type: 'm', image: { name: 'i' } }, minimum: 1, maximum: 1 },
          { name: 'b', machine: { type: 'm' }, minimum: 1, maximum: 3, volume: {} },
        ],
      },
    });
    expect(unactedFields(spec)).toEqual([
      'kubernetes.kubelet',
      'provider.workers[0].machine.image',
      'provider.workers[1].volume',
      'hibernation.schedules',
      'dns.providers[0].domains',
      'provider.workers[1].maximum',
    ]);
  });
});

test('controlPlaneMembers returns the number of members', () => {
  const members = (controlPlane?: object) =>
    controlPlaneMembers(
      shootSpec.parse({ cloudProfile: { name: 'a' }, region: 'r', provider: { type: 't' }, controlPlane }),
    );
  expect(members()).toBe(1);
  expect(members({ highAvailability: { failureTolerance: { type: 'zone' } } })).toBe(3);
  expect(members({ replicas: 5 })).toBe(5);
});

describe('profiles', async () => {
  const profiles = await profileManifests();
  test.each(profiles.map((each) => [each.metadata.name, each] as const))('%s is whole', (name, each) => {
    const spec = cloudProfileSpec.parse(each.spec) as CloudProfile['spec'];
    expect(name).toMatch(new RegExp(`^${spec.type}(-|$)`));
    expect(spec.machineTypes.map((type) => type.name)).toContain(spec.defaults?.machineType);
    const region = spec.regions.find((known) => known.name === spec.defaults?.region);
    expect(region?.zones?.length).toBeGreaterThan(0);
    for (const { cpu, memory } of spec.machineTypes) {
      expect(parseCpu(cpu)).toBeGreaterThanOrEqual(1000);
      expect(parseBytes(memory)).toBeGreaterThanOrEqual(2 ** 31);
    }
    const supported = spec.kubernetes.versions?.filter(({ classification }) => classification === 'supported');
    expect(supported?.map(({ version }) => version)).toContain('1.36.3');
  });
  test('can be bound to the simulated provider', () => {
    const aws = profiles.find(({ metadata }) => metadata.name === 'aws')!;
    expect(providerOf(aws)).toBe('aws');
    expect(providerOf(simulatedProfile(aws))).toBe('simulated');
  });
});

test("a cluster uses the profile of its provider's name, unless it names one", () => {
  expect(profileNameOf(cluster({ dataPlaneNodes: 1 }))).toBe('aws');
  expect(profileNameOf(cluster({ dataPlaneNodes: 1, cloudProfile: 'other' }))).toBe('other');
});
