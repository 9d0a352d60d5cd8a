import { describe, expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import { LABELS } from '../../../operator/api/group.ts';
import { statusOnMachines } from '../../../operator/controllers/shoot/self-hosted/self-hosted-status.ts';
import type { RunningFacts } from '../../../operator/controllers/shoot/status/facts.ts';
import type { Machine } from '../../../providers/contract.ts';
import { buildNode, buildPod, buildShoot } from '../../kit/builders/objects.ts';
import { pool } from '../providers/fixtures.ts';

const NOW = new Date('2026-11-21T00:00:00Z');
const shoot = (members: number) =>
  buildShoot({
    metadata: { name: 'one', namespace: 'team', uid: 'u', generation: 2 },
    spec: {
      region: 'local',
      kubernetes: {},
      provider: {
        type: 'local',
        workers: [{ name: 'own', minimum: members, maximum: members, controlPlane: {}, machine: { type: 'm' } }],
      },
    },
  });

const node = (name: string, ofPool: string, isReady = true) =>
  buildNode({
    metadata: { name, labels: { [LABELS.pool]: ofPool } },
    spec: { podCIDR: '10.0.0.0/24' },
    status: {
      allocatable: { cpu: '2', memory: '8Gi' },
      conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }],
    },
  });
const pod = (name: string, nodeName: string, more: object = {}) =>
  buildPod({
    metadata: { name, namespace: 'kube-system', ...more },
    spec: { nodeName, containers: [{ name: 'c', resources: { requests: { cpu: '250m' } } }] },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  });
const components = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];
const staticPods = (name: string, but?: string) =>
  components.filter((component) => component !== but).map((component) => pod(`${component}-${name}`, name));
const dns = pod('coredns-x', 'a', { labels: { 'k8s-app': 'kube-dns' } });
const machine: Machine = {
  name: 'a',
  pool: 'workers',
  nodeName: 'a',
  phase: 'Running',
  ready: true,
  createdAt: '2026-11-21T00:00:00Z',
};

const status = (
  members: number,
  inside: Partial<RunningFacts['inside']> | undefined,
  isUp = true,
  more: Partial<RunningFacts> = {},
) =>
  statusOnMachines(
    {
      shoot: shoot(members),
      technicalID: 'shoot--team--one',
      seedName: 'local',
      version: '1.36.3',
      endpoint: 'https://10.1.0.10:6443',
      pools: [pool({ count: 1 })],
      operation: undefined,
      errors: [],
      observedGeneration: 2,
      usable: { ok: true, message: 'works' },
      inside: inside && { nodes: [], pods: [], machines: [machine], ...inside },
      draining: [],
      isUp: () => isUp,
      names: Array.from({ length: members }, (_, ordinal) => `machines-own-${ordinal}`),
      ...more,
    },
    NOW,
  );

describe('the status of a control plane on machines', () => {
  const name = 'machines-own-0';
  const sound = { nodes: [node(name, 'own'), node('a', 'workers')], pods: [...staticPods(name), dns] };

  it('reports the progress of a roll', () => {
    const replacing = '1 of 3 machines of the control plane have Kubernetes 1.36.3; waiting for machine 1 to serve';
    const found = status(1, sound, true, { replacing });
    expect(findCondition(found.conditions, 'Rolling')).toMatchObject({ status: 'True', message: replacing });
    expect(findCondition(found.conditions, 'EveryNodeReady')?.message).not.toContain('replac');
    expect(findCondition(status(1, sound).conditions, 'Rolling')).toBeUndefined();
  });

  it('is Ready when all of it is, and counts worker machines only', () => {
    const found = status(1, sound);
    expect(findCondition(found.conditions, 'Ready')?.status).toBe('True');
    expect(found).toMatchObject({
      controlPlane: { desired: 1, ready: 1 },
      nodes: { desired: 1, current: 1, ready: 1 },
      resource: { total: { cpu: '2' }, available: { cpu: '1750m' } },
    });
  });

  it.each<[string, Partial<NonNullable<RunningFacts['inside']>>, string]>([
    ['a static pod is missing', { pods: [...staticPods(name, 'etcd'), dns] }, `not ready: etcd-${name}`],
    ['its node is not Ready', { nodes: [node(name, 'own', false), node('a', 'workers')] }, `not ready: node ${name}`],
  ])('is not when %s', (_what, change, message) => {
    const found = status(1, { ...sound, ...change });
    expect(findCondition(found.conditions, 'ControlPlaneHealthy')).toMatchObject({ status: 'False', message });
    expect(findCondition(found.conditions, 'Ready')).toMatchObject({ status: 'False', message });
    expect(found.controlPlane).toEqual({ desired: 1, ready: 0 });
  });

  it('ignores nodes whose machine is gone', () => {
    const found = status(1, sound, false);
    expect(found.controlPlane).toEqual({ desired: 1, ready: 0 });
    expect(findCondition(found.conditions, 'Ready')?.message).toBe(`not ready: machine ${name}`);
  });

  it('names missing machines', () => {
    const found = status(3, sound);
    expect(found.controlPlane).toEqual({ desired: 3, ready: 1 });
    expect(findCondition(found.conditions, 'ControlPlaneHealthy')?.message).toBe(
      'not ready: node machines-own-1, node machines-own-2',
    );
  });

  it('claims nothing while nothing answers', () => {
    const found = status(1, undefined);
    expect(findCondition(found.conditions, 'ControlPlaneHealthy')?.status).toBe('False');
    expect(found.controlPlane).toEqual({ desired: 1, ready: 0 });
  });
});
