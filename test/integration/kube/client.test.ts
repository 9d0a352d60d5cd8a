import { once } from 'node:events';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { blockedBy } from '../../../operator/burst/nodes/pod-budgets.ts';
import { webhookIn } from '../../../operator/controllers/problematic-webhook.ts';
import { KubeClient } from '../../../operator/kube/client.ts';
import { parseOwnKubeconfig } from '../../../operator/kube/kubeconfig.ts';
import {
  CONFIGMAPS,
  type ConfigMap,
  CRDS,
  NAMESPACES,
  PDBS,
  PODS,
  type Pod,
  type Resource,
} from '../../../operator/kube/resources.ts';
import { createCA, issue } from '../../../operator/pki/certificates.ts';
import { casesOf } from '../../kit/cases.ts';
import { startFlakyProxy } from '../../kit/flaky-proxy.ts';
import { type SharedApiserver, sharedApiserver } from '../../kit/shared-apiserver.ts';

let api: SharedApiserver;
let client: KubeClient;

beforeAll(async () => {
  api = await sharedApiserver();
  client = api.client;
});
afterAll(() => api?.leave());

const GROUP = 'admissionregistration.k8s.io';
const KIND = 'MutatingWebhookConfiguration';

const newNamespace = () => api.newNamespace();

function configMap(namespace: string, name: string, data: Record<string, string> = {}): ConfigMap {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name }, data };
}

const WIDGETS: Resource = { group: 'test.example', version: 'v1', plural: 'widgets', kind: 'Widget', namespaced: true };

async function installWidgets(): Promise<void> {
  const schema = {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: {
          size: { type: 'integer', maximum: 9 },
          free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
        'x-kubernetes-validations': [{ rule: 'self.size == oldSelf.size', message: 'size cannot change' }],
      },
      status: { type: 'object', properties: { phase: { type: 'string' } } },
    },
  };
  const crd = await client.apply({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.test.example' },
    spec: {
      group: 'test.example',
      scope: 'Namespaced',
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
      versions: [
        { name: 'v1', served: true, storage: true, subresources: { status: {} }, schema: { openAPIV3Schema: schema } },
      ],
    },
  });
  // The other client library loses exactly these keys.
  expect(crd.spec.versions[0]!.schema.openAPIV3Schema.properties.spec['x-kubernetes-validations']).toHaveLength(1);
  for (;;) {
    const { status } = await client.get(CRDS, 'widgets.test.example');
    if (status?.conditions?.some((condition: any) => condition.type === 'Established' && condition.status === 'True'))
      break;
    await delay(50);
  }
}

