import { describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import type { Pool, Provider, WantedSpec } from '../../../providers/contract.ts';
import { expectNamed, frozen, type Nonsense } from './problems.ts';

/** What the profile offers: in its default region (or another), with one pool of its default machine type (or another). */
export function offered(
  { spec }: CloudProfile,
  { region = spec.defaults?.region ?? '', machineType = spec.defaults?.machineType ?? '' } = {},
): WantedSpec {
  const zones = spec.regions.find(({ name }) => name === region)?.zones ?? [];
  return {
    region,
    kubernetesVersion: spec.kubernetes.versions?.[0]?.version ?? '',
    networking: { pods: spec.defaults?.pods ?? '', services: spec.defaults?.services ?? '' },
    pools: [{ name: 'workers', machineType, count: 2, labels: {}, taints: [], zones: zones.map(({ name }) => name) }],
  };
}

const withPool = (change: Partial<Pool>) => (wanted: WantedSpec) => ({
  ...wanted,
  pools: wanted.pools.map((pool) => ({ ...pool, ...change })),
});
const withRange = (change: Partial<WantedSpec['networking']>) => (wanted: WantedSpec) => ({
  ...wanted,
  networking: { ...wanted.networking, ...change },
});

const NONSENSE: Nonsense<WantedSpec>[] = [
  ['a region that the profile lacks', (one) => ({ ...one, region: 'mars-1' }), 'region', 'mars-1'],
  ['a zone that the region lacks', withPool({ zones: ['mars-1a'] }), 'pools[0].zones', 'mars-1a'],
  ['an unknown machine type', withPool({ machineType: 'vax.large' }), 'pools[0].machineType', 'vax.large'],
  ['two pools of one name', (one) => ({ ...one, pools: [...one.pools, ...one.pools] }), 'pools', 'workers'],
  ['pods in no range', withRange({ pods: '10.0.0.0/99' }), 'networking.pods', '10.0.0.0/99'],
  ['services in no range', withRange({ services: 'many' }), 'networking.services', 'many'],
  ['nodes in no range', withRange({ nodes: '256.1.1.1/16' }), 'networking.nodes', '256.1.1.1/16'],
  [
    'ranges that overlap',
    ({ networking, ...one }) => ({ ...one, networking: { ...networking, nodes: networking.pods } }),
    'networking',
    'overlaps',
  ],
  [
    'more nodes than ranges for their pods',
    (one) => withPool({ count: 99 })(withRange({ pods: '10.1.0.0/20' })(one)),
    'networking.pods',
    '99',
  ],
];

/** What Provider.validate promises. Pure. @param profiles those that are committed and this provider is for */
export function validatesPools(provider: Provider, profiles: () => CloudProfile[]): void {
  describe(`the validation of pools by ${provider.name}`, () => {
    const problemsOf = (wanted: WantedSpec, profile = profiles()[0]!) =>
      provider.validate(frozen(wanted), frozen(profile));

    it('accepts everything that its committed profiles offer', () => {
      for (const profile of profiles()) {
        const { regions, machineTypes, kubernetes } = profile.spec;
        const all = [
          ...regions.map((region) => offered(profile, { region: region.name })),
          ...machineTypes
            .filter(({ usable }) => usable !== false)
            .map((type) => offered(profile, { machineType: type.name })),
          ...(kubernetes.versions ?? []).map(({ version }) => ({ ...offered(profile), kubernetesVersion: version })),
          { ...offered(profile), pools: [] },
        ];
        expect(all.flatMap((wanted) => problemsOf(wanted, profile))).toEqual([]);
      }
    });

    it.each(NONSENSE)('reports what is wrong with %s', (_what, change, field, words) => {
      expectNamed(problemsOf(change(offered(profiles()[0]!))), field, words);
    });

    it("lets a cluster stay at a version that the profile no longer has, as only the cluster's state decides that", () => {
      expect(problemsOf({ ...offered(profiles()[0]!), kubernetesVersion: '1.28.9' })).toEqual([]);
    });

    it('reports all problems at once, and the same each time', () => {
      const wanted = withRange({ services: 'many' })(withPool({ machineType: 'vax.large' })(offered(profiles()[0]!)));
      const problems = problemsOf(wanted);
      expectNamed(problems, 'pools[0].machineType', 'vax.large');
      expectNamed(problems, 'networking.services', 'many');
      expect(problemsOf(wanted)).toEqual(problems);
    });
  });
}
