import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { type ChangeEvent, Informer, WaitTimeoutError } from '../../../operator/kube/informer.ts';
import type { Log } from '../../../operator/kube/log.ts';
import type { RequestSeen } from '../../../operator/kube/requests/api-requests.ts';
import { CONFIGMAPS, type ConfigMap, NAMESPACES } from '../../../operator/kube/resources.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';
import { startFlakyProxy } from '../../kit/flaky-proxy.ts';

let api: TestApiserver;
let serial = 0;
const informers: Informer<any>[] = [];

beforeAll(async () => {
  api = await startApiserver();
});
afterAll(async () => {
  await Promise.all(informers.map((informer) => informer.stop()));
  await api?.stop();
});

async function newNamespace(): Promise<string> {
  const name = `test-${++serial}`;
  await api.client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  return name;
}

function configMap(namespace: string, name: string, data: Record<string, string> = {}): ConfigMap {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name, labels: { test: 'yes' } }, data };
}

/** A log that keeps its lines, to see which way the informer took. */
function recordingLog() {
  const lines: string[] = [];
  const write = (_: object, message: string) => void lines.push(message);
  const log: Log = { debug: write, info: write, warn: write, error: write };
  return { log, lines };
}

async function follow(namespace: string, client = api.client, more: object = {}) {
  const { log, lines } = recordingLog();
  const events: string[] = [];
  const informer = new Informer<ConfigMap>(client, CONFIGMAPS, { namespace, labelSelector: 'test=yes', log, ...more });
  informer.onChange(({ type, object }: ChangeEvent<ConfigMap>) => {
    events.push(`${type} ${object.metadata.name}${object.data?.v ? `=${object.data.v}` : ''}`);
  });
  informers.push(informer);
  informer.start();
  await informer.whenSynced();
  return { informer, events, lines };
}

async function inParallel(count: number, run: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await run(next++);
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}

describe('Informer', () => {
  it('reports the initial state, then each change once, in order', async () => {
    const namespace = await newNamespace();
    await api.client.create(configMap(namespace, 'a', { v: '1' }));
    const { informer, events } = await follow(namespace);
    expect(events).toEqual(['added a=1']);
    await api.client.apply(configMap(namespace, 'a', { v: '2' }));
    await api.client.create(configMap(namespace, 'b'));
    await api.client.create({ ...configMap(namespace, 'unselected'), metadata: { namespace, name: 'unselected' } });
    await api.client.delete(CONFIGMAPS, 'a', namespace);
    await informer.waitFor(() => !informer.get(`${namespace}/a`), { timeoutMs: 30_000, what: 'a to go' });
    expect(events).toEqual(['added a=1', 'updated a=2', 'added b', 'deleted a=2']);
    expect(informer.get(`${namespace}/b`)?.metadata.managedFields).toBeUndefined();
    expect(informer.get(`${namespace}/b`)?.apiVersion).toBe('v1');
    const late: string[] = [];
    const stop = informer.onChange(({ type, object }) => late.push(`${type} ${object.metadata.name}`));
    expect(late).toEqual(['added b']);
    stop();
  });

  it('needs one request for the initial state and all changes', async () => {
    const namespace = await newNamespace();
    const requests: RequestSeen[] = [];
    const client = api.connect({ onRequest: (request) => requests.push(request) });
    await api.client.create(configMap(namespace, 'a'));
    const { informer } = await follow(namespace, client);
    expect(informer.size).toBe(1);
    expect(requests.map(({ method, status }) => `${method} ${status}`)).toEqual(['WATCH 200']);
    await informer.stop();
  });

  it('runs the transform before it indexes objects', async () => {
    const namespace = await newNamespace();
    const { informer } = await follow(namespace, api.client, {
      transform: (object: ConfigMap) => ({ ...object, data: { team: object.data?.team ?? 'none' } }),
      indexes: { team: (object: ConfigMap) => [object.data!.team!] },
    });
    await api.client.create(configMap(namespace, 'a', { team: 'x', large: 'y'.repeat(1000) }));
    await api.client.create(configMap(namespace, 'b'));
    await informer.waitFor(() => informer.size === 2, { timeoutMs: 30_000, what: 'both' });
    expect(informer.byIndex('team', 'x').map((object) => object.metadata.name)).toEqual(['a']);
    expect(informer.byIndex('team', 'none').map((object) => object.metadata.name)).toEqual(['b']);
    expect(informer.get(`${namespace}/a`)?.data).toEqual({ team: 'x' });
  });

  it('follows 2000 creations, and a second informer lists them', async () => {
    const namespace = await newNamespace();
    const { informer } = await follow(namespace);
    const started = performance.now();
    await inParallel(2000, (index) => api.client.create(configMap(namespace, `m${index}`)));
    const written = performance.now();
    await informer.waitFor(() => informer.size === 2000, { timeoutMs: 30_000, what: '2000 objects' });
    const seen = performance.now();
    const second = await follow(namespace);
    expect(second.informer.size).toBe(2000);
    console.log(
      `2000 creates: ${Math.round(2_000_000 / (written - started))}/s; last seen ${Math.round(seen - written)} ms later;` +
        ` a new informer is complete in ${Math.round(performance.now() - seen)} ms`,
    );
    await second.informer.stop();
  });

  it('lists by pages where the server has no WatchList', async () => {
    const namespace = await newNamespace();
    await inParallel(600, (index) => api.client.create(configMap(namespace, `m${index}`)));
    const pages: string[] = [];
    const client = api.connect({ onRequest: ({ method, status }) => pages.push(`${method} ${status}`) });
    const watch = client.watch.bind(client);
    client.watch = (resource, options, onEvent) => {
      if (!options.sendInitialEvents) return watch(resource, options, onEvent);
      // What API servers before 1.32 say.
      const message = 'sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled';
      return Promise.reject(new KubeApiError('WATCH', 422, { reason: 'Invalid', message }));
    };
    const { informer, lines } = await follow(namespace, client);
    expect(informer.size).toBe(600);
    expect(lines).toEqual(['the server has no WatchList; listing by pages']);
    expect(pages.filter((line) => line.startsWith('GET'))).toEqual(['GET 200', 'GET 200']);
    await api.client.create(configMap(namespace, 'later'));
    await informer.waitFor(() => informer.get(`${namespace}/later`), { timeoutMs: 30_000, what: 'the later one' });
    await informer.stop();
  });

  it('syncs as soon as a missing CRD is created', async () => {
    const resource = { group: 'test.example', version: 'v1', plural: 'things', kind: 'Thing', namespaced: true };
    const informer = new Informer(api.client, resource, { maxDelayMs: 300 });
    informers.push(informer);
    informer.start();
    await expect.poll(() => informer.lastError).toMatchObject({ status: 404 });
    expect(informer.synced).toBe(false);
    const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    await api.client.create({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'things.test.example' },
      spec: {
        group: 'test.example',
        scope: 'Namespaced',
        names: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
      },
    });
    await informer.whenSynced(AbortSignal.timeout(10_000));
    expect(informer.lastError).toBeUndefined();
  });
});

