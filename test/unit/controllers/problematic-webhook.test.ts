import { expect, it } from 'vitest';
import { CoppiceError } from '../../../operator/api/errors.ts';
import { retryDelayMs } from '../../../operator/controllers/backoff.ts';
import { codesOfRefusal, explainWebhook, webhookIn } from '../../../operator/controllers/problematic-webhook.ts';
import { scaleIn } from '../../../operator/controllers/shoot/machines/machine-removal.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { addonsCondition } from '../../../operator/controllers/shoot/status/addons-condition.ts';
import { systemCondition } from '../../../operator/controllers/shoot/status/node-conditions.ts';
import {
  leasesBlocked,
  nodesBlocked,
  podsBlocked,
  whileLooking,
} from '../../../operator/controllers/shoot/tasks/blocked-inside.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import type { Machine } from '../../../providers/contract.ts';
import { partOf } from '../../kit/builders/partial.ts';

// As kube-apiserver 1.36 answered to the cases that issue 25 names.
const DEAD =
  'Internal error occurred: failed calling webhook "all.policy.example.com": failed to call webhook: Post "https://policy.policy.svc:443/v?timeout=5s": service "policy" not found';
const dead = () => new KubeApiError('PATCH /api/v1/nodes/a', 500, { reason: 'InternalError', message: DEAD });
const never = new AbortController().signal;

it.each([
  ['does not answer', DEAD, 'all.policy.example.com'],
  ['denies', 'admission webhook "deny.example.com" denied the request: no', 'deny.example.com'],
  ['was not asked', 'admission webhook "w" does not support dry run', undefined],
  ['has no part', 'nodes "a" is forbidden: User "x" cannot patch', undefined],
])('webhookIn names a webhook that %s', (_, text, name) => {
  expect(webhookIn(text)).toBe(name);
  expect(codesOfRefusal(text)).toEqual(name ? ['ERR_PROBLEMATIC_WEBHOOK'] : []);
});

it('a webhook error has its own code, names the webhook, and is retried within minutes', () => {
  expect(explainWebhook(dead())).toMatchObject({
    code: 'ERR_PROBLEMATIC_WEBHOOK',
    message: expect.stringContaining('webhook "all.policy.example.com" of the cluster'),
  });
  const known = explainWebhook(dead());
  expect(explainWebhook(known)).toBe(known);
  const other = new CoppiceError('ERR_CONFIGURATION_PROBLEM', 'no such type');
  expect(explainWebhook(other)).toBe(other);
  expect(retryDelayMs('ERR_PROBLEMATIC_WEBHOOK', 99, 0.5)).toBe(120_000);
});

it('nodesBlocked detects a webhook that rejects nodes, by a dry run', async () => {
  const asked: object[] = [];
  const answering = (error?: Error) => ({
    create: async (object: object, options?: object) => {
      asked.push(options!);
      if (error) throw error;
      return object;
    },
  });
  expect(await nodesBlocked(answering(dead()) as never, never)).toContain(DEAD);
  expect(await leasesBlocked(answering(dead()) as never, never)).toContain(DEAD);
  // A policy that wants labels denies the bare trial, and no real node.
  const denied = 'admission webhook "labels.example.com" denied the request: a Node needs the label team';
  expect(await nodesBlocked(answering(new Error(denied)) as never, never)).toBeUndefined();
  expect(await nodesBlocked(answering() as never, never)).toBeUndefined();
  expect(await nodesBlocked(answering(new Error('no connection')) as never, never)).toBeUndefined();
  for (const options of asked) expect(options).toMatchObject({ dryRun: true });
});

it('podsBlocked detects a webhook because of which a Deployment has no pods', async () => {
  const condition = (message: string) => ({ type: 'ReplicaFailure', status: 'True', message });
  const look = (conditions: object[], create = async (): Promise<object> => ({})) =>
    podsBlocked(
      { create, getOrUndefined: async () => ({ status: { conditions } }) } as never,
      'coredns',
      'kube-system',
      never,
    );
  expect(await look([condition(DEAD)])).toBe(DEAD);
  expect(await look([condition('exceeded quota')])).toBeUndefined();
  expect(await look([])).toBeUndefined();
  expect(await look([], () => Promise.reject(dead()))).toContain(DEAD);
});

