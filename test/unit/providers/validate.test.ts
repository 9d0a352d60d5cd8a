import { describe, expect, it } from 'vitest';
import type { WantedSpec } from '../../../providers/contract.ts';
import { providerNamed, providerNames } from '../../../providers/index.ts';
import { marksPatch } from '../../../providers/nodes.ts';
import { pool, profile, wanted } from './fixtures.ts';

const cases: [what: string, provider: string, changes: Partial<WantedSpec>, fields: string[]][] = [
  ['what the profile offers', 'local', {}, []],
  ['an unknown region', 'local', { region: 'south' }, ['region']],
  ['an unknown machine type', 'local', { pools: [pool({ machineType: 'x' })] }, ['pools[0].machineType']],
  ['a machine type out of use', 'simulated', { pools: [pool({ machineType: 'retired' })] }, ['pools[0].machineType']],
  ['a GPU on this machine', 'local', { pools: [pool({ machineType: 'gpu' })] }, ['pools[0].machineType']],
  ['a simulated GPU', 'simulated', { pools: [pool({ machineType: 'gpu' })] }, []],
  ['an unknown zone', 'local', { pools: [pool({ zones: ['north-a', 'x'] })] }, ['pools[0].zones']],
  ['two pools of a name', 'local', { pools: [pool(), pool()] }, ['pools']],
  [
    'ranges that overlap',
    'local',
    { networking: { pods: '10.0.0.0/8', services: '10.1.0.0/16' } },
    ['networking.services'],
  ],
  [
    'no range at all',
    'local',
    { networking: { pods: 'fd00::/48', services: '10.1.0.0/33' } },
    ['networking.pods', 'networking.services'],
  ],
  ['a range too small', 'simulated', { pools: [pool({ count: 300 })] }, ['networking.pods']],
];

describe('validateCluster names the wrong fields of', () => {
  it.each(cases)('%s (%s)', (_what, provider, changes, fields) => {
    const problems = providerNamed(provider).validate(wanted(changes), profile);
    expect(problems.map((problem) => problem.field)).toEqual(fields);
    for (const problem of problems) expect(problem.code).toBe('ERR_CONFIGURATION_PROBLEM');
  });
});

describe('the provider registry', () => {
  it('lists its providers, and rejects unknown names', () => {
    expect(providerNames()).toEqual(['local', 'simulated']);
    expect(() => providerNamed('azur')).toThrow('there is no provider azur');
  });
});

describe("marksPatch of a node's labels and taints", () => {
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n', resourceVersion: '7', labels: { a: '1', own: 'x' } },
    spec: {
      taints: [
        { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' },
        { key: 'k', value: 'v', effect: 'NoExecute' },
      ],
    },
  };
  const taint = { key: 'k', value: 'v', effect: 'NoExecute' };

  it('is undefined without changes', () => {
    expect(marksPatch(node, { labels: { a: '1' }, taints: [taint] }, { labels: {}, taints: [] })).toBeUndefined();
  });

  it('follows the pool, and preserves foreign labels and taints', () => {
    const before = { labels: { a: '1' }, taints: [taint] };
    expect(marksPatch(node, { labels: { b: '2' }, taints: [{ ...taint, value: 'w' }] }, before)).toEqual({
      metadata: { resourceVersion: '7', labels: { b: '2', a: null } },
      spec: { taints: [node.spec.taints[0], { ...taint, value: 'w' }] },
    });
    expect(marksPatch(node, { labels: {}, taints: [] }, before)).toEqual({
      metadata: { resourceVersion: '7', labels: { a: null } },
      spec: { taints: [node.spec.taints[0]] },
    });
  });
});
