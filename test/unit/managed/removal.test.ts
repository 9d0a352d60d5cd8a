import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CoppiceError } from '../../../operator/api/errors.ts';
import { ANNOTATIONS, LABELS } from '../../../operator/api/group.ts';
import { BATCH } from '../../../operator/controllers/autoscaling/batches.ts';
import { Autoscaler } from '../../../operator/controllers/autoscaling/controller.ts';
import { EMPTY } from '../../../operator/controllers/empty-mark.ts';
import type { Node, Pod } from '../../../operator/kube/resources.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { pod } from '../../kit/burst.ts';
import { ManagedGarden, ManagedOperator, memoryProfile, readyNode } from '../../kit/managed-garden.ts';
import { managedOnly } from '../../kit/managed-only.ts';
import { MemoryCloud } from '../../kit/memory-cloud.ts';
import { idle, until } from '../../kit/turns.ts';

type AutoscalingDependencies = ConstructorParameters<typeof Autoscaler>[0];

const MINUTE = 60_000;
const WEB = { name: 'web', minimum: 0, maximum: 5, autoscale: 'Coppice' };

let garden: ManagedGarden;
let cloud: MemoryCloud;
let operators: ManagedOperator[];

beforeEach(() => {
  garden = new ManagedGarden();
  cloud = new MemoryCloud();
  operators = [];
});
afterEach(() => Promise.all(operators.map((operator) => operator.stop())));

function start(name = 'one'): ManagedOperator {
  const operator = new ManagedOperator(garden, cloud, name);
  operators.push(operator);
  return operator;
}

const poolMade = (name = 'web') => [...cloud.made.values()].find(({ type }) => type === `pool ${name}`)!;
const sizeOf = (name = 'web'): number => JSON.parse(poolMade(name).spec).desired;
const names = (): string[] => cloud.nodes(poolMade()).map(({ name }) => name);
const decide = (count: number, ...leaving: string[]) => {
  garden.decided = new Map([['web', { count, by: 'Coppice', why: 'so', ...(leaving.length > 0 && { leaving }) }]]);
};

/** The machines of the cloud are nodes; what is known of those that were is kept, and so are those whose machine is gone, if told so. */
function join(lingering: readonly string[] = []): void {
  const known = new Map(garden.nodes.map((node) => [node.metadata.name, node]));
  const there = cloud.nodes(poolMade()).map(({ name, providerID }): Node => {
    const fresh = readyNode(name, { [LABELS.pool]: 'web' });
    return (
      known.get(name) ?? {
        ...fresh,
        metadata: { ...fresh.metadata, uid: `uid of ${providerID}` },
        spec: { providerID },
      }
    );
  });
  const dead = lingering.filter((name) => !there.some(({ metadata }) => metadata.name === name));
  garden.nodes = [...there, ...dead.map((name) => known.get(name)!)];
}

/** As the autoscaler leaves a node that may go. */
function empty(name: string): void {
  garden.nodes = garden.nodes.map((node) =>
    node.metadata.name === name
      ? {
          ...node,
          metadata: { ...node.metadata, annotations: { [ANNOTATIONS.emptiedSince]: `2026-11-21T00:00:00Z${EMPTY}` } },
          spec: { ...node.spec, unschedulable: true },
        }
      : node,
  );
}

const isApplied = (key: string) => {
  const { applied, left, removing } = garden.receipt(key) ?? {};
  return applied !== undefined && !left && !removing && garden.condition(key, 'InfrastructureReady')?.status === 'True';
};

/** A cluster with so many nodes in its pool. */
async function made(nodes: number, spec: object = {}): Promise<string> {
  decide(nodes);
  const operator = start();
  const key = garden.apply('one', { dataPlaneNodes: undefined, pools: [WEB], ...spec });
  operator.look(key);
  await until(() => poolMade() !== undefined && isApplied(key), 'the cluster to be made');
  join();
  operator.look(key);
  return key;
}

