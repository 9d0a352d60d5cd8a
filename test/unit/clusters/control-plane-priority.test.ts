import { expect, it } from 'vitest';
import { ensureControlPlanePriority } from '../../../operator/clusters/control-plane-priority.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { silent } from '../../../operator/kube/log.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { partOf } from '../../kit/builders/partial.ts';

/** A seed that has this class, or refuses to have one made. */
function seedWith({ found, refusal }: { found?: object; refusal?: KubeApiError }) {
  const made: KubeObject[] = [];
  const client = partOf<KubeClient>({
    getOrUndefined: async () => found,
    create: async (object: KubeObject) => {
      if (refusal) throw refusal;
      made.push(object);
      return object;
    },
  });
  return { made, ensure: () => ensureControlPlanePriority(client, silent, new AbortController().signal) };
}

const status = (code: number, reason: string) => new KubeApiError('POST priorityclasses', code, { reason });

it('ensureControlPlanePriority makes a class above the 0 of machines', async () => {
  const { made, ensure } = seedWith({});
  expect(await ensure()).toBe(true);
  expect(made).toMatchObject([
    { kind: 'PriorityClass', metadata: { name: 'coppice-control-plane' }, value: 1_000_000 },
  ]);
});

it('ensureControlPlanePriority leaves a class that exists as it is', async () => {
  const { made, ensure } = seedWith({ found: { value: 5 } });
  expect([await ensure(), made]).toEqual([true, []]);
});

it('ensureControlPlanePriority has a seed without the right to make one work without it', async () => {
  expect(await seedWith({ refusal: status(403, 'Forbidden') }).ensure()).toBe(false);
  expect(await seedWith({ refusal: status(409, 'AlreadyExists') }).ensure()).toBe(true);
  await expect(seedWith({ refusal: status(500, 'InternalError') }).ensure()).rejects.toThrow('InternalError');
});
