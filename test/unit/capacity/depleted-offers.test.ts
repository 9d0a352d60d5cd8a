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

describe('the memory of depleted offers', () => {
  it('is bounded: the least recently updated offer is forgotten', () => {
    const memory = new DepletedOffers(() => new Date(0));
    const knownIn = (namespace: string) => memory.known({ namespace }).depleted.map(({ machineType }) => machineType);
    memory.note('u1', { ...offer('sold-out'), part: 'a', zones: [] });
    memory.interrupted(offer('calm'), { namespace: 'calm' });
    for (let index = 0; index < 1_500; index++) memory.interrupted(offer(`type-${index}`), { namespace: 'busy' });
    const known = knownIn('busy');
    expect(known).toHaveLength(1_001);
    expect(known.slice(0, 2)).toEqual(['sold-out', 'type-500']);
    expect(known.at(-1)).toEqual('type-1499');
    expect(knownIn('calm')).toEqual(['sold-out', 'calm']);
  });
});
