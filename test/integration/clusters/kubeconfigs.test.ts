import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { load } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LABELS } from '../../../operator/api/group.ts';
import { installManifests } from '../../../operator/api/install.ts';
import { OPERATOR_USER } from '../../../operator/api/roles.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import { askForCertificate, type WantedKubeconfig } from '../../../operator/cli/kubeconfig/ask.ts';
import { main } from '../../../operator/cli/main.ts';
import { createTerminal } from '../../../operator/cli/terminal.ts';
import { KubeClient } from '../../../operator/kube/client.ts';
import { CONFIGMAPS, CSRS, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { newCertificateRequest } from '../../../operator/pki/certificate-request.ts';
import { adminKubeconfig } from '../../../operator/shoot/kubeconfigs.ts';
import { issueShootPKI, type PKIData, planShootPKI } from '../../../operator/shoot/pki.ts';
import { adminAccess, viewerAccess } from '../../../operator/shoot/system-components.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';
import { type AnsweredRequests, answerRequests } from '../../kit/kubeconfig-requests.ts';

/** One API server is both the garden and the cluster that people want to come into: it trusts what the operator signs. */
let api: TestApiserver;
let world: AnsweredRequests;
const { signal } = new AbortController();
const NAMESPACE = 'shop';
const wanted = (more: Partial<WantedKubeconfig> = {}): WantedKubeconfig => ({
  namespace: NAMESPACE,
  name: 'blue',
  role: 'admin',
  seconds: 600,
  ...more,
});
const as = async (user: string) => api.connect(await api.certificate(user));

async function grant(user: string, role: string): Promise<KubeClient> {
  await api.client.create({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: user, namespace: NAMESPACE },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
  });
  return as(user);
}

beforeAll(async () => {
  api = await startApiserver();
  for (const manifest of [...installManifests(), ...adminAccess(), ...viewerAccess()]) await api.client.apply(manifest);
  await api.client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  const blue = {
    apiVersion: 'multi-cluster.demo.io/v1',
    kind: 'WorkerCluster',
    metadata: { name: 'blue', namespace: NAMESPACE },
    spec: { cloudProvider: 'local', dataPlaneNodes: 1 },
  };
  // A new kind is served a moment after it was made.
  const deadline = Date.now() + 60_000;
  while (!(await api.client.apply(blue).catch(() => undefined)) && Date.now() < deadline) await sleep(100);
  const status = { mode: 'Hosted', endpoint: api.url };
  const cluster = await api.client.mergePatch(WORKERCLUSTERS, 'blue', NAMESPACE, { status }, { subresource: 'status' });
  const shoot = {
    metadata: { name: 'blue', namespace: NAMESPACE, ownerReferences: [{ uid: cluster.metadata.uid }] },
    status: { seedName: 'local' },
  } as unknown as Shoot;
  world = await answerRequests(api, cluster, shoot);
}, 180_000);
afterAll(async () => {
  await world?.stop();
  await api?.stop();
});

const whoIs = async (client: KubeClient) =>
  (
    await client.request('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
    })
  ).status.userInfo;

describe('a person who requests a kubeconfig', () => {
  it('with edit rights in the namespace becomes administrator of the cluster, under their own name', async () => {
    const ada = await grant('ada', 'coppice:edit');
    const { cert, key, ca, endsAt } = await askForCertificate(ada, wanted({ seconds: 1800 }), signal);
    expect(ca.trim()).toBe(api.ca.trim());
    expect(Date.parse(endsAt) - Date.now()).toBeLessThanOrEqual(1800_000);
    const inside = api.connect({ cert, key });
    expect(await whoIs(inside)).toMatchObject({
      username: 'garden:ada',
      groups: expect.arrayContaining(['coppice:admins']),
    });
    await inside.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'made-by-ada' } });
  });

  it('with view rights can read all but Secrets, and is refused more', async () => {
    const ben = await grant('ben', 'coppice:view');
    await expect(askForCertificate(ben, wanted(), signal)).rejects.toThrow(
      'ben may not create workerclusters/adminkubeconfig of WorkerCluster shop/blue',
    );
    const { cert, key } = await askForCertificate(ben, wanted({ role: 'viewer' }), signal);
    const inside = api.connect({ cert, key });
    // What is in namespaces comes from the role `view`, which no controller manager fills here: local-cluster.test.ts reads that.
    for (const path of ['/api/v1/nodes', '/api/v1/namespaces'])
      expect(await inside.request('GET', path)).toHaveProperty('items');
    await expect(inside.request('GET', '/api/v1/secrets')).rejects.toThrow(/forbidden/);
    await expect(
      inside.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'made-by-ben' } }),
    ).rejects.toThrow(/forbidden/);
  });

  it('without a role gets nothing, and does not learn whether the cluster exists', async () => {
    const cid = await as('cid');
    const refusals = await Promise.all(
      ['blue', 'none'].map((name) => askForCertificate(cid, wanted({ name }), signal).catch((error) => error.message)),
    );
    expect(refusals[0]).toContain('cid may not create');
    expect(refusals[1]).toBe(refusals[0].replace('blue', 'none'));
    await expect(cid.list(CSRS)).rejects.toThrow(/forbidden/);
  });

  it('cannot have the operator sign for anything else', async () => {
    const operator = await as(OPERATOR_USER);
    const csr = {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: {
        name: 'other',
        labels: { [LABELS.workerCluster]: 'blue', [LABELS.workerClusterNamespace]: NAMESPACE },
      },
      spec: {
        signerName: 'kubernetes.io/kube-apiserver-client',
        usages: ['client auth'],
        request: await someRequest(),
      },
    };
    await api.client.create(csr);
    const approval = { status: { conditions: [{ type: 'Approved', status: 'True', reason: 'x', message: 'x' }] } };
    await expect(operator.mergePatch(CSRS, 'other', undefined, approval, { subresource: 'approval' })).rejects.toThrow(
      /not permitted to approve/,
    );
  });
});

