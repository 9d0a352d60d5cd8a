import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MAX_CERTIFICATE_REQUEST } from '../../../operator/api/certificate-request-policy.ts';
import { LABELS } from '../../../operator/api/group.ts';
import { installManifests } from '../../../operator/api/install.ts';
import { KUBECONFIG_SIGNERS, MAX_KUBECONFIG_REQUEST } from '../../../operator/api/kubeconfig-request.ts';
import type { KubeObject } from '../../../operator/api/meta.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { CSRS } from '../../../operator/kube/resources.ts';
import { newCertificateRequest } from '../../../operator/pki/certificate-request.ts';
import { readRefusal } from '../../kit/read-refusal.ts';
import { type SharedApiserver, sharedApiserver } from '../../kit/shared-apiserver.ts';

const RBAC = 'rbac.authorization.k8s.io';
const CLIENTS = 'kubernetes.io/kube-apiserver-client';
let garden: SharedApiserver;
let asked: string;

beforeAll(async () => {
  garden = await sharedApiserver();
  for (const manifest of installManifests()) await garden.client.apply(manifest);
  asked = base64((await newCertificateRequest('kubeconfig')).request);
  const app = await as(ACCOUNT);
  const settled = async () => (await answer(app, request({ signerName: 'example.com/other' }))) !== '';
  const deadline = Date.now() + 30_000;
  while (!(await settled()) && Date.now() < deadline) await sleep(100);
}, 180_000);
afterAll(() => garden?.leave());

const ACCOUNT = 'system:serviceaccount:team-a:app';
const base64 = (text: string) => Buffer.from(text).toString('base64');
const as = async (user: string, groups: string[] = []) => garden.connect(await garden.certificate(user, groups));

/** PEM with a certificate request of that many characters in base64; the API server reads the request within it only. */
const padded = (characters: number) => {
  const pem = Buffer.from(asked, 'base64').toString();
  return base64(`${pem}${'\n'.repeat(Math.floor((characters * 3) / 4) - pem.length)}`);
};

const ofCluster = { [LABELS.workerCluster]: 'blue', [LABELS.workerClusterNamespace]: 'team-a' };
let made = 0;
const request = (spec: object = {}, metadata: object = {}): KubeObject => ({
  apiVersion: 'certificates.k8s.io/v1',
  kind: 'CertificateSigningRequest',
  metadata: { name: `${garden.namespace}-${made++}`, labels: ofCluster, ...metadata },
  spec: { signerName: KUBECONFIG_SIGNERS.viewer, usages: ['client auth'], request: asked, ...spec },
});

const answer = (client: KubeClient, object: KubeObject) => readRefusal(() => client.create(object));

describe('a ServiceAccount without roles', () => {
  test('may request a kubeconfig, also by kubectl apply', async () => {
    const app = await as(ACCOUNT);
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(request()) };
    expect(await answer(app, request({}, { annotations }))).toBe('');
    expect(await answer(app, request({ request: padded(MAX_KUBECONFIG_REQUEST - 10) }))).toBe('');
    // The API server itself drops these.
    const versions = managed({}, { apiVersion: `${'v'.repeat(100_000)}/v1` });
    for (const large of [request({}, { selfLink: 'x'.repeat(500_000) }), versions]) {
      expect(await answer(app, large)).toBe('');
      expect(JSON.stringify(await garden.client.get(CSRS, large.metadata.name)).length).toBeLessThan(10_000);
    }
  });

  test.each<[string, () => KubeObject, RegExp]>([
    ['a foreign signer', () => request({ signerName: CLIENTS }), /you may only ask for kubeconfigs/],
    ['1.2 MB', () => request({ request: padded(1_200_000) }), /spec\.request has more than/],
    [
      'a request of 20 KiB',
      () => request({ request: padded(20 * 1024) }),
      /spec\.request of a request for a kubeconfig/,
    ],
    ['no labels', () => request({}, { labels: undefined }), /needs the labels/],
    ['one label only', () => request({}, { labels: { [LABELS.workerCluster]: 'blue' } }), /needs the labels/],
    ['a finalizer', () => request({}, { finalizers: ['example.com/mine'] }), /no finalizers/],
    [
      'owners',
      () => request({}, { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'x', uid: 'x' }] }),
      /no ownerReferences/,
    ],
    [
      'thousands of labels',
      () => request({}, { labels: { ...ofCluster, ...entries(5000, 'x') } }),
      /at most 16 labels/,
    ],
    ['200 KB of annotations', () => request({}, { annotations: entries(20, 'y'.repeat(10_000)) }), /annotations of/],
    ['labels in managed fields only', () => managed({ 'f:metadata': { 'f:labels': fields(20_000) } }), /managedFields/],
    ['unknown fields in managed fields', () => managed({ 'f:spec': fields(20_000) }), /managedFields/],
    ['thousands of parts in managed fields', () => managed(fields(20_000)), /managedFields/],
    ['deep managed fields', () => managed({ 'f:spec': { 'f:usages': fields(20_000) } }), /managedFields/],
    ['two managers', () => request({}, { managedFields: [entry({}), entry({}, { manager: 'two' })] }), /managedFields/],
  ])('stores nothing with %s', async (_, object, message) => {
    const wanted = object();
    expect(await answer(await as(ACCOUNT), wanted)).toMatch(message);
    await expect(garden.client.get(CSRS, wanted.metadata.name)).rejects.toThrow(/not found/);
  });
});

