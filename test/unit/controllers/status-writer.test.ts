import { describe, expect, it } from 'vitest';
import { onlyFinalizersChanged, onlyStatusChanged } from '../../../operator/controllers/status-writer.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';

const shoot = (resourceVersion: string, more: object = {}, metadata: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Shoot',
  metadata: { name: 'a', namespace: 'b', generation: 1, resourceVersion, ...metadata },
  spec: { region: 'here' },
  ...more,
});

describe('onlyStatusChanged', () => {
  const old = shoot('1', { status: { phase: 'Pending' } });

  it.each<[string, KubeObject, boolean]>([
    ['another status', shoot('2', { status: { phase: 'Ready' } }), true],
    ['the first status', shoot('2'), true],
    ['another spec', shoot('2', { spec: { region: 'there' } }, { generation: 2 }), false],
    ['an annotation', shoot('2', {}, { annotations: { operation: 'retry' } }), false],
    ['a deletion', shoot('2', {}, { deletionTimestamp: '2026-11-21T00:00:00Z' }), false],
  ])('%s', (_, object, expected) => {
    expect(onlyStatusChanged({ type: 'updated', object, old })).toBe(expected);
  });

  it('is false for a created or deleted object', () => {
    expect(onlyStatusChanged({ type: 'added', object: old })).toBe(false);
    expect(onlyStatusChanged({ type: 'deleted', object: old })).toBe(false);
  });
});

describe('onlyFinalizersChanged', () => {
  const old = shoot('1', { status: { phase: 'Pending' } });

  it.each<[string, KubeObject, boolean]>([
    ['one more', shoot('2', { status: { phase: 'Pending' } }, { finalizers: ['ours'] }), true],
    ['one more, and another status', shoot('2', { status: { phase: 'Ready' } }, { finalizers: ['ours'] }), false],
    ['a deletion', shoot('2', { status: { phase: 'Pending' } }, { deletionTimestamp: '2026-11-21T00:00:00Z' }), false],
  ])('%s', (_, object, expected) => {
    expect(onlyFinalizersChanged({ type: 'updated', object, old })).toBe(expected);
  });
});
