import { X509Certificate } from 'node:crypto';
import { expect, it } from 'vitest';
import { reconcileTasks } from '../../../operator/controllers/shoot/hosted/hosted-tasks.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { nextLookMs, noteRefusal } from '../../../operator/controllers/shoot/run-reconcile.ts';
import { newShootState } from '../../../operator/controllers/shoot/state.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { type KubeObject, keyOf } from '../../../operator/kube/resources.ts';
import { LEAF_DAYS } from '../../../operator/pki/certificates.ts';
import { issueShootPKI, type PKIData, pkiParameters, planShootPKI } from '../../../operator/shoot/pki.ts';
import { pkiSecret } from '../../../operator/shoot/pki-secret.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { controlPlane, NOW } from '../shoot/values.ts';

const values = controlPlane();
const signal = new AbortController().signal;
const HOUR = 3600_000;
const later = (days: number) => new Date(+NOW + days * 24 * 3600_000);

/** A cluster that has served, whose operator has just started; `look` runs what an operation does about this. */
async function cluster(isEarlier: boolean) {
  const parameters = { ...pkiParameters(values), kubeletsAsMaster: isEarlier };
  const keys: PKIData = await issueShootPKI({}, planShootPKI({}, parameters, NOW), parameters, NOW);
  const secrets = new Map<string, KubeObject>();
  const put = (object: KubeObject) =>
    void secrets.set(keyOf(object), { ...object, metadata: { ...object.metadata, resourceVersion: '1' } });
  put(pkiSecret(values, keys));
  const applied: string[] = [];
  const state = newShootState();
  const op = partOf<Operation>({
    values,
    pki: keys,
    state,
    names: [],
    pools: [],
    provider: {},
    strategy: { longestSleepMs: HOUR },
    shoot: {
      metadata: { name: 'demo', namespace: 'shop' },
      spec: {},
      status: { lastOperation: { type: 'Create', state: 'Succeeded' } },
    },
    seed: {
      secrets: { get: (key: string) => secrets.get(key), absorb: put },
      statefulSets: new Map(),
      deployments: new Map(),
      applier: { apply: async (object: KubeObject) => ({ object }) },
    },
    deps: { now: () => NOW },
  });
  const cluster = { state, applied, refuses: (_kind: string) => false, now: NOW };
  const run = async (id: string) =>
    reconcileTasks(op)
      .find((task) => task.id === id)!
      .run(signal);
  const look = async () => {
    op.deps.now = () => cluster.now;
    await run('certificates');
    state.connection = partOf<typeof state.connection>({
      async applyAll(objects: KubeObject[]) {
        if (objects.some(({ kind }) => cluster.refuses(kind)))
          throw new KubeApiError('PATCH', 403, { message: 'admission webhook "a" denied the request' });
        applied.push(...objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`));
      },
    });
    await run('system-components');
    noteRefusal(state, cluster.now);
    const { subject, validToDate } = new X509Certificate(op.pki['kubelet-client.crt']!);
    return { subject: subject.split('\n'), validToDate, againMs: nextLookMs(op, undefined) };
  };
  return Object.assign(cluster, { look });
}

const MASTER = ['O=system:masters', 'CN=kube-apiserver-kubelet-client'];
const NAMED = ['CN=kube-apiserver-kubelet-client'];
const BINDING = 'ClusterRoleBinding kubeadm:apiserver-kubelet-client';

it('API servers of a new cluster call kubelets without rights of their own', async () => {
  const made = await cluster(false);
  expect((await made.look()).subject).toEqual(NAMED);
  expect(made.applied).toContain(BINDING);
});

it('API servers of an earlier version keep their kubelet rights until the replacement is applied, and lose them soon after', async () => {
  const earlier = await cluster(true);
  const first = await earlier.look();
  expect(first.subject).toEqual(MASTER);
  expect(earlier.applied).toContain(BINDING);
  expect(first.againMs).toBeLessThan(60_000);
  expect((await earlier.look()).subject).toEqual(NAMED);
  expect(await earlier.look()).toMatchObject({ subject: NAMED, againMs: HOUR });
});

it('an expiring kubelet client certificate is renewed with its rights, so that logs and exec keep working', async () => {
  const earlier = await cluster(true);
  earlier.now = later(55);
  const { subject, validToDate } = await earlier.look();
  expect([subject, validToDate]).toEqual([MASTER, later(55 + LEAF_DAYS)]);
  expect((await earlier.look()).subject).toEqual(NAMED);
});

it('logs and exec keep working where an admission policy rejects the kubelet binding, with growing retries', async () => {
  const earlier = await cluster(true);
  earlier.refuses = (kind) => kind === 'ClusterRoleBinding';
  const waits: number[] = [];
  for (let looks = 0; looks < 8; looks++) {
    const { subject, againMs } = await earlier.look();
    expect(subject).toEqual(MASTER);
    waits.push(againMs / 1000);
    earlier.now = new Date(+earlier.now + againMs);
  }
  expect(waits).toEqual([10, 10, 20, 40, 80, 160, 300, 300]);
  earlier.refuses = () => false;
  await earlier.look();
  expect((await earlier.look()).subject).toEqual(NAMED);
});

it('kubelet rights are removed where another object is rejected, with growing retries', async () => {
  const earlier = await cluster(true);
  earlier.refuses = (kind) => kind === 'Endpoints';
  expect((await earlier.look()).subject).toEqual(MASTER);
  expect(earlier.state.systemRefused).toMatch(/^Endpoints default\/kubernetes: /);
  expect((await earlier.look()).subject).toEqual(NAMED);
  earlier.now = new Date(+NOW + HOUR);
  expect((await earlier.look()).againMs).toBeGreaterThan(60_000);
});
