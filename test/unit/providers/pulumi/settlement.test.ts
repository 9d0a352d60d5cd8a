import { describe, expect, it } from 'vitest';
import {
  addFound,
  missingFrom,
  neverRead,
  type PlannedResource,
  pendingCreates,
  settlePending,
  wantedOf,
  withoutUnknown,
} from '../../../../providers/pulumi/settlement.ts';
import {
  type pendingOf,
  type StackState,
  type StateResource,
  stackResourcesOf,
} from '../../../../providers/pulumi/stack-state.ts';

type PendingOperation = ReturnType<typeof pendingOf>[number];

const UNKNOWN = '04da6b54-80e4-46f7-96ec-b56ff0331ba9';
const urn = (type: string, name: string) => `urn:pulumi:t.cluster::coppice::${type}::${name}`;
const ROOT: StateResource = {
  urn: urn('pulumi:pulumi:Stack', 'coppice-t.cluster'),
  type: 'pulumi:pulumi:Stack',
  custom: false,
};
const PROVIDER: StateResource = {
  urn: urn('pulumi:providers:aws', 'aws'),
  type: 'pulumi:providers:aws',
  custom: true,
  id: 'p-1',
};

const resource = (name: string, more: Partial<StateResource> = {}): StateResource => ({
  urn: urn('aws:eks/cluster:Cluster', name),
  type: 'aws:eks/cluster:Cluster',
  custom: true,
  id: `id-${name}`,
  parent: ROOT.urn,
  provider: `${PROVIDER.urn}::p-1`,
  ...more,
});
const stateOf = (resources: StateResource[], pending: PendingOperation[] = []): StackState => ({
  version: 3,
  deployment: { manifest: { time: 'then' }, resources, pending_operations: pending },
});
const pending = (type: PendingOperation['type'], name: string): PendingOperation => ({
  type,
  resource: resource(name, { id: undefined, inputs: { name } }),
});
const urnsOf = ({ deployment }: StackState) =>
  (deployment?.resources ?? []).map((one) => `${one.urn.split('::').at(-1)}${one.delete ? ' (to go)' : ''}=${one.id}`);

describe("the settlement of a killed run's pending operations", () => {
  it.each<[string, StateResource[], PendingOperation[], Record<string, string>, string[], string[]]>([
    ['was made: it is the stack’s', [], [pending('creating', 'a')], { a: 'id-9' }, ['a=id-9'], ['a']],
    ['was not made: it never happened', [], [pending('creating', 'a')], {}, [], []],
    ['of two, one was made', [], [pending('creating', 'a'), pending('creating', 'b')], { b: '9' }, ['b=9'], ['b']],
    ['an update: what it is now is read again', [resource('a')], [pending('updating', 'a')], {}, ['a=id-a'], ['a']],
    [
      'a deletion: still the stack’s, if it is there',
      [resource('a')],
      [pending('deleting', 'a')],
      {},
      ['a=id-a'],
      ['a'],
    ],
    ['a look-up: nothing', [], [pending('reading', 'a')], { a: '9' }, [], []],
    [
      'a successor was made: the old one is still to go',
      [resource('a')],
      [pending('creating', 'a')],
      { a: 'id-new' },
      ['a (to go)=id-a', 'a=id-new'],
      ['a'],
    ],
    ['a successor was not made', [resource('a')], [pending('creating', 'a')], { a: 'id-a' }, ['a=id-a'], ['a']],
  ])('decides: %s', (_, resources, operations, found, expected, suspects) => {
    const ids = new Map(Object.entries(found).map(([name, id]) => [resource(name).urn, { id }]));
    const settled = settlePending(stateOf(resources, operations), ids);
    expect(urnsOf(settled.state)).toEqual(expected);
    expect(settled.suspects).toEqual(suspects.map((name) => resource(name).urn));
    expect(settled.state.deployment?.pending_operations).toEqual([]);
  });

  it('keeps the rest of the state', () => {
    const { state } = settlePending(stateOf([ROOT], [pending('creating', 'a')]), new Map());
    expect(state).toEqual({ ...stateOf([ROOT]), version: 3 });
  });

  it('searches for what was being created, by its inputs', () => {
    const state = stateOf([], [pending('creating', 'a'), pending('updating', 'b')]);
    expect(pendingCreates(state).map(wantedOf)).toEqual([
      { urn: resource('a').urn, type: 'aws:eks/cluster:Cluster', name: 'a', inputs: { name: 'a' } },
    ]);
  });
});

