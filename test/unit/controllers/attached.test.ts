import { describe, expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import { FINALIZER } from '../../../operator/api/group.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { failureText } from '../../../operator/clusters/attached-connection.ts';
import type { AttachedFacts } from '../../../operator/controllers/attached/facts.ts';
import { judgeIdentity } from '../../../operator/controllers/attached/judge-identity.ts';
import { clusterGoes } from '../../../operator/controllers/membership/leave.ts';
import { whyNotUsable } from '../../../operator/controllers/membership/member.ts';
import { planAttached } from '../../../operator/controllers/workercluster/attached.ts';
import type { Node } from '../../../operator/kube/resources.ts';
import { buildNode, buildWorkerCluster } from '../../kit/builders/objects.ts';

const NOW = new Date('2026-11-22T12:00:00Z');
const cluster = (more: Partial<WorkerCluster> = {}) =>
  buildWorkerCluster({
    metadata: { name: 'demo', namespace: 'shop', uid: 'u', generation: 2, finalizers: [FINALIZER] },
    spec: { mode: 'Attached', controlPlaneNodes: 1, attached: { kubeconfigSecretRef: { name: 'theirs' } } },
    ...more,
  });
const node = (name: string, ready: boolean, region = 'eu') =>
  buildNode({
    metadata: { name, labels: { 'topology.kubernetes.io/region': region } },
    status: {
      allocatable: { cpu: '4', memory: '8Gi' },
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
    },
  });
const open = (...nodes: Node[]): AttachedFacts => ({
  generation: 2,
  refusal: undefined,
  identity: 'id-1',
  version: '1.36.3',
  server: 'https://theirs.example.com',
  inside: { nodes, pods: [] },
});
const gone: AttachedFacts = {
  generation: 2,
  refusal: {
    reason: 'KubeconfigMissing',
    message: 'Secret shop/theirs does not exist',
    code: 'ERR_RETRYABLE_CONFIGURATION_PROBLEM',
  },
  identity: 'id-1',
};
const plan = (one: WorkerCluster, facts: AttachedFacts | undefined, holds: { by: string; advice: string }[] = []) =>
  planAttached({ cluster: one, facts, holds }, NOW);
const said = (result: ReturnType<typeof plan>, type: string) => findCondition(result.status.conditions, type);

describe('an attached cluster', () => {
  it('is Ready when it answers, and reports its contents', () => {
    const result = plan(cluster(), open(node('a', true), node('b', false)));
    expect(said(result, 'Ready')?.status).toBe('True');
    expect(said(result, 'EveryNodeReady')).toMatchObject({ status: 'False', message: '1 of 2 nodes are Ready' });
    expect(result.status).toMatchObject({
      phase: 'Ready',
      mode: 'Attached',
      region: 'eu',
      kubernetesVersion: '1.36.3',
      clusterIdentity: 'id-1',
      endpoint: 'https://theirs.example.com',
      kubeconfigRef: { name: 'theirs', key: 'value' },
      nodes: { desired: 2, current: 2, ready: 1 },
      resource: { total: { cpu: '8' } },
    });
    expect(result.status.admitted).toBeUndefined();
    expect(result.status.cost).toBeUndefined();
  });

  it('is not Ready, with the reason, without its Secret; its nodes stay as last seen', () => {
    const before = plan(cluster(), open(node('a', true))).status;
    const result = plan(cluster({ status: before }), gone);
    for (const type of ['Ready', 'APIServerAvailable'])
      expect(said(result, type)).toMatchObject({
        status: 'False',
        reason: 'KubeconfigMissing',
        message: gone.refusal!.message,
      });
    expect(result.status).toMatchObject({ phase: 'Updating', nodes: { current: 1 }, clusterIdentity: 'id-1' });
  });

  it('keeps its status until a restarted operator has looked', () => {
    const before = plan(cluster(), open(node('a', true))).status;
    const result = plan(cluster({ status: before }), undefined);
    expect(result.status).toEqual(before);
  });

  it('costs its assumed price, without repeated writes', () => {
    const priced = cluster({
      spec: { ...cluster().spec, attached: { garden: true, price: { hourly: '1.5', currency: 'EUR' } } },
    });
    const { status } = plan(priced, open());
    expect(status.cost).toEqual({ hourly: '1.5', accrued: '0', currency: 'EUR', asOf: '2026-11-22T12:00:00Z' });
    const later = planAttached({ cluster: { ...priced, status }, facts: open(), holds: [] }, new Date(+NOW + 3600_000));
    expect(later.status).toEqual(status);
  });

  it('reports nothing observed under an earlier spec', () => {
    const changed = cluster({ metadata: { ...cluster().metadata, generation: 3 } });
    expect(plan(changed, open()).status.observedGeneration).toBeUndefined();
    expect(plan(changed, { ...open(), generation: 3 }).status.observedGeneration).toBe(3);
  });

  it('takes no region from nodes that disagree', () => {
    expect(plan(cluster(), open(node('a', true), node('b', true, 'us'))).status.region).toBeUndefined();
  });

  it('gets its finalizer first', () => {
    const fresh = cluster({ metadata: { name: 'demo', namespace: 'shop', uid: 'u' } });
    expect(plan(fresh, undefined)).toMatchObject({ finalizer: 'add', status: { phase: 'Pending' } });
  });

  it('is released only after its hubs have released it', () => {
    const leaving = cluster({ metadata: { ...cluster().metadata, deletionTimestamp: '2026-11-22T11:59:00Z' } });
    const held = plan(leaving, open(), [{ by: 'Membership demo.test', advice: 'it leaves Hub test first' }]);
    expect(held.release).toBeUndefined();
    expect(said(held, 'Deleting')).toMatchObject({
      reason: 'Held',
      message: 'Membership demo.test holds the cluster: it leaves Hub test first',
    });
    expect(plan(leaving, open()).release).toBe(true);
    // Also one that does not answer.
    expect(plan(leaving, gone).release).toBe(true);
  });

  it('outlives the deletion of its WorkerCluster, so hubs remove their objects in it', () => {
    const metadata = { ...cluster().metadata, deletionTimestamp: '2026-11-22T11:59:00Z' };
    expect(clusterGoes(cluster({ metadata }))).toBe(false);
    expect(clusterGoes(cluster({ metadata, spec: { cloudProvider: 'aws', controlPlaneNodes: 1 } }))).toBe(true);
  });

  it('joins no hub without nodes, since its capacity is unknown', () => {
    const line = { answers: true, nodes: { list: () => [] }, pods: { list: () => [] } } as never;
    expect(whyNotUsable(cluster({ status: { nodes: { desired: 0 } } as never }), line)).toContain('no node');
  });
});

describe('the cluster behind a kubeconfig', () => {
  const view = {
    seen: 'new',
    pinned: undefined,
    approved: undefined,
    platform: undefined,
    holder: undefined,
    annotation: 'approve',
  };
  it.each<[string, Partial<Parameters<typeof judgeIdentity>[0]>, string | undefined, RegExp]>([
    ['is used when it is seen first', {}, undefined, /./],
    ['is used when it is the same', { pinned: 'new' }, undefined, /./],
    [
      'is not when it is another one',
      { pinned: 'old' },
      'OtherCluster',
      /UID of kube-system new, not old.*annotate approve=new$/,
    ],
    ['is when somebody approves that', { pinned: 'old', approved: 'new' }, undefined, /./],
    ['is not when somebody approved a third one', { pinned: 'old', approved: 'third' }, 'OtherCluster', /./],
    ['is not when it is the platform', { platform: 'the garden' }, 'PlatformCluster', /points to the garden/],
    [
      'is not the platform by approval',
      { pinned: 'old', approved: 'new', platform: 'Seed a' },
      'PlatformCluster',
      /Seed a/,
    ],
    [
      'is not when somebody has it',
      { holder: { key: 'shop/a', own: true } },
      'SameCluster',
      /^WorkerCluster shop\/a is the same/,
    ],
    [
      'names nobody of another namespace',
      { holder: { key: 'x/a', own: false } },
      'SameCluster',
      /^a WorkerCluster of another namespace/,
    ],
  ])('%s', (_, more, reason, message) => {
    const refusal = judgeIdentity({ ...view, ...more });
    expect(refusal?.reason).toBe(reason);
    if (refusal) expect(refusal.message).toMatch(message);
  });
});

it('does not appear in conditions when it cannot be parsed', () => {
  expect(failureText(new Error('bad indentation (2:5)\n\n 1 | token: secret'))).toBe('bad indentation (2:5)');
  expect(failureText(new Error('x'.repeat(9999)))).toHaveLength(300);
});
