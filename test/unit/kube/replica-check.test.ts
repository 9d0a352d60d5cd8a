import { expect, it } from 'vitest';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { replicaCheck } from '../../../operator/kube/replica-check.ts';
import { SECRETS, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { partOf } from '../../kit/builders/partial.ts';

function check({
  refused = {},
  working,
  leaseProblem,
}: {
  refused?: Record<string, number>;
  working?: boolean;
  leaseProblem?: string;
}) {
  let asked = 0;
  const client = partOf<KubeClient>({
    request: async (_: string, path: string) => {
      asked++;
      const status = Object.entries(refused).find(([plural]) => path.endsWith(`/${plural}`))?.[1];
      if (status) throw new KubeApiError(`GET ${path}`, status, 'no');
      return { items: [] };
    },
  });
  const look = replicaCheck({
    client,
    kinds: [WORKERCLUSTERS, SECRETS],
    leaseProblem: () => leaseProblem,
    working: () => working,
  });
  return { look, asked: () => asked };
}

it('a standby that could lead is ready, and keeps the result for a while', async () => {
  const { look, asked } = check({});
  expect([await look(), await look()]).toEqual([true, true]);
  expect(asked()).toBe(2);
});

it.each([
  [
    'a kind is missing',
    404,
    'workerclusters',
    'the garden has no workerclusters.multi-cluster.demo.io: install the CRDs',
  ],
  [
    'a rule is missing',
    403,
    'secrets',
    'the operator may not list secrets: grant it the ClusterRole that it comes with',
  ],
])('neither a standby nor a leader is ready when %s', async (_, status, plural, why) => {
  expect(await check({ refused: { [plural]: status } }).look()).toBe(why);
  expect(await check({ refused: { [plural]: status }, working: false }).look()).toBe(why);
});

it('a leader is ready when it works, and a standby is not ready without the Lease', async () => {
  expect(await check({ working: true }).look()).toBe(true);
  expect(await check({ working: false }).look()).toMatch(/caches are not complete/);
  expect(await check({ leaseProblem: 'Lease n/l cannot be read' }).look()).toBe('Lease n/l cannot be read');
});