describe('the removal of named nodes of a managed cluster', () => {
  it('follows their drain, affects exactly these, and lowers the stored size', async () => {
    const key = await made(3);
    const [oldest, victim, newest] = names() as [string, string, string];
    empty(victim);
    decide(2, victim);
    operators[0]!.look(key);
    await until(() => sizeOf() === 2 && isApplied(key), 'the node to be gone');
    expect(names()).toEqual([oldest, newest]);
    expect(poolMade().applied, 'the state of the stack').toBe(poolMade().spec);
    expect(cloud.calls.filter((call) => call === 'removeNodes')).toHaveLength(1);
    expect(garden.events).toContain(`Normal NodesRemoved: pool web: removed ${victim}; 2 nodes stay`);
    // Its Node lingers for a minute, and is nobody's reason to ask again.
    join([victim]);
    operators[0]!.look(key);
    await idle();
    garden.clock.advance(MINUTE);
    await idle();
    expect(cloud.calls.filter((call) => call === 'removeNodes')).toHaveLength(1);
    // Whoever looks for what others changed finds nothing.
    garden.annotate(key, { [ANNOTATIONS.operation]: 'reconcile' });
    operators[0]!.look(key);
    await until(() => cloud.calls.filter((call) => call === 'apply').length === 3, 'another run');
    expect(names()).toEqual([oldest, newest]);
  });

  it.each([
    ['before the cloud is asked', 'removeNodes'],
    ['after the cloud has ended the machine, before anybody noted it', 'nodes removed'],
    ['while the smaller size is applied', 'pool web'],
  ])('go once though the operator is killed %s, and others were wanted meanwhile', async (_when, step) => {
    const key = await made(3);
    const [oldest, victim, newest] = names() as [string, string, string];
    empty(victim);
    decide(2, victim);
    const pause = cloud.pause(step);
    operators[0]!.look(key);
    await pause.reached;
    operators[0]!.kill();
    cloud.kill('one');
    // Pods have come that need three nodes again.
    decide(3);
    start('two').look(key);
    await until(() => isApplied(key) && sizeOf() === 3, 'three nodes again');
    expect(names()).toHaveLength(3);
    expect(names()).toEqual(expect.arrayContaining([oldest, newest]));
    expect(names()).not.toContain(victim);
    expect(poolMade().applied).toBe(poolMade().spec);
  });

  it('waits while they have pods, without a smaller size in the cloud', async () => {
    const key = await made(2);
    const [first, victim] = names() as [string, string];
    empty(victim);
    const left: Pod = { ...pod('1'), spec: { ...pod('1').spec, nodeName: victim } };
    garden.pods = [left];
    decide(1, victim);
    operators[0]!.look(key);
    await idle();
    garden.clock.advance(MINUTE);
    await idle();
    expect(names()).toEqual([first, victim]);
    expect(garden.condition(key, 'InfrastructureReady')).toMatchObject({ status: 'True' });
    // Another change is made all the same.
    garden.apply('one', { dataPlaneNodes: undefined, pools: [WEB, { name: 'more', minimum: 1 }] });
    operators[0]!.look(key);
    await until(() => poolMade('more') !== undefined && isApplied(key), 'the other pool');
    expect(names()).toEqual([first, victim]);
    garden.pods = [];
    garden.clock.advance(MINUTE);
    await until(() => isApplied(key) && sizeOf() === 1, 'the node to be gone');
    expect(names()).toEqual([first]);
  });

  it('waits while the cluster is unreachable', async () => {
    const key = await made(2);
    const [first, victim] = names() as [string, string];
    empty(victim);
    garden.goSilent(true);
    decide(1, victim);
    operators[0]!.look(key);
    await idle();
    garden.clock.advance(MINUTE);
    await idle();
    expect(names()).toEqual([first, victim]);
    garden.goSilent(false);
    garden.clock.advance(MINUTE);
    await until(() => isApplied(key) && sizeOf() === 1, 'the node to be gone');
    expect(names()).toEqual([first]);
  });

  it('that the cloud refuses is reported, and pools still grow', async () => {
    const key = await made(2);
    const [first, victim] = names() as [string, string];
    empty(victim);
    cloud.refusal = new CoppiceError('ERR_INFRA_UNAUTHORIZED', 'the credentials may not end machines');
    decide(1, victim);
    operators[0]!.look(key);
    const told = () => garden.clusters.get(key)?.status?.lastErrors?.map(({ description }) => description) ?? [];
    await until(() => told().some((line) => line.includes('may not end machines')), 'the refusal to be told');
    expect(names()).toEqual([first, victim]);
    garden.apply('one', { dataPlaneNodes: undefined, pools: [WEB, { name: 'more', minimum: 1 }] });
    operators[0]!.look(key);
    await until(() => poolMade('more') !== undefined && isApplied(key), 'the other pool');
    expect(names()).toEqual([first, victim]);
    decide(4);
    operators[0]!.look(key);
    await until(() => isApplied(key) && sizeOf() === 4, 'the pool to grow');
    expect(names()).toEqual(expect.arrayContaining([first, victim]));
  });

  it('follows a lower minimum in the cloud, where it was too high', async () => {
    const key = await made(2, { pools: [{ ...WEB, minimum: 2 }] });
    const [first, victim] = names() as [string, string];
    empty(victim);
    const before = cloud.calls.length;
    garden.apply('one', { dataPlaneNodes: undefined, pools: [WEB] });
    decide(1, victim);
    operators[0]!.look(key);
    await until(() => isApplied(key) && sizeOf() === 1, 'the node to be gone');
    expect(names()).toEqual([first]);
    const made_ = cloud.calls.slice(before).filter((call) => call === 'apply' || call === 'removeNodes');
    expect(made_).toEqual(['apply', 'removeNodes', 'apply']);
  });
});

