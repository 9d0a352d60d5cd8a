import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { LABELS } from '../../../operator/api/group.ts';
import { KUBECONFIG_SIGNERS, MAX_KUBECONFIG_REQUEST } from '../../../operator/api/kubeconfig-request.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import type { WorkerCluster, WorkerClusterStatus } from '../../../operator/api/workercluster.ts';
import { askForCertificate } from '../../../operator/cli/kubeconfig/ask.ts';
import { answerRequest, keptRequest } from '../../../operator/controllers/kubeconfigs/controller.ts';
import {
  kubeconfigRefusalOf,
  MOST_RECENT,
  MOST_STORED,
  RECENT_MS,
  readRequest,
} from '../../../operator/controllers/kubeconfigs/decide.ts';
import { keyIn } from '../../../operator/controllers/kubeconfigs/wiring.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { silent } from '../../../operator/kube/log.ts';
import type { CertificateSigningRequest } from '../../../operator/kube/resources.ts';
import { WorkQueue } from '../../../operator/kube/workqueue.ts';
import { newCertificateRequest } from '../../../operator/pki/certificate-request.ts';
import { createCA } from '../../../operator/pki/certificates.ts';
import { requestedKey } from '../../../operator/pki/requested-key.ts';
import { buildShoot, buildWorkerCluster } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';

type KubeconfigDependencies = Parameters<typeof answerRequest>[0];

const NOW = new Date('2026-11-23T12:00:00Z');
const ca = await createCA({ commonName: 'ca', days: 10, now: NOW });
const asked = await newCertificateRequest('kubeconfig');

const request = (spec: Partial<CertificateSigningRequest['spec']> = {}, labels?: Record<string, string>) => ({
  apiVersion: 'certificates.k8s.io/v1',
  kind: 'CertificateSigningRequest',
  metadata: {
    name: 'one',
    uid: 'u-1',
    resourceVersion: '1',
    creationTimestamp: NOW.toISOString(),
    labels: labels ?? { [LABELS.workerCluster]: 'blue', [LABELS.workerClusterNamespace]: 'shop' },
  },
  spec: {
    signerName: KUBECONFIG_SIGNERS.admin,
    username: 'ada',
    groups: ['team'],
    usages: ['client auth'],
    request: Buffer.from(asked.request).toString('base64'),
    ...spec,
  },
});
/** The same request about somebody else, with the old signature. */
function forged(pem: string): string {
  const der = Buffer.from(pem.replace(/-----[^-]+-----|\n/g, ''), 'base64');
  der.write('x', der.indexOf('kubeconfig'));
  return `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`;
}
const cluster = (mode: WorkerClusterStatus['mode'], metadata: object = {}): WorkerCluster =>
  buildWorkerCluster({
    metadata: { name: 'blue', namespace: 'shop', uid: 'c-1', ...metadata },
    status: { mode },
  });
const shoot = (of = 'c-1'): Shoot =>
  buildShoot({
    metadata: { name: 'blue', namespace: 'shop', ownerReferences: [{ kind: 'WorkerCluster', uid: of }] },
    status: { seedName: 'local' },
  });

describe('a kubeconfig request', () => {
  it('is for an hour by default, and ten minutes to a day on request', () => {
    expect(readRequest(request(), 'admin', 1)).toEqual({
      user: 'ada',
      role: 'admin',
      namespace: 'shop',
      name: 'blue',
      seconds: 3600,
    });
    expect(readRequest(request({ expirationSeconds: 600 }), 'viewer', 1)).toMatchObject({ seconds: 600 });
    expect(readRequest(request({ expirationSeconds: 86_400 }), 'viewer', 1)).toMatchObject({ seconds: 86_400 });
  });

  it.each([
    ['longer than a day', request({ expirationSeconds: 86_401 }), 1, 'WrongDuration'],
    ['shorter than ten minutes', request({ expirationSeconds: 599 }), 1, 'WrongDuration'],
    ['a certificate for servers', request({ usages: ['client auth', 'server auth'] }), 1, 'WrongUsages'],
    ['no client certificate', request({ usages: ['digital signature'] }), 1, 'WrongUsages'],
    ['of no cluster', request({}, {}), 1, 'NoCluster'],
    ['by a name of a thousand letters', request({ username: 'a'.repeat(1000) }), 1, 'NoUser'],
    ['by a name with a line break', request({ username: 'ada\nroot' }), 1, 'NoUser'],
    ['too often', request(), MOST_RECENT + 1, 'TooManyRequests'],
    ['with a request of a megabyte', keptRequest(request({ request: 'a'.repeat(1_000_000) })), 1, 'TooLarge'],
  ])('is refused: %s', (_, csr, recent, reason) => {
    expect(readRequest(csr, 'admin', recent)).toMatchObject({ reason });
  });

  it("is cached without a tenant's additions, and once answered without its text", () => {
    const { metadata } = request();
    const more = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`${LABELS.workerCluster}-${at}`, 'x']));
    const added = { annotations: { big: 'x'.repeat(100_000) }, labels: { ...metadata.labels, ...more } };
    const csr = { ...request(), metadata: { ...metadata, ...added } };
    expect(JSON.stringify(keptRequest(csr)).length).toBeLessThan(2_000);
    const forAnother = { ...csr, spec: { ...csr.spec, signerName: 'example.com/other', request: 'z'.repeat(10_000) } };
    expect(JSON.stringify(keptRequest(forAnother)).length).toBeLessThan(2_000);
    expect(keptRequest({ ...csr, status: { certificate: 'y'.repeat(100_000) } })).toMatchObject({
      spec: { username: 'ada', request: '' },
      status: { certificate: 'issued' },
    });
    expect(asked.request.length * 10).toBeLessThan(MAX_KUBECONFIG_REQUEST);
  });
});

