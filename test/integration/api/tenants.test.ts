import { get } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ACCOUNTS_FLOW, OPERATOR_FLOW, TENANTS_FLOW } from '../../../operator/api/flows.ts';
import { API_VERSION } from '../../../operator/api/group.ts';
import { installManifests } from '../../../operator/api/install.ts';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { OPERATOR_USER } from '../../../operator/api/roles.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import {
  CLOUDPROFILES,
  FLOWSCHEMAS,
  QUOTAS,
  SECRETS,
  SEEDS,
  SHOOTS,
  WORKERCLUSTERS,
} from '../../../operator/kube/resources.ts';
import { readRefusal } from '../../kit/read-refusal.ts';
import { type SharedApiserver, sharedApiserver } from '../../kit/shared-apiserver.ts';

const RBAC = 'rbac.authorization.k8s.io';
let garden: SharedApiserver;
let editor: KubeClient;
let viewer: KubeClient;

/** A user who has a role in the namespace. No controller manager runs here that would add the role to Kubernetes' own. */
async function tenant(user: string, role: string): Promise<KubeClient> {
  await garden.client.create({
    apiVersion: `${RBAC}/v1`,
    kind: 'RoleBinding',
    metadata: { name: user, namespace: garden.namespace },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role },
    subjects: [{ apiGroup: RBAC, kind: 'User', name: user }],
  });
  return garden.connect(await garden.certificate(user));
}

beforeAll(async () => {
  garden = await sharedApiserver();
  for (const manifest of installManifests()) await garden.client.apply(manifest);
  [editor, viewer] = await Promise.all([tenant('ada', 'coppice:edit'), tenant('ben', 'coppice:view')]);
  // A new CRD is served, and a new policy heeded, a moment after it was made.
  const deadline = Date.now() + 20_000;
  const settled = async () =>
    (await readRefusal(() => garden.client.list(SHOOTS))) === '' &&
    /token/.test(await readRefusal(() => tokenSecret(operator)));
  while (!(await settled()) && Date.now() < deadline) await sleep(100);
});
afterAll(() => garden?.leave());

const object = (kind: string, name: string, spec: object): KubeObject => ({
  apiVersion: API_VERSION,
  kind,
  metadata: { name, namespace: garden.namespace },
  spec,
});
const cluster = (name: string) => object('WorkerCluster', name, { cloudProvider: 'aws', dataPlaneNodes: 1 });

const FORBIDDEN = /is forbidden: User "\w+" cannot/;

const operator = async () => garden.connect(await garden.certificate(OPERATOR_USER));
const tokenSecret = async (by: () => Promise<KubeClient>) =>
  (await by()).create(
    {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/service-account-token',
      metadata: {
        name: 'stolen',
        namespace: garden.namespace,
        annotations: { 'kubernetes.io/service-account.name': 'default' },
      },
    },
    { dryRun: true },
  );

describe('role edit in a namespace', () => {
  test('creates, scales and deletes clusters there', async () => {
    expect(await readRefusal(() => editor.create(cluster('mine')))).toBe('');
    const scale = { spec: { replicas: 3 } };
    expect(
      await readRefusal(() =>
        editor.mergePatch(WORKERCLUSTERS, 'mine', garden.namespace, scale, { subresource: 'scale' }),
      ),
    ).toBe('');
    expect(await readRefusal(() => editor.delete(WORKERCLUSTERS, 'mine', garden.namespace))).toBe('');
  });

  test('cannot write status', async () => {
    await garden.client.create(cluster('granted'));
    const status = { admitted: { pools: [{ name: 'a', machineType: 'huge', count: 5000 }] } };
    const raise = () =>
      editor.mergePatch(WORKERCLUSTERS, 'granted', garden.namespace, { status }, { subresource: 'status' });
    expect(await readRefusal(raise)).toMatch(FORBIDDEN);
    expect(await readRefusal(() => editor.mergePatch(WORKERCLUSTERS, 'granted', garden.namespace, { status }))).toBe(
      '',
    );
    expect((await garden.client.get(WORKERCLUSTERS, 'granted', garden.namespace)).status).toEqual({
      observedGeneration: -1,
    });
  });

  test('cannot write Shoots or Quotas', async () => {
    const shoot = object('Shoot', 'free', {
      cloudProfile: { name: 'aws' },
      region: 'eu-central-1',
      provider: { type: 'aws' },
    });
    expect(await readRefusal(() => editor.create(shoot))).toMatch(FORBIDDEN);
    await garden.client.create(object('Quota', 'limit', { metrics: { nodes: 1 } }));
    const raise = { spec: { metrics: { nodes: 5000 } } };
    expect(await readRefusal(() => editor.mergePatch(QUOTAS, 'limit', garden.namespace, raise))).toMatch(FORBIDDEN);
    expect(await readRefusal(() => editor.delete(QUOTAS, 'limit', garden.namespace))).toMatch(FORBIDDEN);
  });

  test('has no rights in other namespaces', async () => {
    expect(await readRefusal(() => editor.list(WORKERCLUSTERS, { namespace: 'kube-system' }))).toMatch(FORBIDDEN);
  });
});

