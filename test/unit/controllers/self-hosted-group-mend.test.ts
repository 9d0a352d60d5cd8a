import { describe, expect, it, vi } from 'vitest';
import { LABELS } from '../../../operator/api/group.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { inCloud } from '../../../operator/controllers/shoot/self-hosted/in-cloud.ts';
import { strategyOf } from '../../../operator/controllers/shoot/strategy.ts';
import { silent } from '../../../operator/kube/log.ts';
import { planEncryption } from '../../../operator/shoot/secrets-encryption.ts';
import type { Change } from '../../../providers/cloud.ts';
import { partOf } from '../../kit/builders/partial.ts';

const NOW = new Date('2026-11-21T12:00:00Z');
const WALL: Change = { operation: 'create', resource: 'address endpoint' };

const mendControlPlane = (op: Operation, isLast: boolean) =>
  inCloud(op.controlPlanePool!, op.provider.controlPlaneGroup!).mend!(op, isLast);

const READY = { status: { conditions: [{ type: 'Ready', status: 'True' }] } };
const PODS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'].map((name) => ({
  metadata: { name: `${name}-a`, namespace: 'kube-system' },
  ...READY,
}));
/** All of whose control plane is ready. */
const nodeOf = (version: string) => ({
  metadata: { name: 'a', labels: { [LABELS.pool]: 'control-plane' } },
  status: { ...READY.status, nodeInfo: { kubeletVersion: `v${version}` } },
});

/** One look after a control plane that others may have changed. */
function testbed({ mend = true, begun = true, now = NOW, pki = {}, version = '1.36.3' } = {}) {
  const mending = vi.fn<(ctx: unknown, pool: string, part: string) => Promise<Change[] | undefined>>(async () => []);
  const abort = new AbortController();
  const op = partOf<Operation>({
    mend,
    pki,
    unmended: new Map(),
    signal: abort.signal,
    shoot: { metadata: { name: 'own', namespace: 'shop' }, spec: {} },
    values: { namespace: 'shoot--shop--own', replicas: 1, version },
    seed: { configMaps: { get: () => (begun ? {} : undefined) } },
    pools: [],
    // As many machines as are wanted, as it was seen before.
    state: {
      etcdSettled: 1,
      machinesSettled: NOW,
      connection: { nodes: { list: () => [nodeOf('1.36.3')] }, pods: { list: () => PODS } },
    },
    controlPlanePool: { name: 'control-plane' },
    provider: {
      controlPlaneGroup: {
        mend: mending,
        endpoint: async () => ({ host: 'own.example', port: 6443 }),
        observe: () => Promise.reject(new Error('the cloud was asked')),
      },
    },
    context: () => ({}),
    deps: { log: silent, now: () => now },
  });
  return { op, mending, abort, parts: () => mending.mock.calls.map(([, pool, part]) => `${pool} ${part}`) };
}

describe('foreign changes of a cloud control plane are reverted', () => {
  it('as soon as its endpoint is known, and then not again', async () => {
    const { op, mending, parts } = testbed();
    mending.mockResolvedValueOnce([WALL]);
    await strategyOf(op)
      .reconcileTasks(op)
      .find(({ id }) => id === 'endpoint')!
      .run(op.signal);
    expect(parts()).toEqual(['control-plane endpoint', 'control-plane machines']);
    await mendControlPlane(op, true);
    expect(parts()).toHaveLength(2);
    expect([...op.unmended.values()].flatMap(({ changes }) => changes)).toEqual([WALL]);
  });

  it.each([
    ['nobody asks for it', { mend: false }],
    ['it has not begun', { begun: false }],
  ])('not where %s: that costs nothing', async (_why, given) => {
    const { op, parts } = testbed(given);
    await mendControlPlane(op, false);
    await mendControlPlane(op, true);
    expect(parts()).toEqual([]);
  });

  it('later, where machines come or go; and again where they continue', async () => {
    const { op, mending, parts } = testbed();
    mending.mockImplementation(async (_ctx, _pool, part) => (part === 'endpoint' ? [] : undefined));
    await mendControlPlane(op, false);
    mending.mockResolvedValue([]);
    await mendControlPlane(op, true);
    expect([...op.unmended.values()]).toEqual([{ changes: [] }, { changes: [] }]);
    expect(parts()).toEqual(['endpoint', 'machines', 'machines'].map((part) => `control-plane ${part}`));
  });

  it('after a check for surplus machines', async () => {
    const resized = ({ op }: ReturnType<typeof testbed>) =>
      strategyOf(op)
        .reconcileTasks(op)
        .find(({ id }) => id === 'control-plane-size')!
        .run(op.signal);
    await resized(testbed({ mend: false }));
    await expect(resized(testbed())).rejects.toThrow('the cloud was asked');
    // Nobody tells when certificates of machines near their end.
    const tomorrow = new Date(+NOW + 25 * 3600_000);
    await expect(resized(testbed({ mend: false, now: tomorrow }))).rejects.toThrow('the cloud was asked');
    // Nor which keys of Secrets machines have.
    const first = planEncryption({}, { isNew: true, rotate: false, now: NOW });
    await resized(testbed({ mend: false, pki: first }));
    const changing = planEncryption(first, { isNew: false, rotate: true, now: NOW });
    await expect(resized(testbed({ mend: false, pki: changing }))).rejects.toThrow('the cloud was asked');
    await expect(resized(testbed({ mend: false, version: '1.36.4' }))).rejects.toThrow('the cloud was asked');
  });

  it('without blocking the cluster while the cloud refuses', async () => {
    const { op, mending, abort } = testbed();
    mending.mockRejectedValue(new Error('not now'));
    await mendControlPlane(op, false);
    expect(op.unmended.size).toBe(0);
    await mendControlPlane(op, true);
    expect(op.unmended.get('machines')).toEqual({ changes: [], because: 'not now' });
    op.unmended.clear();
    abort.abort(new Error('the cluster was changed'));
    await expect(mendControlPlane(op, false)).rejects.toThrow('the cluster was changed');
  });
});