describe('existing resources that the state lacks', () => {
  const planned: PlannedResource[] = [
    { ...ROOT },
    { ...PROVIDER, inputs: { region: 'eu-central-1' } },
    ...['network', 'cluster', 'pool'].map((name) => ({
      ...resource(name, { id: undefined, provider: `${PROVIDER.urn}::${UNKNOWN}` }),
      inputs: { name, on: UNKNOWN, password: '[secret]' },
    })),
  ];
  const find = (...names: string[]) => new Map(names.map((name) => [resource(name).urn, { id: `found-${name}` }]));

  it("are searched for only if they are the cloud's and not in the state", () => {
    expect(missingFrom(stateOf([ROOT, resource('network')]), planned).map((one) => wantedOf(one).name)).toEqual([
      'cluster',
      'pool',
    ]);
  });

  it('are added to an empty state with their provider and parents', () => {
    const { state, suspects } = addFound(stateOf([]), planned, find('network', 'pool'), () => 'new-id');
    expect(urnsOf(state)).toEqual([
      'coppice-t.cluster=undefined',
      'aws=new-id',
      'network=found-network',
      'pool=found-pool',
    ]);
    expect(suspects).toEqual([resource('network').urn, resource('pool').urn]);
    const pool = state.deployment!.resources!.at(-1)!;
    expect(pool).toMatchObject({ provider: `${PROVIDER.urn}::new-id`, parent: ROOT.urn, inputs: { name: 'pool' } });
    // A run that ends here leaves them so: the next one sees that they were never read.
    expect(neverRead(state)).toEqual(suspects);
    const read = stackResourcesOf(state).map((one) => ({ ...one, outputs: { id: one.id } }));
    expect(neverRead(stateOf(read))).toEqual([]);
    // So that a destruction that follows at once takes them away in the reverse order.
    expect(pool.dependencies).toEqual([resource('network').urn]);
  });

  it('stay in the cloud without the stack if others created them', () => {
    const found = new Map([
      [resource('network').urn, { id: 'n' }],
      [resource('cluster').urn, { id: 'c', retain: true }],
    ]);
    const { state } = addFound(stateOf([]), planned, found, () => 'new-id');
    const kept = state.deployment!.resources!.map(({ urn, retainOnDelete }) => [
      urn.split('::').at(-1),
      retainOnDelete,
    ]);
    expect(kept.filter(([, retained]) => retained)).toEqual([['cluster', true]]);
  });

  it('have only the certain inputs, if these are known', () => {
    const found = new Map([[resource('cluster').urn, { id: 'c', inputs: { group: 'theirs' } }]]);
    const { state } = addFound(stateOf([]), planned, found, () => 'new-id');
    expect(state.deployment!.resources!.at(-1)!.inputs).toEqual({ group: 'theirs' });
  });

  it('use the provider in the state', () => {
    const { state } = addFound(
      stateOf([ROOT, PROVIDER, resource('network')]),
      planned,
      find('cluster'),
      () => 'new-id',
    );
    expect(urnsOf(state)).toEqual([
      'coppice-t.cluster=undefined',
      'aws=p-1',
      'network=id-network',
      'cluster=found-cluster',
    ]);
    expect(state.deployment!.resources!.at(-1)!.provider).toBe(`${PROVIDER.urn}::p-1`);
  });

  it('change nothing when there are none', () => {
    const state = stateOf([ROOT]);
    expect(addFound(state, planned, new Map(), () => 'x')).toEqual({ state, suspects: [] });
  });
});

it('withoutUnknown removes unknown and secret values at any depth', () => {
  const secret = { '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270', ciphertext: '[secret]' };
  expect(withoutUnknown({ kept: 1, userData: secret })).toEqual({ kept: 1 });
  expect(withoutUnknown({ a: UNKNOWN, b: ['x', UNKNOWN, { c: '[secret]', d: 1 }], e: null })).toEqual({
    b: ['x', { d: 1 }],
    e: null,
  });
});
