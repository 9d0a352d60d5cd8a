import { describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { parseCount } from '../../../operator/api/quantity.ts';
import type { CloudPool, ManagedClusters, WantedCluster } from '../../../providers/cloud.ts';
import { expectNamed, frozen, type Nonsense } from './problems.ts';

/** A cluster that the profile offers: in its default region (or another), with one pool of its default machine type (or another). */
export function offeredCluster(
  { spec }: CloudProfile,
  { region = spec.defaults?.region ?? '', machineType = spec.defaults?.machineType ?? '' } = {},
): WantedCluster {
  const zones = spec.regions.find(({ name }) => name === region)?.zones ?? [];
  return {
    region,
    zones: zones.slice(0, 2).map(({ name }) => name),
    kubernetesVersion: spec.kubernetes.versions?.[0]?.version ?? '',
    cidrs: { nodes: '10.250.0.0/16', pods: spec.defaults?.pods ?? '', services: spec.defaults?.services ?? '' },
    pools: [offeredPool(spec, machineType)],
    authorizedNetworks: ['198.51.100.0/24'],
  };
}

function offeredPool({ machineTypes }: CloudProfile['spec'], machineType: string): CloudPool {
  const type = machineTypes.find(({ name }) => name === machineType);
  return {
    name: 'workers',
    machineType,
    minimum: 1,
    maximum: 3,
    desired: 2,
    spot: false,
    gpu: parseCount(type?.gpu ?? 0),
    architecture: type?.architecture === 'arm64' ? 'arm64' : 'amd64',
    labels: { team: 'shop' },
    taints: [],
    zones: [],
  };
}

const withPool = (change: Partial<CloudPool>) => (cluster: WantedCluster) => ({
  ...cluster,
  pools: cluster.pools.map((pool) => ({ ...pool, ...change })),
});
const withRange = (change: Partial<WantedCluster['cidrs']>) => (cluster: WantedCluster) => ({
  ...cluster,
  cidrs: { ...cluster.cidrs, ...change },
});

/** The same, with the numbers of nodes left to an autoscaler. */
function autoscaled(cluster: WantedCluster): WantedCluster {
  const copy = structuredClone(cluster);
  for (const pool of copy.pools) delete pool.desired;
  return copy;
}

/** What no cloud can give. Fields are as WorkerCluster's status names them. */
const NONSENSE: Nonsense<WantedCluster>[] = [
  ['a region that the profile lacks', (one) => ({ ...one, region: 'mars-1' }), 'region', 'mars-1'],
  ['a zone that the region lacks', (one) => ({ ...one, zones: [...one.zones, 'mars-1a'] }), 'zones', 'mars-1a'],
  ['an unknown machine type', withPool({ machineType: 'vax.large' }), 'pools[0].machineType', 'vax.large'],
  ['a zone of a pool that is none of the cluster', withPool({ zones: ['mars-1b'] }), 'pools[0].zones', 'mars-1b'],
  ['two pools of one name', (one) => ({ ...one, pools: [...one.pools, ...one.pools] }), 'pools', 'workers'],
  ['a name that is no DNS label', withPool({ name: 'My_Pool' }), 'pools[0].name', 'My_Pool'],
  ['a name of 13 characters', withPool({ name: 'a23456789012x' }), 'pools[0].name', 'a23456789012x'],
  ['a minimum above the maximum', withPool({ minimum: 9, maximum: 3 }), 'pools[0].minimum', '9'],
  [
    'an autoscaler without a limit',
    (one) => autoscaled(withPool({ maximum: Number.POSITIVE_INFINITY })(one)),
    'pools[0].maximum',
    '',
  ],
  ['GPUs that the machine type lacks', withPool({ gpu: 99 }), 'pools[0].gpu', '99'],
  ['pods in no range', withRange({ pods: '10.0.0.0/99' }), 'networking.pods', '10.0.0.0/99'],
  ['services in no range', withRange({ services: 'many' }), 'networking.services', 'many'],
  ['nodes in no range', withRange({ nodes: '256.1.1.1/16' }), 'networking.nodes', '256.1.1.1/16'],
  [
    'ranges that overlap',
    ({ cidrs, ...one }) => ({ ...one, cidrs: { ...cidrs, nodes: cidrs.pods } }),
    'networking',
    'overlaps',
  ],
  [
    'more nodes than addresses',
    (one) => withPool({ desired: 99, maximum: 99 })(withRange({ nodes: '10.250.0.0/27' })(one)),
    'networking.nodes',
    '10.250.0.0/27',
  ],
  [
    'networks that are none',
    (one) => ({ ...one, authorizedNetworks: ['everybody'] }),
    'authorizedNetworks',
    'everybody',
  ],
];

/**
 * What ManagedClusters.validate promises. Pure: needs neither engine nor cloud.
 * @param profile the one that is committed for this cloud
 */
export function validatesClusters(name: string, managed: () => ManagedClusters, profile: () => CloudProfile): void {
  describe(`the validation of managed clusters by ${name}`, () => {
    const problemsOf = (cluster: WantedCluster) => managed().validate(frozen(cluster), frozen(profile()));

    it('accepts everything that its committed profile offers', () => {
      const { regions, machineTypes, kubernetes } = profile().spec;
      const offered = [
        ...regions.map((region) => offeredCluster(profile(), { region: region.name })),
        ...machineTypes
          .filter(({ usable }) => usable !== false)
          .map((type) => offeredCluster(profile(), { machineType: type.name })),
        ...(kubernetes.versions ?? []).map(({ version }) => ({
          ...offeredCluster(profile()),
          kubernetesVersion: version,
        })),
        { ...offeredCluster(profile()), pools: [] },
      ];
      expect(offered.flatMap((cluster) => problemsOf(cluster))).toEqual([]);
    });

    it.each(NONSENSE)('reports what is wrong with %s', (_what, change, field, words) => {
      expectNamed(problemsOf(change(offeredCluster(profile()))), field, words);
    });

    it("lets a cluster stay at a version that the profile no longer has, as only the cluster's state decides that", () => {
      expect(problemsOf({ ...offeredCluster(profile()), kubernetesVersion: '1.28.9' })).toEqual([]);
    });

    it('reports all problems at once, and the same each time', () => {
      const cluster = withRange({ services: 'many' })(
        withPool({ machineType: 'vax.large' })(offeredCluster(profile())),
      );
      const problems = problemsOf(cluster);
      expectNamed(problems, 'pools[0].machineType', 'vax.large');
      expectNamed(problems, 'networking.services', 'many');
      expect(problemsOf(cluster)).toEqual(problems);
    });
  });
}
