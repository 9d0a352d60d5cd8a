import { describe, expect, it } from 'vitest';
import type { MachineType } from '../../../operator/api/cloudprofile.ts';
import { gpuMachineType } from '../../../operator/api/gpu.ts';
import { poolsOf } from '../../../operator/api/pools.ts';
import { buildCloudProfile, buildWorkerCluster } from '../../kit/builders/objects.ts';

type GPUWish = Parameters<typeof gpuMachineType>[1];

const price = (hourly: string, region?: string, more: object = {}) => ({
  hourly,
  currency: 'USD',
  ...(region && { region }),
  ...more,
});
const type = (name: string, gpu: number, more: Partial<MachineType> = {}): MachineType => ({
  name,
  cpu: '4',
  gpu: String(gpu),
  memory: '16Gi',
  ...more,
});

const TYPES = [
  type('plain', 0, { price: price('0.1') }),
  type('dear-1', 1, { price: price('1.0') }),
  type('cheap-1', 1, { price: price('0.5') }),
  type('old-1', 1, { price: price('0.1'), usable: false }),
  type('elsewhere-1', 1, { price: price('0.2', 'far') }),
  type('unpriced-1', 1),
  type('four', 4, { price: price('5.0', 'near', { regions: [{ name: 'far', hourly: '0.1' }] }) }),
];
const profile = buildCloudProfile({
  metadata: { name: 'p' },
  spec: {
    type: 'p',
    kubernetes: {},
    defaults: { region: 'near', machineType: 'plain' },
    machineTypes: TYPES,
    regions: [
      { name: 'near', zones: [{ name: 'a', unavailableMachineTypes: ['cheap-1'] }, { name: 'b' }] },
      { name: 'far' },
      { name: 'alien' },
    ],
  },
});

describe('gpuMachineType', () => {
  it.each<[string, Partial<GPUWish>, string | undefined]>([
    ['is the cheapest there', { gpu: 1 }, 'cheap-1'],
    ['may have more', { gpu: 2 }, 'four'],
    ['is cheapest by the price of its region', { gpu: 1, region: 'far' }, 'four'],
    ['is one that a zone of the pool has', { gpu: 1, zones: ['a'] }, 'dear-1'],
    ['is one that some zone has', { gpu: 1, zones: ['a', 'b'] }, 'cheap-1'],
    ['stays when another has become cheaper', { gpu: 1, held: 'dear-1' }, 'dear-1'],
    ['does not stay when fewer GPUs will do', { gpu: 1, held: 'four' }, 'cheap-1'],
    ['does not stay when it has too few', { gpu: 4, held: 'cheap-1' }, 'four'],
    ['is none', { gpu: 8 }, undefined],
  ])('%s', (_, wish, expected) => {
    expect(gpuMachineType(profile, { gpu: 1, region: 'near', zones: [], ...wish })).toBe(expected);
  });

  it('does not depend on the order of the profile', () => {
    const turned = { ...profile, spec: { ...profile.spec, machineTypes: TYPES.toReversed() } };
    expect(gpuMachineType(turned, { gpu: 1, region: 'near', zones: [] })).toBe('cheap-1');
  });

  it('uses prices of other regions when the region has none, and types without price last', () => {
    const only = (...names: string[]) => ({
      ...profile,
      spec: { ...profile.spec, machineTypes: TYPES.filter(({ name }) => names.includes(name)) },
    });
    const wish = { gpu: 1, region: 'near', zones: [] };
    expect(gpuMachineType(only('unpriced-1', 'elsewhere-1'), wish)).toBe('elsewhere-1');
    expect(gpuMachineType(only('unpriced-1'), wish)).toBe('unpriced-1');
  });
});

describe('a pool with GPUs', () => {
  const pools = (pool: object, spec: object = {}) =>
    poolsOf(
      buildWorkerCluster({
        metadata: { name: 'x' },
        spec: { cloudProvider: 'p', pools: [{ name: 'g', ...pool }], ...spec },
      }),
      profile,
    ).map(({ machineType, gpu }) => [machineType, gpu]);

  it.each<[string, object, object, [string, number]]>([
    ['asks for none', {}, {}, ['plain', 0]],
    ['names its machine type', { gpu: 1, machineType: 'dear-1' }, {}, ['dear-1', 1]],
    ["takes the cluster's machine type where that has them", { gpu: 1 }, { machineType: 'dear-1' }, ['dear-1', 1]],
    ['takes another where it has not', { gpu: 4 }, { machineType: 'dear-1' }, ['four', 4]],
    ['finds none, which is said of it then', { gpu: 8 }, {}, ['plain', 8]],
  ])('%s', (_, pool, spec, expected) => {
    expect(pools(pool, spec)).toEqual([expected]);
  });
});
