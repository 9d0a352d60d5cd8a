import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { providerContext } from '../../../operator/controllers/shoot/provider-context.ts';
import { newShootState } from '../../../operator/controllers/shoot/state.ts';
import { InTurn } from '../../../operator/kube/in-turn.ts';
import type { Secret } from '../../../operator/kube/resources.ts';
import { buildSeed } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';

const POOLS = ['control-plane', 'gpu', 'general'];

/** A shoot whose machines all have yet to join, in a seed that takes its time for each write. */
function testbed() {
  let stored: Secret | undefined;
  let applied = 0;
  const inCluster: string[] = [];
  const create = async ({ stringData }: Secret) => {
    await nextTurn();
    inCluster.push(`${stringData?.['token-id']}.${stringData?.['token-secret']}`);
  };
  const op = partOf<Operation>({
    pools: POOLS.map((name) => ({ name, count: 1 })),
    pki: { 'ca.crt': 'CA', 'ca.key': 'KEY' },
    provider: {},
    seed: {
      secrets: { get: () => stored, absorb: (secret: Secret) => (stored = secret) },
      applier: {
        apply: async (object: Secret) => {
          await nextTurn();
          applied++;
          return { object, changed: true };
        },
      },
    },
    shoot: { metadata: { name: 'own', namespace: 'shop' }, spec: { region: 'here' } },
    state: { ...newShootState(), connection: { client: { create }, nodes: { list: () => [] } } },
    values: {
      shoot: { name: 'own', namespace: 'shop' },
      namespace: 'shoot--shop--own',
      networks: { pods: '100.96.0.0/11', services: '100.64.0.0/13' },
      addresses: { apiServer: '100.64.0.1', etcd: [] },
    },
    deps: { now: () => new Date('2026-11-22T00:00:00Z') },
  });
  const context = () => providerContext(op, {} as CloudProfile, buildSeed({ spec: { provider: {} } }));
  const tokens = async () => Promise.all(POOLS.map((pool) => context().bootstrapKubeconfig(pool)));
  return { tokens, inCluster, writes: () => applied };
}

it('bootstrap tokens stay constant for pools that request them at once', async () => {
  const { tokens, inCluster, writes } = testbed();
  const told = await tokens();
  expect(new Set(told).size).toBe(POOLS.length);
  expect(told.map((text) => /token: (\S+)/.exec(text)?.[1]).sort()).toEqual(inCluster.sort());
  expect(await tokens()).toEqual(told);
  expect([inCluster.length, writes()]).toEqual([POOLS.length, POOLS.length]);
});

it('one bootstrap token is created for two simultaneous requests of a pool', async () => {
  const { tokens, inCluster } = testbed();
  const [first, second] = await Promise.all([tokens(), tokens()]);
  expect(first).toEqual(second);
  expect(inCluster).toHaveLength(POOLS.length);
});

it('a failed bootstrap token does not block the next', async () => {
  const turns = new InTurn();
  const done: string[] = [];
  const failing = turns.run(async () => {
    await nextTurn();
    done.push('first');
    throw new Error('no');
  });
  const next = turns.run(async () => done.push('second'));
  await expect(failing).rejects.toThrow('no');
  await next;
  expect(done).toEqual(['first', 'second']);
});
