import type { Seed } from '../api/seed.ts';
import { type PlacementInput, shootLimit, shootsOn } from './filters.ts';

/** Ranks the seeds that passed the filters. */
interface Score {
  name: string;
  /** Smaller is better. */
  of(seed: Seed, input: PlacementInput): number;
}

/** In order of weight: a later one only decides between seeds that are equal in all earlier ones. */
export const SCORES: readonly Score[] = [
  {
    // Latency between control plane and nodes: same region, else same provider, else anywhere.
    name: 'distance',
    of: ({ spec }, { shoot }) => {
      if (spec.provider.type !== shoot.spec.provider.type) return 2;
      return spec.provider.region === shoot.spec.region ? 0 : 1;
    },
  },
  {
    // Names of regions of one provider say how near they are: eu-central-1 is nearer to eu-west-1 than to us-east-1.
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

/** How many of the parts of two region names differ, from the first that does: 0 for equal names. */
function distance(one: string, other: string): number {
  if (one === other) return 0;
  const [a, b] = [parts(one), parts(other)];
  const common = a.findIndex((part, index) => part !== b[index]);
  return Math.max(a.length, b.length) - (common === -1 ? a.length : common);
}

const parts = (region: string): string[] => region.match(/[a-z]+|[0-9]+/g) ?? [region];