describe('a managed pool that Coppice sizes', () => {
  it('loses the drained unused node only, and its stored size is smaller', async () => {
    const key = await made(2);
    const [busy, idleNode] = names() as [string, string];
    const on = (name: string, node: string): Pod => {
      const one = pod('1');
      return {
        ...one,
        metadata: { ...one.metadata, name },
        spec: { ...one.spec, nodeName: node },
        status: { phase: 'Running' },
      };
    };
    garden.pods = [on('web-1', busy)];
    const autoscaler = autoscalerOf(key);
    const look = async (minutes: number) => {
      garden.clock.advance(minutes * MINUTE);
      autoscaler.noteChange(key);
      garden.clock.advance(BATCH.mostMs);
      await autoscaler.reconcile(key, new AbortController().signal);
      operators[0]!.look(key);
      await idle();
    };
    for (const minutes of [0, 6, 6, 0]) await look(minutes);
    await until(() => isApplied(key) && sizeOf() === 1, 'the node to be gone');
    expect(names()).toEqual([busy]);
    expect(garden.decided).toEqual(new Map([['web', expect.objectContaining({ count: 1, leaving: [idleNode] })]]));
    // Its Node lingers; then pods need a node again, and get a new one: nobody lets them go to the dead one.
    join([idleNode]);
    garden.pods = [on('web-1', busy), { ...pod('1500m'), status: { phase: 'Pending', conditions: UNSCHEDULABLE } }];
    await look(1);
    await until(() => isApplied(key) && sizeOf() === 2, 'a new node');
    expect(garden.nodes.find(({ metadata }) => metadata.name === idleNode)?.spec.unschedulable).toBe(true);
    expect(names()).toEqual([busy, expect.not.stringMatching(idleNode)]);
  });

  it('keeps its size when the cloud reclaims the leaving node and replaces it', async () => {
    const key = await made(2);
    const [first, victim] = names() as [string, string];
    decide(1, victim);
    // Interrupted before anybody was asked to end it.
    poolMade().machines = poolMade().machines!.filter((serial) => victim !== `web-${serial}`);
    join();
    operators[0]!.look(key);
    await idle();
    expect(sizeOf()).toBe(2);
    const autoscaler = autoscalerOf(key);
    autoscaler.noteChange(key);
    garden.clock.advance(BATCH.mostMs);
    await autoscaler.reconcile(key, new AbortController().signal);
    expect(garden.decided).toEqual(
      new Map([
        ['web', expect.objectContaining({ count: 2, why: 'the cloud replaced a node that was being removed' })],
      ]),
    );
    operators[0]!.look(key);
    await idle();
    expect(names()).toEqual([first, expect.not.stringMatching(victim)]);
  });
});

const UNSCHEDULABLE = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] as never;

/** The real autoscaler of the one cluster. */
function autoscalerOf(key: string): Autoscaler {
  const provider = managedOnly('memory', cloud.managed());
  const patch = (name: string, change: { metadata: { annotations?: Record<string, string | null> }; spec: object }) => {
    garden.nodes = garden.nodes.map((node) => {
      if (node.metadata.name !== name) return node;
      const annotations = Object.entries({ ...node.metadata.annotations, ...change.metadata.annotations });
      const left = Object.fromEntries(annotations.filter(([, value]) => value !== null)) as Record<string, string>;
      return { ...node, metadata: { ...node.metadata, annotations: left }, spec: { ...node.spec, ...change.spec } };
    });
  };
  const deps = partOf<AutoscalingDependencies>({
    clusters: { get: () => garden.clusters.get(key), byIndex: () => [] },
    profiles: { get: () => memoryProfile },
    shoots: { get: () => undefined, byIndex: () => [] },
    quotas: { byIndex: () => [] },
    openClusters: {
      get: () => ({
        client: {
          mergePatch: async (_: object, name: string, __: undefined, change: Parameters<typeof patch>[1]) =>
            patch(name, change),
          list: async () => ({ items: [] }),
          evict: async (one: Pod) => {
            garden.pods = garden.pods.filter(({ metadata }) => metadata.name !== one.metadata.name);
            return { outcome: 'evicted' };
          },
        },
        nodes: { list: () => garden.nodes },
        pods: { list: () => garden.pods },
      }),
    },
    capacity: { known: () => ({ depleted: [], tries: [] }), interrupted: () => {} },
    granted: new Map(),
    decided: () => garden.decided,
    managed: (at: string, uid: string | undefined) => operators[0]!.controller.facts(at, uid),
    provider: () => provider,
    now: () => garden.now(),
    sizes: {
      decide: async ({ pool, size }: { pool: { name: string }; size: object }) => {
        garden.decided = new Map([[pool.name, size as never]]);
      },
      forget: async () => {},
    },
    recordEvent: (_: object, type: string, reason: string, message: string) =>
      void garden.events.push(`${type} ${reason}: ${message}`),
    tell: () => {},
  });
  return new Autoscaler(deps, { ...BATCH, patienceMs: 5 * MINUTE });
}
