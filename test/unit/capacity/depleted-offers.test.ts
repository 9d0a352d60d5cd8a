import { describe, expect, it } from 'vitest';
import { DepletedOffers } from '../../../operator/capacity/depleted-offers.ts';
import type { Offer } from '../../../operator/capacity/offers.ts';

const offer = (machineType: string): Offer => ({
  profile: 'cloud',
  region: 'here',
  zone: 'a',
  machineType,
  spot: true,
});

describe('what is remembered of offers', () => {
  it('is bounded: what was heard of longest ago is forgotten', () => {
    const memory = new DepletedOffers(() => new Date(0));
    for (let index = 0; index < 1_500; index++) memory.interrupted(offer(`type-${index}`));
    const known = memory.known('').depleted.map(({ machineType }) => machineType);
    expect(known).toHaveLength(1_000);
    expect([known[0], known.at(-1)]).toEqual(['type-500', 'type-1499']);
  });
});