describe('waitFor', () => {
  it('names the awaited state and the last error on timeout', async () => {
    const namespace = await newNamespace();
    const { informer } = await follow(namespace);
    const never = informer.waitFor(() => false, { timeoutMs: 100, what: () => `the ${'moon'}` });
    await expect(never).rejects.toThrow(new WaitTimeoutError('waited 0.1 s for the moon'));
    const signal = AbortSignal.abort(new Error('no longer needed'));
    await expect(informer.waitFor(() => false, { timeoutMs: 100, what: 'x', signal })).rejects.toThrow(
      'no longer needed',
    );
    const broken = () => {
      throw new Error('bad predicate');
    };
    await expect(informer.waitFor(broken, { timeoutMs: 100, what: 'x' })).rejects.toThrow('bad predicate');
    const stopped = informer.waitFor(() => false, { timeoutMs: 5000, what: 'x' });
    void informer.stop();
    await expect(stopped).rejects.toThrow('informer of configmaps has stopped');
  });
});

describe('Informer.absorb', () => {
  it('shows our own write at once, reports it once, and does not revive deleted objects', async () => {
    const namespace = await newNamespace();
    const { informer, events } = await follow(namespace);
    await api.client.create(configMap(namespace, 'a', { v: '1' }));
    await informer.waitFor(() => informer.get(`${namespace}/a`), { timeoutMs: 30_000, what: 'a' });
    const written = await api.client.apply(configMap(namespace, 'a', { v: '2' }));
    informer.absorb(written);
    expect(informer.get(`${namespace}/a`)?.data?.v).toBe('2');
    expect(written.metadata.managedFields).toBeDefined();
    informer.absorb(await api.client.create({ ...configMap(namespace, 'x'), metadata: { namespace, name: 'x' } }));
    await api.client.delete(CONFIGMAPS, 'a', namespace);
    await informer.waitFor(() => !informer.get(`${namespace}/a`), { timeoutMs: 30_000, what: 'a to go' });
    informer.absorb(written);
    informer.absorb(await api.client.create(configMap(namespace, 'b')));
    expect(informer.get(`${namespace}/b`)).toBeDefined();
    expect(informer.get(`${namespace}/a`)).toBeUndefined();
    expect(events).toEqual(['added a=1', 'updated a=2', 'deleted a=2', 'added b']);
  });
});

