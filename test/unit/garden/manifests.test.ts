import { expect, it } from 'vitest';
import { applyPatiently, localSeed } from '../../../operator/garden/daemon/manifests.ts';
import { chooseRanges } from '../../../operator/garden/host/ranges.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';

const seed = localSeed(chooseRanges('abc', [])!, { url: 'http://10.0.0.1:5000' });

/** A server that refuses as often as there are answers, and then takes what it is given. */
function server(...answers: KubeApiError[]) {
  let asked = 0;
  const apply = async () => {
    const refusal = answers[asked++];
    if (refusal) throw refusal;
    return seed;
  };
  return { client: { apply } as unknown as KubeClient, asked: () => asked };
}

it('a garden comes up although etcd answered late and a kind was not served yet', async () => {
  const late = new KubeApiError('PATCH seed', 500, { message: 'etcdserver: request timed out' });
  const { client, asked } = server(late, new KubeApiError('PATCH seed', 404, ''));
  await applyPatiently(client, seed);
  expect(asked()).toBe(3);
});

it('an object that the API server never accepts is reported at once', async () => {
  const { client, asked } = server(
    new KubeApiError('PATCH seed', 422, { reason: 'Invalid', message: 'no such field' }),
  );
  await expect(applyPatiently(client, seed)).rejects.toThrow('Seed local cannot be applied: PATCH seed: 422 Invalid');
  expect(asked()).toBe(1);
});