it('whileLooking reports nothing more once the awaited state is reached', async () => {
  const blocked = new Map<'nodes' | 'system', string>([['system', DEAD]]);
  const noticed: number[] = [];
  const op = partOf<Operation>({ state: { blocked }, notice: () => void noticed.push(blocked.size) });
  await expect(
    whileLooking(
      op,
      'system',
      async () => DEAD,
      () => Promise.reject(new Error('late')),
      never,
    ),
  ).rejects.toThrow('late');
  expect(blocked.size).toBe(1);
  await whileLooking(
    op,
    'system',
    async () => DEAD,
    async () => {},
    never,
  );
  expect(noticed).toEqual([0]);
});

/** A local cluster of one machine whose webhooks refuse every write. */
function testbed(sleeps: boolean) {
  const node = {
    metadata: { name: 'a', labels: {} },
    spec: {},
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  };
  const removed: string[] = [];
  const refuse = () => Promise.reject(dead());
  const state = {
    draining: new Map<string, string>(),
    connection: {
      nodes: { list: () => [node], get: () => node },
      podsOn: () => [],
      deleteNode: refuse,
      client: { mergePatch: refuse },
    },
  };
  const op = partOf<Operation>({
    sleeps,
    state,
    provider: {
      listMachines: async () => [{ name: 'a', nodeName: 'a', pool: 'web', phase: 'Running' } as Machine],
      removeMachines: async (_: unknown, _pool: string, names: string[]) => void removed.push(...names),
    },
    context: () => ({}),
    pools: [{ name: 'web', count: 0 }],
    values: { namespace: 'ns' },
    seed: { pods: { get: () => undefined, synced: true, onAnyChange: () => () => {} } },
    shoot: { spec: { provider: {} } },
    notice: () => {},
    deps: { recordEvent: () => {}, now: () => new Date(0) },
  });
  return { op, removed, draining: state.draining };
}

it('a cluster falls asleep although a webhook rejects cordons or deletions of its nodes', async () => {
  const { op, removed } = testbed(true);
  await scaleIn(op, never);
  expect(removed).toEqual(['a']);
});

it('an awake cluster keeps a machine whose node cannot be cordoned', async () => {
  const { op, removed } = testbed(false);
  await expect(scaleIn(op, never)).rejects.toThrow('all.policy.example.com');
  expect(removed).toEqual([]);
});

it('cluster DNS with pods on removed nodes is not serving, and the webhook that keeps them is named', () => {
  const told = (nodeName: string, blocked: Map<'system' | 'nodes', string>) => {
    const dns = {
      metadata: { labels: { 'k8s-app': 'kube-dns' } },
      spec: { nodeName },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    };
    const inside = { nodes: [{ metadata: { name: 'new' }, spec: {} }], pods: [dns], machines: [] };
    const { status, message, codes } = systemCondition({ inside, pools: [], blocked } as never, 1);
    return { status, message, codes };
  };
  expect(told('new', new Map()).status).toBe('True');
  expect(told('gone', new Map([['system', DEAD]]))).toEqual({
    status: 'False',
    message: `cluster DNS is not ready yet (1 pods): ${DEAD}`,
    codes: ['ERR_PROBLEMATIC_WEBHOOK'],
  });
});

it.each([
  ['a dead webhook', DEAD, 'ProblematicWebhook', 'webhook "all.policy.example.com" of the cluster refuses'],
  [
    'a policy',
    'deployments.apps "coredns" is forbidden: labels',
    'RefusedByAdmission',
    'an admission policy of the cluster',
  ],
])('SystemComponentsHealthy and AddonsReady name %s', (_, refused, reason, begins) => {
  const shoot = { spec: { addons: { metricsServer: { enabled: true } } } };
  const inside = { nodes: [], pods: [], machines: [] };
  const facts = { shoot, inside, pools: [], systemRefused: refused, metricsServer: { refused } } as never;
  const message = expect.stringMatching(new RegExp(`^${begins}`));
  for (const said of [systemCondition(facts, 1), addonsCondition(facts, 1)])
    expect(said).toMatchObject({ status: 'False', reason, message });
  const blocked = { inside, pools: [], blocked: new Map([['system', refused]]) } as never;
  expect(systemCondition(blocked, 1)).toMatchObject({ reason });
});