const someRequest = async () => {
  return Buffer.from((await newCertificateRequest('x')).request).toString('base64');
};

it('"coppice kubeconfig" gives kubectl a plugin that requests once and caches the answer for its user only', async () => {
  const home = await mkdtemp(join(tmpdir(), 'coppice-kubeconfig-'));
  try {
    const env = { HOME: home, COPPICE_HOME: join(home, 'none'), KUBECONFIG: join(home, 'config') };
    await writeFile(env.KUBECONFIG, api.kubeconfig);
    const coppice = async (...words: string[]) => {
      let out = '';
      const terminal = createTerminal({ out: { write: (text) => (out += text) }, err: { write: () => {} }, env });
      expect(await main(words, terminal, env, signal)).toBe(0);
      return out;
    };
    const config = load(await coppice('kubeconfig', 'blue', '-n', NAMESPACE, '--viewer', '--exec')) as any;
    const { exec } = config.users[0].user;
    expect(exec).toMatchObject({ apiVersion: 'client.authentication.k8s.io/v1', interactiveMode: 'Never' });
    expect(JSON.stringify(config)).not.toMatch(/client-key|token/);
    const before = (await api.client.list(CSRS)).items.length;
    const { status } = JSON.parse(await coppice(...exec.args));
    expect((await api.client.list(CSRS)).items).toHaveLength(before);
    const inside = api.connect({ cert: status.clientCertificateData, key: status.clientKeyData });
    expect((await whoIs(inside)).groups).toContain('coppice:viewers');
    const folder = join(home, '.cache', 'coppice', 'credentials');
    const [file] = await readdir(folder);
    expect([(await stat(folder)).mode & 0o777, (await stat(join(folder, file!))).mode & 0o777]).toEqual([0o700, 0o600]);
    expect(JSON.parse(await readFile(join(folder, file!), 'utf8')).endsAt).toBe(status.expirationTimestamp);
  } finally {
    await rm(home, { recursive: true });
  }
});

it("a client with the Secret's kubeconfig is never refused during repeated renewals of its certificate", async () => {
  const { cert, key } = api.keys.ca;
  const parameters = { apiServerAddress: '127.0.0.1', etcdAddresses: [], services: '10.222.0.0/24', selfHosted: true };
  const renewed = async (data: PKIData, now: Date) =>
    issueShootPKI(data, planShootPKI(data, parameters, now), parameters, now);
  const url = new URL(api.url);
  const values = {
    shoot: { name: 'blue', namespace: NAMESPACE },
    addresses: { apiServer: url.hostname, etcd: [] },
    endpoint: { host: url.hostname, port: Number(url.port) },
  };
  const hour = 3600_000;
  const began = Date.now();
  // Four days ago, so that the first one is four days old where its writer still has it, and no clock is in the future.
  let data = await renewed({ 'ca.crt': cert, 'ca.key': key }, new Date(began - 96 * hour));
  let secret = adminKubeconfig(values, data);
  const first = secret;
  const refused: unknown[] = [];
  let [writes, ended] = [0, false];
  const writer = async (name: string, read: () => string) => {
    let [held, client] = ['', undefined as KubeClient | undefined];
    while (!ended) {
      const now = read();
      if (now !== held) {
        await client?.close();
        client = KubeClient.fromKubeconfig(now);
        held = now;
      }
      const object = {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name, namespace: NAMESPACE },
        data: { n: `${writes}` },
      };
      await client!.apply(object).then(
        () => writes++,
        (error) => refused.push(error),
      );
    }
    await client?.close();
  };
  const writers = [writer('reads-again', () => secret), writer('never-reads-again', () => first)];
  const seen = new Set([first]);
  for (let past = 95; past >= 0; past--) {
    data = await renewed(data, new Date(began - past * hour));
    secret = adminKubeconfig(values, data);
    if (!seen.has(secret)) {
      seen.add(secret);
      const at = writes;
      await expect.poll(() => writes, { timeout: 60_000 }).toBeGreaterThan(at + 3);
    }
    await sleep(0);
  }
  ended = true;
  await Promise.all(writers);
  expect(refused).toEqual([]);
  expect(seen.size).toBe(5);
  expect((await api.client.get(CONFIGMAPS, 'reads-again', NAMESPACE)).metadata.name).toBe('reads-again');
});