describe('Informer after failures', () => {
  it('resumes after reset connections without a relist', async () => {
    const namespace = await newNamespace();
    const proxy = await startFlakyProxy(api.url);
    const client = api.connect({ server: proxy.url });
    const { informer, events, lines } = await follow(namespace, client, { maxDelayMs: 200 });
    await api.client.create(configMap(namespace, 'before'));
    await informer.waitFor(() => informer.size === 1, { timeoutMs: 30_000, what: 'the first' });
    await proxy.cut();
    await api.client.create(configMap(namespace, 'meanwhile'));
    await api.client.delete(CONFIGMAPS, 'before', namespace);
    await delay(100);
    expect(informer.lastError).toBeDefined();
    await proxy.restore();
    await informer.waitFor(() => informer.get(`${namespace}/meanwhile`) && informer.size === 1, {
      timeoutMs: 30_000,
      what: 'what was missed',
    });
    expect(events).toEqual(['added before', 'added meanwhile', 'deleted before']);
    expect(lines.filter((line) => line.includes('starting over'))).toEqual([]);
    await informer.stop();
    await proxy.close();
  });

  it('notices a connection that died silently', async () => {
    const namespace = await newNamespace();
    const proxy = await startFlakyProxy(api.url);
    const client = api.connect({ server: proxy.url, liveness: { pingMs: 500, silenceMs: 3_000 } });
    const { informer, events } = await follow(namespace, client, { maxDelayMs: 200 });
    // Quiet but alive for longer than the limit: pings keep it.
    await delay(4_000);
    expect(informer.lastError).toBeUndefined();
    proxy.freeze();
    await api.client.create(configMap(namespace, 'meanwhile'));
    await delay(300);
    expect(informer.size).toBe(0);
    await proxy.restore();
    await informer.waitFor(() => informer.size === 1, { timeoutMs: 30_000, what: 'the missed one' });
    expect(events).toEqual(['added meanwhile']);
    await informer.stop();
    await proxy.close();
  });

  it('survives kill -9 of the API server, and relists when its resource version has expired', async () => {
    const namespace = await newNamespace();
    const proxy = await startFlakyProxy(api.url);
    const away = await follow(namespace, api.connect({ server: proxy.url }), { maxDelayMs: 200 });
    const direct = await follow(namespace, api.client, { maxDelayMs: 200 });
    await api.client.create(configMap(namespace, 'stays'));
    await api.client.create(configMap(namespace, 'goes'));
    for (const { informer } of [away, direct]) {
      await informer.waitFor(() => informer.size === 2, { timeoutMs: 30_000, what: 'both' });
    }

    await proxy.cut();
    await api.kill();
    await expect(api.client.get(NAMESPACES, namespace)).rejects.toMatchObject({ name: 'KubeUnreachableError' });
    await delay(300);
    expect(direct.informer.size).toBe(2);
    await api.start();
    const restarted = performance.now();
    await api.client.create(configMap(namespace, 'back'));
    await direct.informer.waitFor(() => direct.informer.get(`${namespace}/back`), {
      timeoutMs: 30_000,
      what: 'the next',
    });
    console.log(
      `after a kill -9 the cache is current ${Math.round(performance.now() - restarted)} ms after the restart`,
    );
    // Whether a server that was slow to start goes on from there or has it start over: nothing is told twice, and nothing is missed.
    await api.client.apply(configMap(namespace, 'goes', { v: '2' }));
    await api.client.delete(CONFIGMAPS, 'goes', namespace);
    await api.client.create(configMap(namespace, 'new'));
    const current = (informer: Informer) => () =>
      informer.get(`${namespace}/new`) && !informer.get(`${namespace}/goes`);
    await direct.informer.waitFor(current(direct.informer), { timeoutMs: 30_000, what: 'the present state' });
    const sinceBack = ['added back', 'updated goes=2', 'deleted goes=2', 'added new'];
    expect(direct.events).toEqual(['added stays', 'added goes', ...sinceBack]);

    // Neither the new server's memory nor etcd's history reaches back to where this one stopped.
    await api.kill();
    await api.compact();
    await api.start();
    await proxy.restore();
    await away.informer.waitFor(current(away.informer), { timeoutMs: 30_000, what: 'the present state' });
    expect(away.lines).toContain('the resource version is too old; starting over');
    expect(away.events.slice(0, 2)).toEqual(['added stays', 'added goes']);
    expect(away.events.slice(2).sort()).toEqual(['added back', 'added new', 'deleted goes']);
    await away.informer.stop();
    await proxy.close();
  });
});