describe('the permitted requester of a kubeconfig', () => {
  const of = { user: 'ada', role: 'admin', namespace: 'shop', name: 'blue', seconds: 600 } as const;
  const view = { allowed: true, cluster: cluster('Hosted'), shoot: shoot() };

  it.each(['Hosted', 'SelfManaged'] as const)('whoever RBAC lets, of a cluster of mode %s', (mode) => {
    expect(kubeconfigRefusalOf(of, { ...view, cluster: cluster(mode) })).toBeUndefined();
  });

  it.each([
    [
      'nobody else, who is not told either whether there is such a cluster',
      { allowed: false, cluster: undefined },
      'Forbidden',
    ],
    ['not of a cluster that is not there', { cluster: undefined }, 'NotFound'],
    ['not where a cloud keeps the keys', { cluster: cluster('Managed') }, 'NotOurs'],
    ['not of what others made', { cluster: cluster('Attached') }, 'NotOurs'],
    ['not of a cluster that goes', { cluster: cluster('Hosted', { deletionTimestamp: 'now' }) }, 'Deleting'],
    ['not before there is a control plane', { shoot: undefined }, 'NotReady'],
    ['not of an earlier cluster of the name', { shoot: shoot('c-0') }, 'NotReady'],
  ])('%s', (_, change, reason) => expect(kubeconfigRefusalOf(of, { ...view, ...change })).toMatchObject({ reason }));
});