const entries = (count: number, value: string) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`example.com/${at}`, value]));
const fields = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`f:${'z'.repeat(10)}${at}`, {}]));
const entry = (fieldsV1: object, more: object = {}) => ({
  manager: 'one',
  operation: 'Update',
  apiVersion: 'certificates.k8s.io/v1',
  time: '2026-01-01T00:00:00Z',
  fieldsType: 'FieldsV1',
  fieldsV1: { 'f:spec': { 'f:request': {} }, ...fieldsV1 },
  ...more,
});
const managed = (fieldsV1: object, more: object = {}) => request({}, { managedFields: [entry(fieldsV1, more)] });

describe('a requester with another role may use other signers, within limits of size', () => {
  const bind = (name: string, role: string, subject: object) =>
    garden.client.create({
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: `${garden.namespace}-${name}` },
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role },
      subjects: [{ apiGroup: RBAC, ...subject }],
    });
  const ownRole = (name: string, verbs: string[]) =>
    garden.client.create({
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRole',
      metadata: { name: `${garden.namespace}-${name}` },
      rules: [{ apiGroups: ['certificates.k8s.io'], resources: ['certificatesigningrequests'], verbs }],
    });

  beforeAll(async () => {
    await bind('bootstrap', 'system:node-bootstrapper', { kind: 'Group', name: 'system:bootstrappers' });
    await bind('nodes', 'system:node', { kind: 'Group', name: 'system:nodes' });
    await ownRole('cert-manager', ['get', 'list', 'watch', 'create']);
    await ownRole('agent', ['create', 'get', 'watch']);
    await bind('cert-manager', `${garden.namespace}-cert-manager`, {
      kind: 'User',
      name: 'system:serviceaccount:cert-manager:cert-manager',
    });
    await bind('agent', `${garden.namespace}-agent`, { kind: 'User', name: 'system:serviceaccount:db:agent' });
  });

  test.each<[string, string, string[], string]>([
    ['a kubelet', 'system:node:a', ['system:nodes'], 'kubernetes.io/kubelet-serving'],
    [
      'a bootstrap token',
      'system:bootstrap:abcdef',
      ['system:bootstrappers'],
      'kubernetes.io/kube-apiserver-client-kubelet',
    ],
    ['cert-manager', 'system:serviceaccount:cert-manager:cert-manager', [], 'clusterissuers.cert-manager.io/ca'],
    ['an agent that watches its own request', 'system:serviceaccount:db:agent', [], CLIENTS],
    ['an administrator', 'root', ['system:masters'], CLIENTS],
  ])('%s', async (_, user, groups, signerName) => {
    const client = await as(user, groups);
    const usages = ['digital signature', signerName.endsWith('serving') ? 'server auth' : 'client auth'];
    const more = { labels: undefined, finalizers: ['example.com/mine'], annotations: entries(2, 'y'.repeat(20_000)) };
    const large = request({ signerName, usages, request: padded(MAX_CERTIFICATE_REQUEST - 10) }, more);
    expect(await answer(client, large)).toBe('');
    const larger = request({ signerName, usages, request: padded(MAX_CERTIFICATE_REQUEST + 10) }, more);
    expect(await answer(client, larger)).toMatch(/spec\.request has more than 65536 characters/);
  });
});
