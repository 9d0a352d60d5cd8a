import { describe, expect, it } from 'vitest';
import { allocatableOfType } from '../../../../operator/burst/fit/reserve.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const sold = { millicores: 4000, bytes: 16 * GIB, gpus: 0, pods: 110 };

describe('the modelled allocatable of a machine type', () => {
  it.each([
    // What each documents for 4 cores and 16 GiB: EKS 80m and 255 + 11 × 58 MiB, GKE 80m and 2.6 GiB, AKS 140m and 20 MB a pod.
    ['eks', { ...sold, pods: 58 }, { cpu: 3920, reserved: 893 * MIB }],
    ['gke', sold, { cpu: 3920, reserved: 2.55 * GIB }],
    ['aks', sold, { cpu: 3860, reserved: 2250e6 }],
    ['machines', sold, { cpu: 3900, reserved: 300 * MIB }],
  ] as const)(
    'leaves out what %s keeps, the least free memory, and what the guest never sees',
    (reserve, type, kept) => {
      const guessed = allocatableOfType(type, reserve);
      expect(guessed.cpu).toBe(kept.cpu);
      const left = 16 * GIB - kept.reserved - 100 * MIB;
      expect(guessed.memory).toBeLessThan(left);
      expect(guessed.memory).toBeGreaterThan(left * 0.9);
    },
  );

  it('is the full capacity where the kubelet reserves nothing', () => {
    expect(allocatableOfType({ ...sold, gpus: 2 }, 'none')).toEqual({
      cpu: 4000,
      memory: 16 * GIB,
      storage: 0,
      others: new Map([['nvidia.com/gpu', 2]]),
      pods: 110,
    });
  });

  it('is never negative', () => {
    for (const reserve of ['machines', 'eks', 'gke', 'aks'] as const)
      expect(allocatableOfType({ millicores: 50, bytes: 1, gpus: 0, pods: 10 }, reserve)).toMatchObject({ memory: 0 });
  });
});