describe('KubeClient objects', () => {
  it('are made, read, listed, changed and deleted', async () => {
    const namespace = await newNamespace();
    const made = await client.create(configMap(namespace, 'a', { x: '1' }));
    expect(made.metadata.uid).toBeTruthy();
    expect((await client.get<ConfigMap>(CONFIGMAPS, 'a', namespace)).data).toEqual({ x: '1' });
    expect(await client.getOrUndefined(CONFIGMAPS, 'b', namespace)).toBeUndefined();
    await expect(client.get(CONFIGMAPS, 'b', namespace)).rejects.toMatchObject({
      isNotFound: true,
      reason: 'NotFound',
    });
    const patched = await client.mergePatch<ConfigMap>(CONFIGMAPS, 'a', namespace, { data: { x: null, y: '2' } });
    expect(patched.data).toEqual({ y: '2' });
    const take = (value: string) =>
      client.jsonPatch<ConfigMap>(CONFIGMAPS, 'a', namespace, [
        { op: 'test', path: '/metadata/uid', value: made.metadata.uid },
        { op: 'test', path: '/data/y', value },
        { op: 'remove', path: '/data/y' },
      ]);
    await expect(take('1')).rejects.toMatchObject({ status: 422 });
    expect((await take('2')).data ?? {}).toEqual({});
    const { items } = await client.list(CONFIGMAPS, { namespace });
    expect(items.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual(['ConfigMap a']);
    expect(await client.delete(CONFIGMAPS, 'a', namespace, { preconditions: { uid: made.metadata.uid! } })).toBe(true);
    expect(await client.delete(CONFIGMAPS, 'a', namespace)).toBe(false);
  });

  it('are listed over several pages, and deleted by selector', async () => {
    const namespace = await newNamespace();
    for (let index = 0; index < 7; index++) {
      const object = configMap(namespace, `m${index}`);
      await client.create({ ...object, metadata: { ...object.metadata, labels: { odd: String(index % 2 === 1) } } });
    }
    const { items } = await client.list(CONFIGMAPS, { namespace, pageSize: 3 });
    expect(items.map(({ metadata }) => metadata.name)).toEqual(['m0', 'm1', 'm2', 'm3', 'm4', 'm5', 'm6']);
    await client.deleteCollection(CONFIGMAPS, { namespace, labelSelector: 'odd=true' });
    expect((await client.list(CONFIGMAPS, { namespace })).items).toHaveLength(4);
    await expect(client.deleteCollection(CONFIGMAPS)).rejects.toThrow('needs a namespace');
  });

  it('throw a conflict when another client wrote in between, but AlreadyExists when the object exists', async () => {
    const namespace = await newNamespace();
    const old = await client.create(configMap(namespace, 'a'));
    await expect(client.create(configMap(namespace, 'a'))).rejects.toMatchObject({
      status: 409,
      isAlreadyExists: true,
      isConflict: false,
    });
    await client.update({ ...old, data: { x: '1' } });
    await expect(client.update({ ...old, data: { x: '2' } })).rejects.toMatchObject({
      status: 409,
      isConflict: true,
      isAlreadyExists: false,
    });
    const stale = { preconditions: { uid: 'somebody-else' } };
    await expect(client.delete(CONFIGMAPS, 'a', namespace, stale)).rejects.toMatchObject({ isConflict: true });
  });
});

describe('server-side apply', () => {
  it('creates, changes and removes its own fields, and leaves the fields of other managers', async () => {
    const namespace = await newNamespace();
    await client.apply(configMap(namespace, 'a', { ours: '1', gone: '1' }));
    await client.mergePatch(CONFIGMAPS, 'a', namespace, { data: { theirs: 'x' } }, { dryRun: false });
    const second = await client.apply(configMap(namespace, 'a', { ours: '2' }));
    expect(second.data).toEqual({ ours: '2', theirs: 'x' });
    const version = second.metadata.resourceVersion;
    const third = await client.apply(configMap(namespace, 'a', { ours: '2' }));
    expect(third.metadata.resourceVersion).toBe(version);
    // What was read can be applied as it is, though that makes every field in it ours.
    expect((await client.apply(third)).data).toEqual({ ours: '2', theirs: 'x' });
  });

  it('takes a field over only when forced', async () => {
    const namespace = await newNamespace();
    await client.apply(configMap(namespace, 'a', { x: '1' }), { fieldManager: 'other' });
    const gentle = client.apply(configMap(namespace, 'a', { x: '2' }), { force: false });
    await expect(gentle).rejects.toMatchObject({ isConflict: true });
    expect((await client.apply(configMap(namespace, 'a', { x: '2' }))).data).toEqual({ x: '2' });
  });

  it('refuses unknown fields, invalid values and forbidden changes, and keeps unrelated fields', async () => {
    await installWidgets();
    const namespace = await newNamespace();
    const widget = (spec: object) => ({
      apiVersion: 'test.example/v1',
      kind: 'Widget',
      metadata: { name: 'w', namespace },
      spec,
    });
    const apply = (spec: object) => client.apply(widget(spec), { resource: WIDGETS });
    await expect(apply({ size: 1, sice: 2 })).rejects.toThrow('.spec.sice: field not declared in schema');
    await expect(client.create(widget({ size: 1, sice: 2 }), { resource: WIDGETS })).rejects.toMatchObject({
      status: 400,
      isInvalid: true,
      message: expect.stringContaining('unknown field "spec.sice"'),
    });
    await expect(apply({ size: 10 })).rejects.toMatchObject({ status: 422, isInvalid: true, reason: 'Invalid' });
    expect((await apply({ size: 1, free: { any: { thing: 1 } } })).spec).toEqual({
      size: 1,
      free: { any: { thing: 1 } },
    });
    await expect(apply({ size: 2 })).rejects.toThrow('size cannot change');

    const status = { ...widget({}), spec: undefined, status: { phase: 'Ready' } };
    const applied = await client.apply(status, { resource: WIDGETS, subresource: 'status' });
    expect(applied).toMatchObject({ spec: { size: 1 }, status: { phase: 'Ready' } });
    const dry = await client.apply(
      { ...status, status: { phase: 'Dry' } },
      { resource: WIDGETS, subresource: 'status', dryRun: true },
    );
    expect(dry.status.phase).toBe('Dry');
    expect((await client.get(WIDGETS, 'w', namespace)).status.phase).toBe('Ready');
  });

  it('leaves out status fields that an older CRD does not declare, and reports their paths', async () => {
    await installWidgets();
    const namespace = await newNamespace();
    const told: [string, readonly string[]][] = [];
    const operator = api.connect({ onUndeclared: (kind, fields) => told.push([kind, fields.toSorted()]) });
    const metadata = { name: 'later', namespace };
    await client.create(
      { apiVersion: 'test.example/v1', kind: 'Widget', metadata, spec: { size: 1 } },
      { resource: WIDGETS },
    );
    const status = { phase: 'Ready', laterField: 1, laterObject: { a: 2 } };
    const widget = { apiVersion: 'test.example/v1', kind: 'Widget', metadata, status };
    const options = { resource: WIDGETS, subresource: 'status' };
    // The API server names one of the two fields, in the random order of a Go map.
    await expect(operator.apply(widget, options)).rejects.toThrow(
      /\.status\.later(Field|Object): field not declared in schema/,
    );
    const written = await operator.apply(widget, { ...options, leaveOutUndeclared: true });
    expect(written.status).toEqual({ phase: 'Ready' });
    expect(told).toEqual([['Widget', ['status.laterField', 'status.laterObject']]]);
  });
});

it('the error of a write names the webhook that timed out', async () => {
  const namespace = await newNamespace();
  const ca = await createCA({ commonName: 'webhook', days: 1 });
  const serving = { commonName: 'webhook', ipAddresses: ['127.0.0.1'], usages: ['server' as const], days: 1 };
  // It takes requests, and never answers.
  const hanging = createServer(await issue(ca, serving), () => {});
  hanging.listen(0, '127.0.0.1');
  await once(hanging, 'listening');
  const url = `https://127.0.0.1:${(hanging.address() as AddressInfo).port}/`;
  const webhook = (name: string, timeoutSeconds: number, failurePolicy: 'Fail' | 'Ignore') => ({
    name: `${name}.example.com`,
    clientConfig: { url, caBundle: Buffer.from(ca.cert).toString('base64') },
    rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
    // In other tests of this API server nobody's.
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    timeoutSeconds,
    failurePolicy,
  });
  const resource = {
    group: GROUP,
    version: 'v1',
    plural: 'mutatingwebhookconfigurations',
    kind: KIND,
    namespaced: false,
  };
  const metadata = { name: `hanging-${namespace}` };
  // One after the other: 33 of the 34 seconds that an API server gives all of them; four in the short run.
  const webhooks = [webhook('ignored', casesOf(3, 1), 'Ignore'), webhook('last', casesOf(30, 3), 'Fail')];
  await client.create({ apiVersion: `${GROUP}/v1`, kind: KIND, metadata, webhooks }, { resource });
  try {
    let refused: Error | undefined;
    // The API server hears of them a moment later.
    while (!refused)
      refused = await client.create(configMap(namespace, 'a'), { dryRun: true }).then(
        () => undefined,
        (error: Error) => error,
      );
    expect(webhookIn(refused.message)).toBe('last.example.com');
  } finally {
    await client.delete(resource, metadata.name);
    hanging.closeAllConnections();
    hanging.close();
  }
}, 120_000);

describe('KubeClient.evict', () => {
  it('is blocked by a PodDisruptionBudget, evicts otherwise, and accepts a pod that is already gone', async () => {
    const namespace = await newNamespace();
    await client.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace } });
    const pod = await client.create<Pod>({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p', namespace, labels: { app: 'p' } },
      spec: { automountServiceAccountToken: false, containers: [{ name: 'c', image: 'x' }] },
    });
    const running = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    await client.mergePatch(PODS, 'p', namespace, { status: running }, { subresource: 'status' });
    const budget = {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'b', namespace },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'p' } } },
    };
    await client.create(budget);
    const whyBlocked = async () =>
      blockedBy((await client.list(PDBS, { namespace })).items)(await client.get<Pod>(PODS, 'p', namespace));
    expect(await whyBlocked()).toContain(`PodDisruptionBudget ${namespace}/b says so`);
    const started = performance.now();
    expect(await client.evict(pod)).toMatchObject({ outcome: 'blocked', message: expect.stringContaining('budget') });
    // The server says "again in ten seconds": a drain does other things meanwhile.
    expect(performance.now() - started).toBeLessThan(8000);
    await client.create({ ...budget, metadata: { name: 'another', namespace } });
    expect(await client.evict(pod)).toMatchObject({
      outcome: 'refused',
      message: expect.stringContaining('more than one PodDisruptionBudget'),
    });
    expect(await whyBlocked()).toContain('both select it');
    for (const name of ['b', 'another'])
      await client.request('DELETE', `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets/${name}`);
    expect(await whyBlocked()).toBeUndefined();
    const other = { metadata: { ...pod.metadata, uid: 'another' } };
    expect(await client.evict(other)).toEqual({ outcome: 'gone' });
    expect(await client.evict(pod, { gracePeriodSeconds: 0 })).toEqual({ outcome: 'evicted' });
    expect(await client.evict(pod)).toEqual({ outcome: 'gone' });
  });
});

