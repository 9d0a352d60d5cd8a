import type { EngineEvent } from '@pulumi/pulumi/automation/index.js';
import { describe, expect, it } from 'vitest';
import { newReport, noteEvent, runEventOf, runProgressOf } from '../../../../providers/pulumi/run-events.ts';

const urn = (type: string, name: string) => `urn:pulumi:t.cluster::coppice::${type}::${name}`;

/** Events as engine 3.256 sends them, as far as they are read. */
const metadata = (op: string, type: string, name: string, more: object = {}) => ({
  op,
  urn: urn(type, name),
  type,
  provider: '',
  new: {
    type,
    urn: urn(type, name),
    custom: true,
    id: '',
    parent: '',
    inputs: { name },
    outputs: {},
    provider: 'p::1',
  },
  ...more,
});
const event = (fields: object) => ({ sequence: 1, timestamp: 1, ...fields }) as unknown as EngineEvent;
const pre = (...args: Parameters<typeof metadata>) => event({ resourcePreEvent: { metadata: metadata(...args) } });
const done = (...args: Parameters<typeof metadata>) => event({ resOutputsEvent: { metadata: metadata(...args) } });
const failed = (...args: Parameters<typeof metadata>) => event({ resOpFailedEvent: { metadata: metadata(...args) } });
const said = (severity: string, message: string) => event({ diagnosticEvent: { severity, message, color: 'never' } });

const recordOf = (...events: EngineEvent[]) => {
  const record = newReport();
  for (const one of events) {
    const told = runEventOf(one);
    if (told) noteEvent(record, told);
  }
  return record;
};
const changesOf = (...events: EngineEvent[]) => [...recordOf(...events).changes.values()];

const CLUSTER = ['aws:eks/cluster:Cluster', 'cluster'] as const;
const POOL = ['aws:eks/nodeGroup:NodeGroup', 'pool'] as const;

describe('the changes of a run', () => {
  it.each<[string, EngineEvent[], object[]]>([
    [
      'a creation',
      [done('create', ...CLUSTER)],
      [{ operation: 'create', resource: 'aws:eks/cluster:Cluster cluster' }],
    ],
    ['nothing', [done('same', ...CLUSTER)], []],
    ['only a look', [done('refresh', ...CLUSTER, { diffs: ['tags'] })], []],
    ['what is not done yet', [pre('create', ...CLUSTER)], []],
    ['what failed', [failed('create', ...CLUSTER)], []],
    [
      'an update, by property',
      [done('update', ...CLUSTER, { diffs: ['tags', 'version'], detailedDiff: { 'tags.a': {}, 'subnets[0]': {} } })],
      [
        {
          operation: 'update',
          resource: 'aws:eks/cluster:Cluster cluster',
          properties: ['tags', 'version', 'subnets'],
        },
      ],
    ],
    [
      'a replacement is one change, whatever its steps',
      [
        done('create-replacement', ...POOL, { diffs: ['name'] }),
        done('replace', ...POOL),
        done('delete-replaced', ...POOL),
      ],
      [{ operation: 'replace', resource: 'aws:eks/nodeGroup:NodeGroup pool', properties: ['name'] }],
    ],
    ['providers and stacks are nobody’s concern', [done('create', 'pulumi:providers:aws', 'aws')], []],
  ])('contain: %s', (_, events, expected) => {
    expect(changesOf(...events)).toEqual(expected);
  });
});

it.each([
  ['same', false],
  ['read', false],
  ['update', true],
  ['create-replacement', true],
  ['delete', true],
])('operation %s counts as a change: %s', (operation, expected) => {
  expect(recordOf(done(operation, ...CLUSTER)).isChanging).toBe(expected);
});

it.each([
  ['finds what the state says', {}, {}, false],
  ['finds another input', { inputs: { size: 3 } }, {}, true],
  ['finds another output', {}, { outputs: { status: 'x' } }, true],
])('a refresh counts as a change if it %s', (_, before, after, expected) => {
  const state = (more: object) => ({ ...metadata('refresh', ...CLUSTER).new, ...more });
  const look = done('refresh', ...CLUSTER, { old: state(before), new: state(after) });
  expect(recordOf(look).isChanging).toBe(expected);
  expect(changesOf(look)).toEqual([]);
});

it('a refresh that finds a resource deleted counts as a change', () => {
  const { new: old } = metadata('refresh', ...CLUSTER);
  expect(recordOf(done('refresh', ...CLUSTER, { old, new: undefined })).isChanging).toBe(true);
});

it('planned contains resources to create, with their inputs', () => {
  const { planned } = recordOf(pre('create', ...CLUSTER), pre('update', ...POOL));
  expect(planned).toMatchObject([
    { urn: urn(...CLUSTER), custom: true, inputs: { name: 'cluster' }, provider: 'p::1' },
  ]);
});

it('planned treats a resource without provider as a component', () => {
  const component = { new: { type: 'x', urn: 'x', id: '', parent: '', inputs: {}, outputs: {}, provider: '' } };
  expect(recordOf(pre('create', 'pkg:index:Thing', 'thing', component)).planned).toMatchObject([{ custom: false }]);
});

it('outputs are the last reported ones', () => {
  const outputs = (value: object) =>
    done('same', 'pulumi:pulumi:Stack', 'coppice-t.cluster', { new: { outputs: value, inputs: {} } });
  expect(recordOf(outputs({}), outputs({ endpoint: 'https://a' })).outputs).toEqual({ endpoint: 'https://a' });
});

it('errors exclude other diagnostics, which contain values of resources', () => {
  expect(recordOf(said('debug', 'password is x'), said('info', 'x'), said('error', 'no')).errors).toEqual([
    { text: 'no' },
  ]);
});

describe('the progress of a run', () => {
  it.each<[string, EngineEvent[], number | undefined, object | undefined]>([
    ['nothing is under way', [], 3, undefined],
    ['unchanged resources are not worth telling', [pre('same', ...CLUSTER)], 3, undefined],
    [
      'a creation',
      [pre('create', ...CLUSTER)],
      3,
      { description: 'creating aws:eks/cluster:Cluster cluster', done: 0, total: 3 },
    ],
    [
      'two at once',
      [pre('create', ...CLUSTER), pre('update', ...POOL)],
      undefined,
      { description: 'creating aws:eks/cluster:Cluster cluster and 1 more', done: 0 },
    ],
    [
      'one done',
      [pre('create', ...CLUSTER), done('create', ...CLUSTER), pre('delete', ...POOL)],
      2,
      { description: 'deleting aws:eks/nodeGroup:NodeGroup pool', done: 1, total: 2 },
    ],
    ['more than was expected', [pre('create', ...CLUSTER), pre('create', ...POOL)], 1, { total: 2 }],
    ['a provider being configured', [pre('create', 'pulumi:providers:aws', 'aws')], 1, undefined],
  ])('describes: %s', (_, events, total, expected) => {
    const progress = runProgressOf(recordOf(...events), total);
    if (expected === undefined) expect(progress).toBeUndefined();
    else expect(progress).toMatchObject(expected);
  });
});