test('role view reads clusters and quotas, and writes nothing', async () => {
  expect(await readRefusal(() => viewer.list(WORKERCLUSTERS, { namespace: garden.namespace }))).toBe('');
  expect(await readRefusal(() => viewer.list(QUOTAS, { namespace: garden.namespace }))).toBe('');
  expect(await readRefusal(() => viewer.create(cluster('theirs')))).toMatch(FORBIDDEN);
});

test('all users read CloudProfiles, and no tenant writes them or reads Seeds', async () => {
  for (const client of [viewer, editor]) {
    expect(await readRefusal(() => client.list(CLOUDPROFILES))).toBe('');
    expect(await readRefusal(() => client.delete(CLOUDPROFILES, 'aws'))).toMatch(FORBIDDEN);
    expect(await readRefusal(() => client.list(SEEDS))).toMatch(FORBIDDEN);
  }
});

describe('flow schemas of the API server', () => {
  /** Name of the flow schema that the API server has put such a request in. */
  async function flowOf(user: string, path: string, groups?: string[]): Promise<string | undefined> {
    const { cert, key } = await garden.certificate(user, groups);
    const uid = await new Promise<unknown>((resolve, reject) => {
      get(`${garden.url}${path}`, { ca: garden.ca, cert, key, agent: false }, (answer) => {
        answer.resume();
        resolve(answer.headers['x-kubernetes-pf-flowschema-uid']);
      }).on('error', reject);
    });
    const schemas = await garden.client.list(FLOWSCHEMAS);
    return schemas.items.find(({ metadata }) => metadata.uid === uid)?.metadata.name;
  }

  test('queue people and ServiceAccounts by user regardless of namespace, apart from the operator', async () => {
    const clusters = `/apis/multi-cluster.demo.io/v1/namespaces/${garden.namespace}/workerclusters`;
    const secrets = `/api/v1/namespaces/${garden.namespace}/secrets`;
    // A new schema is heeded a moment after it was made.
    await expect.poll(() => flowOf('ada', clusters), { timeout: 60_000 }).toBe(TENANTS_FLOW);
    await expect.poll(() => flowOf(OPERATOR_USER, clusters), { timeout: 60_000 }).toBe(OPERATOR_FLOW);
    expect(await flowOf(OPERATOR_USER, secrets)).toBe(OPERATOR_FLOW);
    expect(await flowOf('ada', secrets)).toBe('global-default');
    const account = `system:serviceaccount:${garden.namespace}:robot`;
    expect(await flowOf(account, clusters, ['system:serviceaccounts'])).toBe(ACCOUNTS_FLOW);
    for (const name of [TENANTS_FLOW, ACCOUNTS_FLOW])
      expect((await garden.client.get(FLOWSCHEMAS, name)).spec.distinguisherMethod).toEqual({ type: 'ByUser' });
  });
});

test("roles of tenants are aggregated into Kubernetes' view, edit and admin", async () => {
  const aggregated = installManifests()
    .filter(({ kind, metadata }) => kind === 'ClusterRole' && metadata.labels)
    .map(({ metadata }) => [metadata.name, Object.keys(metadata.labels!).map((label) => label.split('to-')[1])]);
  expect(aggregated).toEqual([
    ['coppice:view', ['view', 'edit', 'admin']],
    ['coppice:edit', ['edit', 'admin']],
  ]);
});

test('the operator cannot create token Secrets but other Secrets; other users can', async () => {
  expect(await readRefusal(() => tokenSecret(operator))).toMatch(/makes no Secrets that Kubernetes puts tokens/);
  expect(await readRefusal(() => tokenSecret(async () => garden.client))).toBe('');
  const plain = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'plain', namespace: garden.namespace } };
  expect(await readRefusal(async () => (await operator()).create(plain))).toBe('');
  expect(await readRefusal(() => garden.client.delete(SECRETS, 'plain', garden.namespace))).toBe('');
});