describe('KubeClient credentials', () => {
  const whoAmI = async (who: KubeClient) => {
    const review = await who.request('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
    });
    return review.status.userInfo as { username: string; groups: string[] };
  };

  it('a client certificate authenticates', async () => {
    const pair = await api.certificate('jane', ['team-a']);
    expect(await whoAmI(api.connect({ ...pair }))).toMatchObject({
      username: 'jane',
      groups: expect.arrayContaining(['team-a']),
    });
  });

  it('a token authenticates, with the rights of its RBAC rules', async () => {
    const reader = api.connect({ token: api.readerToken });
    expect((await whoAmI(reader)).username).toBe('reader');
    await expect(reader.list(CONFIGMAPS)).rejects.toMatchObject({ isForbidden: true });
  });

  it('a wrong token throws an error', async () => {
    await expect(api.connect({ token: 'wrong' }).list(NAMESPACES)).rejects.toMatchObject({ isUnauthorized: true });
  });

  it('a token file is read again when the server refuses the token', async () => {
    const tokenFile = join(api.directory, 'token');
    await writeFile(tokenFile, 'outdated');
    const reader = api.connect({ tokenFile });
    await expect(whoAmI(reader)).rejects.toMatchObject({ isUnauthorized: true });
    await writeFile(tokenFile, `${api.readerToken}\n`);
    expect((await whoAmI(reader)).username).toBe('reader');
  });

  it('impersonation headers change the user', async () => {
    const jane = api.connect({ impersonate: { user: 'jane', groups: ['a', 'b'] } });
    expect(await whoAmI(jane)).toMatchObject({ username: 'jane', groups: expect.arrayContaining(['a', 'b']) });
    const extra = { 'example.com/Why (then)': ['x', 'y'] };
    const whole = api.connect({ impersonate: { user: 'jane', uid: '7', groups: ['a'], extra } });
    expect(await whoAmI(whole)).toMatchObject({ uid: '7', extra: { 'example.com/why (then)': ['x', 'y'] } });
  });

  it('a kubeconfig authenticates', async () => {
    const from = KubeClient.fromKubeconfig(api.kubeconfig);
    expect((await whoAmI(from)).username).toBe('admin');
    await from.close();
  });

  it('a credential plugin runs once for many requests', async () => {
    const plugin = join(api.directory, 'plugin.sh');
    const calls = join(api.directory, 'plugin.calls');
    const credential = JSON.stringify({
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: { token: api.readerToken },
    });
    await writeFile(plugin, `#!/bin/sh\necho called >> '${calls}'\necho '${credential}'\n`);
    await chmod(plugin, 0o755);
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: plugin, interactiveMode: 'Never' };
    const ca = Buffer.from(api.ca).toString('base64');
    const yaml = JSON.stringify({
      clusters: [{ name: 'c', cluster: { server: api.url, 'certificate-authority-data': ca } }],
      users: [{ name: 'u', user: { exec } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    });
    const reader = api.connect(parseOwnKubeconfig(yaml));
    const names = await Promise.all(Array.from({ length: 5 }, () => whoAmI(reader)));
    expect(names.map(({ username }) => username)).toEqual(Array(5).fill('reader'));
    expect(await readFile(calls, 'utf8')).toBe('called\n');
  });
});

