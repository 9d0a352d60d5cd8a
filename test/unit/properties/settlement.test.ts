import { describe, expect } from 'vitest';
import {
  addFound,
  missingFrom,
  type PlannedResource,
  pendingCreates,
  settlePending,
} from '../../../providers/pulumi/settlement.ts';
import {
  isInCloud,
  pendingOf,
  type StackState,
  type StateResource,
  stackResourcesOf,
} from '../../../providers/pulumi/stack-state.ts';
import { type Draw, holds } from '../../kit/property.ts';

type PendingOperation = ReturnType<typeof pendingOf>[number];

const urn = (type: string, name: string) => `urn:pulumi:t.cluster::coppice::${type}::${name}`;
const STACK = urn('pulumi:pulumi:Stack', 'coppice-t.cluster');
const PROVIDER = urn('pulumi:providers:aws', 'aws');
const TYPE = 'aws:eks/nodeGroup:NodeGroup';

/** A program: a stack, its provider, components, and resources in one of them or none. */
function program(choose: Draw): PlannedResource[] {
  const components = choose.many(choose.integer(0, 2), (index) => ({
    urn: urn('coppice:Component', `part-${index}`),
    type: 'coppice:Component',
    custom: false,
    parent: STACK,
  }));
  const parents = [STACK, ...components.map((one) => one.urn)];
  return [
    { urn: STACK, type: 'pulumi:pulumi:Stack', custom: false },
    { urn: PROVIDER, type: 'pulumi:providers:aws', custom: true, parent: STACK, inputs: { region: 'here' } },
    ...components,
    ...choose.many(choose.integer(1, 8), (index) => ({
      urn: urn(TYPE, `r${index}`),
      type: TYPE,
      custom: true,
      parent: choose.pick(parents),
      provider: `${PROVIDER}::04da6b54-80e4-46f7-96ec-b56ff0331ba9`,
      inputs: { name: `r${index}` },
    })),
  ];
}

/** A cloud and a state that differ as a crash, or the loss of the state, may leave them. */
function crashed(choose: Draw, planned: readonly PlannedResource[]) {
  const cloud = new Map<string, string>();
  const resources: StateResource[] = [];
  const pending: PendingOperation[] = [];
  const isLost = choose.chance(0.2);
  for (const one of planned) {
    const known: StateResource = { ...one, ...(one.custom && { id: `id-${one.urn.split('::').at(-1)}` }) };
    if (!isInCloud(one)) {
      if (!isLost) resources.push(known);
      continue;
    }
    const what = choose.pick([
      'made',
      'made',
      'not begun',
      'creating, made',
      'creating, not made',
      'made, answer lost',
      'being replaced',
      'updating',
      'deleting',
    ]);
    const unmade = { ...one, inputs: one.inputs ?? {} } as StateResource;
    if (what !== 'not begun' && what !== 'creating, not made') cloud.set(one.urn, `id-${one.urn.split('::').at(-1)}`);
    if (isLost) continue;
    if (what === 'made' || what === 'updating' || what === 'deleting') resources.push(known);
    if (what.startsWith('creating')) pending.push({ type: 'creating', resource: unmade });
    if (what === 'updating' || what === 'deleting') pending.push({ type: what, resource: known });
    if (what === 'being replaced') {
      resources.push({ ...known, id: `old-${one.urn.split('::').at(-1)}` });
      pending.push({ type: 'creating', resource: unmade });
    }
  }
  const state: StackState = { version: 3, deployment: { resources, pending_operations: pending } };
  return { state, cloud };
}

const idsOf = (state: StackState) =>
  stackResourcesOf(state).flatMap((one) => (isInCloud(one) && one.id ? [one.id] : []));
const found = (cloud: ReadonlyMap<string, string>) => new Map([...cloud].map(([key, id]) => [key, { id }]));
const only = (cloud: ReadonlyMap<string, string>, resources: readonly { urn: string }[]) =>
  new Map(resources.flatMap(({ urn: key }) => (cloud.has(key) ? [[key, { id: cloud.get(key)! }] as const] : [])));

/** What the engine refuses to take as a state: the same twice, or something that comes before what it is in or made by. */
function expectSound(state: StackState): void {
  const before = new Set<string>();
  const living = new Set<string>();
  for (const { urn: own, parent, provider, dependencies = [], delete: isLeaving } of stackResourcesOf(state)) {
    if (!isLeaving) expect(living.has(own), `${own} is there twice`).toBe(false);
    if (!isLeaving) living.add(own);
    for (const needed of [parent, provider?.slice(0, provider.lastIndexOf('::')), ...dependencies])
      if (needed) expect(before.has(needed), `${own} comes before ${needed}`).toBe(true);
    before.add(own);
  }
}

describe('a state after a crash', () => {
  holds('knows all that exists once it is settled and what is missing was looked for, each once', (choose) => {
    const planned = program(choose);
    const { state, cloud } = crashed(choose, planned);
    const settled = settlePending(state, only(cloud, pendingCreates(state))).state;
    expect(idsOf(settled)).toEqual(expect.arrayContaining(idsOf(state)));
    expect(pendingOf(settled)).toEqual([]);
    const missing = missingFrom(settled, choose.shuffled(planned));
    let made = 0;
    const whole = addFound(settled, planned, only(cloud, missing), () => `new-${made++}`).state;
    expectSound(whole);
    expect(idsOf(whole)).toEqual(expect.arrayContaining(idsOf(settled)));
    expect(new Set(idsOf(whole))).toEqual(new Set([...cloud.values(), ...idsOf(state)]));
    expect(new Set(idsOf(whole)).size).toBe(idsOf(whole).length);
    expect(
      stackResourcesOf(whole).filter(({ type }) => type.startsWith('pulumi:providers')).length,
    ).toBeLessThanOrEqual(1);
  });

  holds('stays as it is when it is settled, and looked for, again', (choose) => {
    const planned = program(choose);
    const { state, cloud } = crashed(choose, planned);
    const once = settlePending(state, only(cloud, pendingCreates(state)));
    expect(settlePending(once.state, found(cloud))).toEqual({ state: once.state, suspects: [] });
    const whole = addFound(once.state, planned, only(cloud, missingFrom(once.state, planned)), () => 'new').state;
    expect(missingFrom(whole, planned).filter((one) => cloud.has(one.urn))).toEqual([]);
    expect(addFound(whole, planned, found(cloud), () => 'other')).toEqual({ state: whole, suspects: [] });
  });

  holds('names as suspects only what it has, and all that was in doubt', (choose) => {
    const planned = program(choose);
    const { state, cloud } = crashed(choose, planned);
    const { state: settled, suspects } = settlePending(state, only(cloud, pendingCreates(state)));
    const there = new Set(stackResourcesOf(settled).map((one) => one.urn));
    const doubtful = pendingOf(state).map(({ resource }) => resource.urn);
    expect(new Set(suspects)).toEqual(new Set(doubtful.filter((one) => there.has(one))));
  });
});