describe('answering a kubeconfig request', () => {
  /** A garden with one request. */
  function garden(csr: CertificateSigningRequest, allowed = true, now = NOW, recent = 1) {
    let current: CertificateSigningRequest | undefined = csr;
    const reviews: any[] = [];
    const world = partOf<KubeconfigDependencies>({
      garden: {
        request: async (_method: string, _path: string, { body }: any) => {
          reviews.push(body.spec);
          return { status: { allowed } };
        },
        mergePatch: async (_resource: unknown, _name: string, _namespace: unknown, patch: any) => {
          expect(patch.metadata.resourceVersion).toBe(current!.metadata.resourceVersion);
          current = {
            ...current!,
            metadata: { ...current!.metadata, resourceVersion: String(Number(current!.metadata.resourceVersion) + 1) },
            status: { ...current!.status, ...patch.status },
          };
          return current;
        },
        delete: async () => {
          current = undefined;
          return true;
        },
      },
      requests: { get: () => current, byIndex: () => Array(recent).fill(current), absorb: () => {} },
      clusters: { get: () => cluster('Hosted') },
      shoots: { get: () => shoot() },
      log: silent,
      now: () => now,
      authority: async () => ca,
      publicKey: requestedKey,
    });
    const answer = () => answerRequest(world, 'one', new AbortController().signal);
    return { answer, reviews, now: () => current };
  }

  it("signs the requester's key for the requester's name and the requested time, and sends no key", async () => {
    const { answer, now, reviews } = garden(request({ expirationSeconds: 1800, extra: { of: ['x'] }, uid: 'u' }));
    await answer();
    const pems = Buffer.from(now()!.status!.certificate!, 'base64').toString();
    expect(pems).not.toContain('PRIVATE');
    expect(pems.endsWith(ca.cert)).toBe(true);
    const certificate = new X509Certificate(pems);
    expect(certificate.verify(createPublicKey(ca.cert))).toBe(true);
    expect(certificate.checkPrivateKey(createPrivateKey(asked.key))).toBe(true);
    expect(certificate.subject.split('\n').sort()).toEqual(['CN=garden:ada', 'O=coppice:admins']);
    expect(+certificate.validToDate - +NOW).toBe(1800_000);
    expect(now()!.status!.conditions).toMatchObject([{ type: 'Approved', status: 'True' }]);
    expect(reviews).toEqual([
      {
        user: 'ada',
        groups: ['team'],
        uid: 'u',
        extra: { of: ['x'] },
        resourceAttributes: {
          group: 'multi-cluster.demo.io',
          resource: 'workerclusters',
          subresource: 'adminkubeconfig',
          verb: 'create',
          namespace: 'shop',
          name: 'blue',
        },
      },
    ]);
  });

  it('makes no Kubernetes administrator of a requester with such a name', async () => {
    const { answer, now } = garden(request({ username: 'system:kube-controller-manager', groups: ['system:masters'] }));
    await answer();
    const { subject } = new X509Certificate(Buffer.from(now()!.status!.certificate!, 'base64'));
    expect(subject.split('\n').sort()).toEqual(['CN=garden:system:kube-controller-manager', 'O=coppice:admins']);
  });

  it('continues after a crash between approval and signature, and checks rights again', async () => {
    const approved = { ...request(), status: { conditions: [{ type: 'Approved', status: 'True' as const }] } };
    const good = garden(approved);
    await good.answer();
    expect(good.now()!.status!.certificate).toBeDefined();
    const taken = garden(approved, false);
    await taken.answer();
    expect(taken.now()!.status).toMatchObject({
      conditions: [{ type: 'Approved' }, { type: 'Failed', reason: 'Forbidden' }],
    });
    expect(taken.now()!.status!.certificate).toBeUndefined();
  });

  it('denies requesters without RBAC rights, and names the missing right', async () => {
    const { answer, now } = garden(request(), false);
    await answer();
    expect(now()!.status!.conditions).toMatchObject([
      {
        type: 'Denied',
        reason: 'Forbidden',
        message:
          'ada may not create workerclusters/adminkubeconfig of WorkerCluster shop/blue: ask who grants roles in namespace shop',
      },
    ]);
  });

  it.each([
    ['that its key has not signed', forged(asked.request)],
    ['that is none', 'nonsense'],
  ])('denies a request %s', async (_, text) => {
    const { answer, now } = garden(request({ request: Buffer.from(text).toString('base64') }));
    await answer();
    expect(now()!.status!.conditions).toMatchObject([{ type: 'Denied', reason: 'WrongKey' }]);
  });

  it('keeps no request for longer than ten minutes', async () => {
    const answered = { ...request(), status: { certificate: 'x' } };
    expect(await garden(answered).answer()).toEqual({ requeueAfterMs: RECENT_MS });
    for (const csr of [answered, request()]) {
      const late = garden(csr, true, new Date(+NOW + RECENT_MS));
      await late.answer();
      expect(late.now()).toBeUndefined();
    }
  });

  it('deletes requests of a flood without a further write, beyond a limit per requester', async () => {
    const refused = garden(request(), true, NOW, MOST_STORED);
    await refused.answer();
    expect(refused.now()!.status!.conditions).toMatchObject([{ type: 'Denied', reason: 'TooManyRequests' }]);
    const deleted = garden(request(), true, NOW, MOST_STORED + 1);
    expect(await deleted.answer()).toBeUndefined();
    expect([deleted.now(), deleted.reviews]).toEqual([undefined, []]);
  });

  it('tells a requester with a deleted request to ask less often', async () => {
    const status = { reason: 'NotFound', code: 404, message: 'not found' };
    const get = () => Promise.reject(new KubeApiError('GET /x', 404, status));
    const client = partOf<Parameters<typeof askForCertificate>[0]>({ create: async () => ({}), get });
    const wanted = { namespace: 'shop', name: 'blue', role: 'admin', seconds: 600 } as const;
    await expect(askForCertificate(client, wanted, new AbortController().signal)).rejects.toThrow(/you make too many/);
  });

  it('ignores requests for other signers', async () => {
    const { answer, now, reviews } = garden(request({ signerName: 'kubernetes.io/kube-apiserver-client' }));
    await answer();
    expect([now()!.status, reviews]).toEqual([undefined, []]);
  });
});

describe('the turns of requesters', () => {
  const by = (username: string, at: number) => {
    const { metadata, ...csr } = request({ username });
    return { ...csr, metadata: { ...metadata, name: `${username.replaceAll(/\W/g, '-')}-${at}` } };
  };
  const account = (namespace: string, name: string) => `system:serviceaccount:${namespace}:${name}`;

  it.each([
    ['a user', () => 'mallory'],
    ['all ServiceAccounts of a namespace, however many', (at: number) => account('evil', `app-${at}`)],
  ])('1,500 requests of %s about the cluster of another tenant keep that tenant waiting for one', async (_, name) => {
    const queue = new WorkQueue();
    for (let at = 0; at < 1500; at++) queue.add(keyIn(by(name(at), at)));
    const theirs = ['ada', account('shop', 'deployer'), 'https://accounts.example.com#ben'].map((user) => by(user, 0));
    for (const one of theirs) queue.add(keyIn(one));
    const first = await Promise.all(Array.from({ length: 1 + theirs.length }, () => queue.get()));
    for (const { metadata } of theirs) expect(first.some((key) => key!.endsWith(`/${metadata.name}`))).toBe(true);
  });

  it('are separate for any names', () => {
    const turns = [
      'evil',
      account('evil', 'app'),
      'system:serviceaccount:evil',
      'namespace:evil',
      'https://a/b',
      'https://a/c',
      'user:evil',
      '',
    ].map((user) => keyIn(by(user, 0)).split('/')[0]);
    expect(new Set(turns).size).toBe(turns.length - 1);
    expect(turns[1]).toBe(turns[2]);
  });
});