describe('KubeClient connections', () => {
  it('are few, however many requests there are', async () => {
    const namespace = await newNamespace();
    await client.create(configMap(namespace, 'a'));
    const proxy = await startFlakyProxy(api.url);
    const through = api.connect({ server: proxy.url });
    await through.get(CONFIGMAPS, 'a', namespace);
    const count = 1000;
    for (const parallel of [1, 16, 64]) {
      const amount = parallel === 1 ? 100 : count;
      const cpu = process.cpuUsage();
      const started = performance.now();
      const worker = async (first: number) => {
        for (let index = first; index < amount; index += parallel) await client.get(CONFIGMAPS, 'a', namespace);
      };
      await Promise.all(Array.from({ length: parallel }, (_, index) => worker(index)));
      const { user, system } = process.cpuUsage(cpu);
      const perSecond = Math.round((amount * 1000) / (performance.now() - started));
      console.log(
        `GET, ${parallel} at a time: ${perSecond}/s, ${Math.round((user + system) / amount)} µs of our CPU each`,
      );
    }
    await Promise.all(Array.from({ length: 500 }, () => through.get(CONFIGMAPS, 'a', namespace)));
    expect(proxy.connections()).toBeLessThanOrEqual(2);
    await proxy.close();
  });

  it('are replaced when they break, and an unreachable server throws KubeUnreachableError', async () => {
    const proxy = await startFlakyProxy(api.url);
    const through = api.connect({ server: proxy.url });
    expect(await through.ready()).toBe(true);
    await proxy.cut();
    expect(await through.ready()).toBe(false);
    await expect(through.list(NAMESPACES)).rejects.toMatchObject({
      name: 'KubeUnreachableError',
      code: 'ECONNREFUSED',
    });
    await proxy.restore();
    expect(await through.ready()).toBe(true);
    proxy.freeze();
    const started = performance.now();
    expect(await through.ready({ timeoutMs: 500 })).toBe(false);
    expect(performance.now() - started).toBeLessThan(8000);
    await proxy.close();
  });

  it('are made only to a server with the expected certificate', async () => {
    const { cert: ca } = await createCA({ commonName: 'other', days: 1 });
    await expect(api.connect({ ca }).serverVersion()).rejects.toMatchObject({ name: 'KubeUnreachableError' });
    expect((await api.connect({ ca, insecureSkipTlsVerify: true }).serverVersion()).major).toBe('1');
  });

  it('end on abort, and on close', async () => {
    const signal = AbortSignal.abort(new Error('enough'));
    await expect(client.get(NAMESPACES, 'default', undefined, { signal })).rejects.toThrow('enough');
    const closed = api.connect();
    await closed.serverVersion();
    const watching = expect(closed.watch(NAMESPACES, {}, () => {})).rejects.toMatchObject({
      name: 'KubeUnreachableError',
    });
    await delay(100);
    await closed.close();
    await watching;
    await expect(closed.serverVersion()).rejects.toThrow('the client is closed');
  });

  it('count requests and writes', async () => {
    const counted = api.connect();
    const namespace = await newNamespace();
    await counted.apply(configMap(namespace, 'a'));
    await counted.apply(configMap(namespace, 'b'), { dryRun: true });
    await counted.list(CONFIGMAPS, { namespace });
    expect(counted.stats).toMatchObject({ requests: 3, writes: 1 });
    expect(counted.stats.bytes).toBeGreaterThan(100);
  });
});
