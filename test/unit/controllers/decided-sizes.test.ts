import { beforeEach, describe, expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import { FINALIZER } from '../../../operator/api/group.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { desiredSizes } from '../../../operator/capacity/desired-sizes.ts';
import { DecidedSizes } from '../../../operator/controllers/decided-sizes.ts';
import type { ManagedFacts } from '../../../operator/controllers/managed/facts.ts';
import { planWorkerCluster } from '../../../operator/controllers/workercluster/plan.ts';
import { SECRETS, type Secret } from '../../../operator/kube/resources.ts';
import { providerNamed } from '../../../providers/index.ts';
import { buildCloudProfile, buildWorkerCluster } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { managedOnly } from '../../kit/managed-only.ts';
import { MemoryApiServer } from '../../kit/memory-api-server.ts';
import { MemoryCloud } from '../../kit/memory-cloud.ts';

const NOW = new Date('2026-11-22T00:00:00Z');
const OPERATOR = 'kube-system';
const KEY = 'shop/one';

const profile = (mode: 'Hosted' | 'Managed') =>
  buildCloudProfile({
    metadata: { name: 'cloud' },
    spec: {
      type: 'cloud',
      kubernetes: { versions: [{ version: '1.36.3', classification: 'supported' }] },
      machineTypes: [{ name: 'medium', cpu: 2, gpu: 0, memory: '8Gi' }],
      regions: [{ name: 'here', zones: [{ name: 'here-a' }] }],
      defaults: { mode, region: 'here', machineType: 'medium' },
    },
  });
const PLAIN = [
  { name: 'a', minimum: 1, maximum: 9 },
  { name: 'b', minimum: 1, maximum: 9 },
];
const cluster = (spec: object = {}, uid = 'u1'): WorkerCluster =>
  buildWorkerCluster({
    metadata: { name: 'one', namespace: 'shop', uid, generation: 1, finalizers: [FINALIZER] },
    spec: {
      cloudProvider: 'cloud',
      controlPlaneNodes: 1,
      credentialsRef: { name: 'bound' },
      pools: PLAIN.map((one) => ({ ...one, autoscale: 'Coppice' })),
      ...spec,
    },
  });

let server: MemoryApiServer;
/** An operator that has just started: what it knows is what its cache shows. `sees` may change while it runs. */
function start(sees = { synced: true, server: true }): DecidedSizes {
  const cache = {
    get synced() {
      return sees.synced;
    },
    get: (key: string) =>
      sees.synced && sees.server ? server.find<Secret>(SECRETS, key.split('/')[1]!, OPERATOR) : undefined,
    list: () => [],
    absorb: () => {},
    waitFor: async <R>(seen: () => R | undefined | false): Promise<R> => {
      const result = seen();
      if (!result) throw new Error('nobody sees it');
      return result;
    },
  };
  return new DecidedSizes(server, OPERATOR, cache);
}

const pool = (name: string, of = cluster()) =>
  desiredSizes({ cluster: of, profile: profile('Hosted') }).find((one) => one.name === name)!;
const decide = (sizes: DecidedSizes, count: number, name = 'a', of = cluster()) =>
  sizes.decide({
    key: KEY,
    uid: of.metadata.uid!,
    pool: pool(name, of),
    size: { count, by: 'Coppice', why: 'pods wait' },
  });

/** One look of the operator at a hosted cluster: the workers of its Shoot afterwards, and what is said. */
function reconcile(sizes: DecidedSizes, shoot: Shoot | undefined, of = cluster()) {
  const decided = sizes.get(KEY, of.metadata.uid!);
  const view = {
    cluster: of,
    profile: profile('Hosted'),
    profileNames: ['cloud'],
    provider: providerNamed('simulated'),
  };
  const plan = planWorkerCluster({ ...view, shoot, decided }, NOW);
  const next = plan.shoot ?? shoot;
  return {
    shoot: next,
    nodes: next?.spec.provider.workers?.map(({ name, minimum }) => `${name} ${minimum}`).join(', '),
    said: findCondition(plan.status.conditions, 'SizeDecided'),
    granted: plan.status.admitted?.pools.map(({ name, count }) => `${name} ${count}`).join(', '),
  };
}

const receiptOf = () => [...server.objects.values()].find(({ kind }) => kind === 'Secret') as Secret | undefined;
const spoil = (text: string) =>
  server.put({ ...receiptOf()!, data: { record: Buffer.from(text).toString('base64') } } as Secret);

beforeEach(() => {
  server = new MemoryApiServer();
});

describe('a restarted operator keeps the decided sizes', () => {
  let before: Shoot | undefined;
  beforeEach(async () => {
    const first = start();
    await decide(first, 5);
    before = reconcile(first, undefined).shoot;
    expect(reconcile(first, before)).toMatchObject({ nodes: 'a 5, b 1', granted: 'a 5, b 1' });
  });

  it('with an empty cache, and uses the receipt once found', () => {
    const sees = { synced: false, server: true };
    const restarted = start(sees);
    const blind = reconcile(restarted, before);
    expect(blind).toMatchObject({ nodes: 'a 5, b 1', said: { status: 'Unknown', reason: 'ReceiptUnreadable' } });
    expect(blind.said?.message).toContain('each keeps the nodes that it has');
    sees.synced = true;
    expect(reconcile(restarted, blind.shoot)).toMatchObject({ nodes: 'a 5, b 1', said: { reason: 'Decided' } });
  });

  it.each(['{', '"5"', '{"uid":"u1"}', '{"uid":"u1","pools":{"a":{"count":-1}}}', '{"uid":"u1","pools":{"a":null}}'])(
    'with a receipt that says %s it stays as it is, however often it looks',
    async (text) => {
      spoil(text);
      const restarted = start();
      let shoot = before;
      for (let look = 0; look < 3; look++) {
        const seen = reconcile(restarted, shoot);
        expect(seen).toMatchObject({ nodes: 'a 5, b 1', said: { status: 'Unknown' } });
        ({ shoot } = seen);
      }
      // What it says of other pools is not thrown away.
      await expect(decide(restarted, 3, 'b')).rejects.toThrow('cannot be read');
    },
  );

  it('with a receipt whose labels were changed', () => {
    const receipt = receiptOf()!;
    server.put({ ...receipt, metadata: { ...receipt.metadata, labels: {} } });
    expect(reconcile(start(), before).nodes).toBe('a 5, b 1');
    server.put({ ...receipt, metadata: { ...receipt.metadata, labels: { 'multi-cluster.demo.io/role': 'other' } } });
    expect(reconcile(start(), before)).toMatchObject({ nodes: 'a 5, b 1', said: { status: 'Unknown' } });
  });

  it('unless the receipt is really gone, then the minimum applies', () => {
    server.objects.clear();
    expect(reconcile(start(), before)).toMatchObject({ nodes: 'a 1, b 1', said: undefined });
  });

  it('and a size fixed by a person, which only people change', async () => {
    const fixed = cluster({ dataPlaneNodes: 3, pools: PLAIN });
    expect(reconcile(start({ synced: false, server: true }), before, fixed)).toMatchObject({
      nodes: 'a 2, b 1',
      said: undefined,
    });
    expect(reconcile(start(), before, fixed)).toMatchObject({ nodes: 'a 2, b 1', said: undefined });
    server.writes.length = 0;
    expect(await decide(start(), 7, 'a', fixed)).toBeUndefined();
    expect(server.writes).toEqual([]);
  });
});

describe('the receipt', () => {
  it('is written once, within the limits, for each pool', async () => {
    const sizes = start();
    expect(await decide(sizes, 20)).toMatchObject({ count: 9 });
    expect(await decide(sizes, 0, 'b')).toMatchObject({ count: 1 });
    const { length } = server.writes;
    await decide(sizes, 20);
    expect(server.writes).toHaveLength(length);
    expect(reconcile(start(), undefined).nodes).toBe('a 9, b 1');
    expect(receiptOf()?.metadata).toMatchObject({
      namespace: OPERATOR,
      name: expect.stringMatching(/^decided-sizes-[0-9a-f]{64}$/),
    });
  });

  it('belongs to one cluster: a new one of the same name begins at its minimum', async () => {
    await decide(start(), 5);
    const anew = cluster({}, 'u2');
    expect(reconcile(start(), undefined, anew).nodes).toBe('a 1, b 1');
    await decide(start(), 3, 'b', anew);
    expect(reconcile(start(), undefined, anew).nodes).toBe('a 1, b 3');
  });

  it('is deleted with its cluster; without one no request is made', async () => {
    await decide(start(), 5);
    const gone = start({ synced: true, server: true });
    await gone.remove(KEY);
    expect(receiptOf()).toBeUndefined();
    server.writes.length = 0;
    await gone.remove(KEY);
    expect(server.writes).toEqual([]);
  });

  it('is visible to all readers before it is acted on', async () => {
    await expect(decide(start({ synced: true, server: false }), 5)).rejects.toThrow('nobody sees it');
  });
});

describe("a person's number of nodes where Coppice decides", () => {
  const scaled = (dataPlaneNodes: number, statedBy?: string) =>
    ({ ...cluster({ dataPlaneNodes }), ...(statedBy && { statedBy }) }) as WorkerCluster;

  it('is a visible minimum with its author and how to give it back; quotas count it', async () => {
    expect(await decide(start(), 2, 'a', scaled(4))).toMatchObject({ count: 2 });
    const seen = reconcile(start(), undefined, scaled(4, 'horizontal-pod-autoscaler'));
    expect(seen).toMatchObject({ nodes: 'a 3, b 1', granted: 'a 3, b 1', said: { status: 'True', reason: 'Floor' } });
    expect(seen.said?.message).toContain('pool a: 3 nodes, raised to the floor');
    expect(seen.said?.message).toContain('written by horizontal-pod-autoscaler');
    expect(seen.said?.message).toContain(
      `kubectl patch wc one -n shop --type=merge -p '{"spec":{"dataPlaneNodes":null}}'`,
    );
  });

  it('fixes nothing above it, and ends when it is given back', async () => {
    await decide(start(), 6);
    expect(reconcile(start(), undefined, scaled(4))).toMatchObject({ nodes: 'a 6, b 1', said: { reason: 'Decided' } });
    await decide(start(), 2);
    expect(reconcile(start(), undefined, scaled(4)).nodes).toBe('a 3, b 1');
    expect(reconcile(start(), undefined).nodes).toBe('a 2, b 1');
  });
});

describe('the permitted decider', () => {
  const planned = (autoscale: string, mode: 'Hosted' | 'Managed', more: object = {}) =>
    planWorkerCluster(
      {
        cluster: cluster({ pools: [{ ...PLAIN[0], autoscale, ...more }] }),
        profile: profile(mode),
        profileNames: ['cloud'],
        provider:
          mode === 'Hosted' ? providerNamed('simulated') : managedOnly('cloud', new MemoryCloud().managed('one')),
        shoot: undefined,
      },
      NOW,
    );

  it('is a cloud only where it has an autoscaler: elsewhere it is refused, and nothing is created', () => {
    const { shoot, status } = planned('Cloud', 'Hosted');
    expect(shoot).toBeUndefined();
    expect(findCondition(status.conditions, 'SpecAccepted')).toMatchObject({
      status: 'False',
      codes: ['ERR_CONFIGURATION_PROBLEM'],
      message: expect.stringContaining('spec.pools[0].autoscale: no cloud has an autoscaler for pool a'),
    });
  });

  it('cannot have an unreadable disruption budget, whose field is named', () => {
    const budgets = [{ nodes: 1 }, { nodes: 0, schedule: '0 8 * * 5-1', duration: '8h' }];
    const { shoot, status } = planned('Coppice', 'Hosted', { disruption: { budgets } });
    expect(shoot).toBeUndefined();
    expect(findCondition(status.conditions, 'SpecAccepted')?.message).toContain(
      'spec.pools[0].disruption.budgets[1].schedule: "0 8 * * 5-1" is no cron expression',
    );
    budgets[1]!.schedule = '0 8 * * 1-5';
    const accepted = planned('Coppice', 'Hosted', { disruption: { budgets } }).status;
    const said = findCondition(accepted.conditions, 'SpecAccepted');
    expect(said?.status).toBe('True');
    expect(said?.message).not.toContain('disruption');
  });

  it('is the chosen cloud: Coppice does not decide, and reports that', () => {
    const { managed, status } = planned('Cloud', 'Managed');
    expect(managed?.desired?.pools[0]).toMatchObject({ minimum: 1, maximum: 9 });
    expect(managed?.desired?.pools[0]).not.toHaveProperty('desired');
    expect(findCondition(status.conditions, 'SizeDecided')?.message).toContain('from 1 to 9 nodes; Coppice stays out');
  });

  it.each([
    ['None', 1],
    ['Coppice', 1],
  ])('%s: not the cloud, which is told a number; quotas count that', (autoscale, desired) => {
    const { managed, status } = planned(autoscale, 'Managed');
    expect(managed?.desired?.pools[0]).toMatchObject({ desired });
    expect(status.admitted?.pools[0]?.count).toBe(1);
  });
});

describe('a managed cluster', () => {
  const facts = (pools: ManagedFacts['pools']): ManagedFacts =>
    partOf<ManagedFacts>({
      seen: true,
      exists: true,
      gone: false,
      settled: true,
      errors: [],
      outputs: {},
      pools,
    });
  const asked = (sizes: DecidedSizes, managed: ManagedFacts) => {
    const provider = managedOnly('cloud', new MemoryCloud().managed('one'));
    const view = {
      cluster: cluster({ pools: [{ ...PLAIN[0], autoscale: 'Coppice' }, PLAIN[1]] }),
      profile: profile('Managed'),
      profileNames: ['cloud'],
      provider,
      shoot: undefined,
    };
    const plan = planWorkerCluster({ ...view, managed, decided: sizes.get(KEY, 'u1') }, NOW);
    return { wish: plan.managed?.desired, granted: plan.status.admitted?.pools.map(({ count }) => count) };
  };
  const sized = (wish: ReturnType<typeof asked>['wish']) => wish?.pools.map(({ desired }) => desired);

  it("has its decided size, which quotas count; the cloud's autoscaler sizes its other pools", async () => {
    await decide(start(), 5);
    const { wish, granted } = asked(start(), facts(undefined));
    expect(sized(wish)).toEqual([5, undefined]);
    expect(granted).toEqual([5, 9]);
  });

  it('keeps its requested size where the receipt is unreadable; without one nothing is requested', async () => {
    await decide(start(), 5);
    const { wish } = asked(start(), facts(undefined));
    const blind = start({ synced: false, server: true });
    expect(sized(asked(blind, facts(wish!.pools)).wish)).toEqual([5, undefined]);
    expect(asked(blind, facts(undefined)).wish).toBeUndefined();
  });
});

describe('a sleep order', () => {
  const order = { asleep: true, by: 'BurstPolicy shop/peak', why: 'it waits', at: '2026-11-22T00:00:00Z' };

  it('is stored beside pool sizes, survives the operator, and each is withdrawn separately', async () => {
    const sizes = start();
    expect(sizes.sleepOrder(KEY, 'u1')).toBe('none');
    await sizes.orderSleep(KEY, 'u1', order);
    await decide(sizes, 5);
    expect(start().sleepOrder(KEY, 'u1')).toEqual(order);
    expect(reconcile(start(), undefined).nodes).toBe('a 5, b 1');
    await sizes.forget(KEY, 'u1', () => false);
    expect(start().sleepOrder(KEY, 'u1')).toEqual(order);
    await decide(sizes, 4);
    await sizes.orderSleep(KEY, 'u1', undefined);
    expect(sizes.sleepOrder(KEY, 'u1')).toBe('none');
    expect(reconcile(start(), undefined).nodes).toBe('a 4, b 1');
  });

  it('is written once, and for this cluster only', async () => {
    const sizes = start();
    await sizes.orderSleep(KEY, 'u1', undefined);
    expect(server.writes).toEqual([]);
    await sizes.orderSleep(KEY, 'u1', order);
    await sizes.orderSleep(KEY, 'u1', order);
    expect(server.writes).toHaveLength(1);
    expect(sizes.sleepOrder(KEY, 'u2')).toBe('none');
  });

  it.each(['{', '{"uid":"u1","pools":{},"sleep":{"asleep":"yes"}}'])('that says %s is not known', async (text) => {
    const sizes = start();
    await sizes.orderSleep(KEY, 'u1', order);
    spoil(text);
    expect(start().sleepOrder(KEY, 'u1')).toBe('unknown');
    await expect(start().orderSleep(KEY, 'u1', undefined)).rejects.toThrow('cannot be read');
  });
});

it('is not lost by simultaneous decisions of two operators', async () => {
  const [one, other] = [start(), start()];
  await Promise.all([
    decide(one, 3, 'a'),
    decide(other, 5, 'b'),
    one.orderSleep(KEY, 'u1', { asleep: true, by: 'shop/peak', why: 'nothing waits', at: NOW.toISOString() }),
  ]);
  const decided = start().get(KEY, 'u1') as ReadonlyMap<string, { count: number }>;
  expect([...decided].map(([name, { count }]) => `${name} ${count}`).sort()).toEqual(['a 3', 'b 5']);
  expect(start().sleepOrder(KEY, 'u1')).toMatchObject({ asleep: true });
});
