import type { Seed } from '../api/seed.ts';
import { type PlacementInput, shootLimit, shootsOn } from './filters.ts';

/** Ranks the seeds that passed the filters. */
interface Score {
  name: string;
  /** Smaller is better. */
  of(seed: Seed, input: PlacementInput): number;
}

/** In order of priority: a later score only decides between seeds that are equal in all earlier ones. */
export const SCORES: readonly Score[] = [
  {
    // Latency between control plane and nodes: same region, then same provider, then others.
    name: 'distance',
    of: ({ spec }, { shoot }) => {
      if (spec.provider.type !== shoot.spec.provider.type) return 2;
      return spec.provider.region === shoot.spec.region ? 0 : 1;
    },
  },
  {
    // Region names of a provider indicate distance: eu-central-1 is nearer to eu-west-1 than to us-east-1.
    name: 'regionName',
    of: ({ spec }, { shoot }) =>
      spec.provider.type === shoot.spec.provider.type ? distance(spec.provider.region, shoot.spec.region) : 0,
  },
  {
    name: 'load',
    of: (seed, input) => shootsOn(seed, input) / Math.min(shootLimit(seed), Number.MAX_SAFE_INTEGER),
  },
  { name: 'shoots', of: shootsOn },
];

/** Number of parts of a region name from the first difference on: 0 for equal names. */
function distance(one: string, other: string): number {
  if (one === other) return 0;
  const [a, b] = [parts(one), parts(other)];
  const common = a.findIndex((part, index) => part !== b[index]);
  return Math.max(a.length, b.length) - (common === -1 ? a.length : common);
}

const parts = (region: string): string[] => region.match(/[a-z]+|[0-9]+/g) ?? [region];
