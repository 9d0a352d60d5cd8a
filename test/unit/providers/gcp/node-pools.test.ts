import { describe, expect, it } from 'vitest';
import { nodePoolsOf, spreadNodes } from '../../../../providers/gcp/node-pools.ts';
import { pool } from './fixtures.ts';

const zones = ['r-a', 'r-b', 'r-c'];

describe('the shares of zones', () => {
  it('sum up to the count, differ by one at most, and growth by one changes one zone', () => {
    for (let places = 1; places <= 4; places++) {
      for (let count = 0; count <= 20; count++) {
        const shares = spreadNodes(count, places);
        expect(shares.reduce((sum, share) => sum + share, 0)).toBe(count);
        expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
        const grown = spreadNodes(count + 1, places);
        expect(grown.filter((share, index) => share !== shares[index])).toHaveLength(1);
      }
    }
  });
});

describe('nodePoolsOf', () => {
  it('uses the zones of the pool, or else of the cluster', () => {
    expect(nodePoolsOf([pool({ zones: ['r-b'] })], zones).map((plan) => plan.zones)).toEqual([['r-b']]);
    expect(nodePoolsOf([pool()], zones).map((plan) => plan.zones)).toEqual([['r-a'], ['r-b'], ['r-c']]);
  });

  it('keeps node pools at size 0, so that a wake-up is a resize', () => {
    const plans = nodePoolsOf([pool({ desired: 0 })], zones);
    expect(plans.map((plan) => plan.size)).toEqual([{ nodes: 0 }, { nodes: 0 }, { nodes: 0 }]);
    expect(plans.map((plan) => plan.name)).toEqual(nodePoolsOf([pool({ desired: 7 })], zones).map((plan) => plan.name));
  });

  it('returns unique names, even if pool and zone join to the same text', () => {
    const autoscaled = { ...pool({ name: 'web-a' }) };
    delete autoscaled.desired;
    const plans = nodePoolsOf([pool({ name: 'web', zones: ['r-a'] }), autoscaled], zones);
    expect(new Set(plans.map((plan) => plan.name)).size).toBe(2);
    for (const { name } of plans) expect(name).toMatch(/^[a-z][a-z0-9-]{0,38}[a-z0-9]$/);
  });

  it('returns names that start with a letter, for any pool name', () => {
    expect(nodePoolsOf([pool({ name: '9to5' })], ['r-a'])[0]!.name).toMatch(/^p-9to5-a-[0-9a-f]{8}$/);
  });

  it('requests only accelerators that the machine type implies', () => {
    expect(nodePoolsOf([pool({ gpu: 1, machineType: 'n1-standard-4' })], ['r-a'])[0]).not.toHaveProperty('accelerator');
    expect(nodePoolsOf([pool({ gpu: 1, machineType: 'g2-standard-4' })], ['r-a'])[0]).toMatchObject({
      accelerator: { type: 'nvidia-l4', count: 1 },
    });
  });
});
