import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findCondition, isTrue } from '../../../operator/api/conditions.ts';
import { API_VERSION } from '../../../operator/api/group.ts';
import type { Hub } from '../../../operator/api/hub.ts';
import type { Membership } from '../../../operator/api/membership.ts';
import type { ObjectMeta } from '../../../operator/api/meta.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { Informer } from '../../../operator/kube/informer.ts';
import { Registry } from '../../../operator/kube/metrics.ts';
import {
  CLOUDPROFILES,
  CONFIGMAPS,
  DEPLOYMENTS,
  EVENTS,
  HUBS,
  type KubeObject,
  MEMBERSHIPS,
  NAMESPACES,
  QUOTAS,
  type Resource,
  SECRETS,
  SEEDS,
  SERVICES,
  type Secret,
  SHOOTS,
  STATEFULSETS,
  WORKERCLUSTERS,
} from '../../../operator/kube/resources.ts';
import type { Operator } from '../../../operator/operator.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';
import { install, type KeptGarden, operate, readKept, storedFor } from '../../kit/kept-garden.ts';
import { MemoryCloud } from '../../kit/memory-cloud.ts';

const FIXTURES = new URL('../../fixtures/', import.meta.url);
const PATIENCE_MS = 120_000;
/** So long nothing was done any more: an operator that has found all in order. */
const QUIET_MS = 1_000;
/** Of the keys of Secrets, in Secret `pki`. */
const RECORD = 'secrets-encryption.json';
const READY = ['one', 'paper', 'pooled'];

const files = (await readdir(FIXTURES)).filter((name) => name.startsWith('garden-'));

describe.each(files)('%s, opened by the present code', (file) => {
  let kept: KeptGarden;
  /** What the cloud had when the operator began. */
  let opened: [string, object][];
  let server: TestApiserver;
  let operator: Operator;
  let clusters: Informer<WorkerCluster>;
  let directory: string;
  const cloud = new MemoryCloud();
  const metrics = new Registry();
  const stopping = new AbortController();
  /** What was said of clusters that were Ready, whenever they were not. */
  const unready: string[] = [];

  beforeAll(async () => {
    kept = await readKept(new URL(file, FIXTURES));
    cloud.open(kept.made);
    opened = structuredClone([...cloud.made]);
    server = await startApiserver({ stored: (target) => storedFor(kept, target) });
    directory = await mkdtemp(join(tmpdir(), 'coppice-kept-'));
    await install(server);
    clusters = new Informer<WorkerCluster>(server.client, WORKERCLUSTERS);
    clusters.onChange(({ object: { metadata, status } }) => {
      const ready = findCondition(status?.conditions, 'Ready');
      if (READY.includes(metadata.name) && ready?.status !== 'True')
        unready.push(`${metadata.name}: ${ready?.message}`);
    });
    clusters.start();
    await clusters.whenSynced(AbortSignal.timeout(PATIENCE_MS));
    const ahead = Date.now() - Date.parse(kept.takenAt);
    const now = () => new Date(Date.now() - ahead);
    operator = await operate(server, cloud, { name: 'two', directory, now, metrics, signal: stopping.signal });
    await until('half to go on', () => isTrue(status('half')?.conditions, 'Ready'));
    await until('leaving to be gone', () => status('leaving') === undefined);
    await quiet();
  });
  afterAll(async () => {
    stopping.abort(new Error('the test is over'));
    await Promise.all([operator?.stop(), clusters?.stop()]);
    await server?.stop();
    if (directory) await rm(directory, { recursive: true, force: true });
  });

  const status = (name: string) => clusters.get(`shop/${name}`)?.status;
  const until = <T>(what: string, predicate: () => T | undefined | false) =>
    clusters.waitFor(predicate, { timeoutMs: PATIENCE_MS, what: () => `${what}: ${JSON.stringify(clusters.list())}` });

  async function quiet(): Promise<void> {
    let since = Date.now();
    for (let before = ''; Date.now() - since < QUIET_MS; await sleep(50)) {
      const lines = (await metrics.render()).split('\n');
      const now = lines.filter((line) => /^coppice_(reconcile_total|queue_depth|queue_processing)/.test(line)).join();
      if (now !== before) since = Date.now();
      before = now;
    }
  }

  /** The objects of a kind as they were kept, and as they are. */
  async function compared(resource: Resource): Promise<{ was: KubeObject; is: KubeObject | undefined }[]> {
    const old = Object.values(kept.stored).filter(({ kind }) => kind === resource.kind) as unknown as KubeObject[];
    const { items } = await server.client.list(resource);
    const same = (a: ObjectMeta, b: ObjectMeta) => a.name === b.name && a.namespace === b.namespace;
    return old.map((was) => ({ was, is: items.find(({ metadata }) => same(metadata, was.metadata)) }));
  }
  const names = (objects: KubeObject[]) => objects.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  const madeFor = (name: string, from: Iterable<[string, object]>) =>
    Object.fromEntries([...from].filter(([key]) => key.includes(`--${name}/`)));

  it('keeps all Ready objects Ready at all times', () => {
    expect(unready).toEqual([]);
    for (const name of READY) expect(isTrue(status(name)?.conditions, 'Ready'), name).toBe(true);
    expect(status('asleep')?.hibernation?.asleep).toBe(true);
    expect(findCondition(status('refused')?.conditions, 'SpecAccepted')?.status).toBe('False');
  });

  it('changes no spec, and recreates no object', async () => {
    for (const resource of [WORKERCLUSTERS, SHOOTS, SEEDS, QUOTAS]) {
      for (const { was, is } of await compared(resource)) {
        if (was.metadata.name === 'leaving') continue;
        expect(is?.metadata.uid, `${was.kind} ${was.metadata.name}`).toBe(was.metadata.uid);
        expect(is?.spec, `${was.kind} ${was.metadata.name}`).toMatchObject(was.spec);
      }
    }
    for (const { was, is } of await compared(WORKERCLUSTERS))
      if (is) expect(is.metadata.generation, was.metadata.name).toBe(was.metadata.generation);
    for (const resource of [NAMESPACES, STATEFULSETS, DEPLOYMENTS, SERVICES])
      for (const { was, is } of await compared(resource))
        expect(is?.metadata.uid, `${was.kind} ${was.metadata.name}`).toBe(was.metadata.uid);
  });

  it('keeps CAs, kubeconfigs, machines and the passphrase', async () => {
    const ofKubelets = ({ data = {} }: Secret) =>
      Object.fromEntries(Object.entries(data).filter(([file]) => file.startsWith('kubelet-client.')));
    const secrets = (await compared(SECRETS)) as { was: Secret; is: Secret | undefined }[];
    const lasting = secrets.filter(({ was: { metadata } }) =>
      ['pki', 'paper-kubeconfig', 'pooled-kubeconfig', 'coppice-state-passphrase'].includes(metadata.name),
    );
    expect(lasting).toHaveLength(6);
    for (const { was, is } of lasting) {
      expect(is?.metadata.uid, names([was])[0]).toBe(was.metadata.uid);
      const { [RECORD]: record, ...rest } = is?.data ?? {};
      const { [RECORD]: kept, ...restKept } = was.data ?? {};
      // Where no API server is asked, its certificate before kubelets is no longer of system:masters at once.
      expect({ ...rest, ...ofKubelets(was) }, names([was])[0]).toEqual(restKept);
      if (kept !== undefined) {
        expect(record, names([was])[0]).toBe(kept);
        continue;
      }
      // Keys of Secrets came later. What a hosted cluster has in its etcd stays readable: no API server is told to write otherwise before
      // all can.
      const { write, next } = JSON.parse(Buffer.from(record ?? 'e30=', 'base64').toString());
      const isHosted = names([was])[0]?.includes('hosted') && was.metadata.name === 'pki';
      expect([write, typeof next?.secret], names([was])[0]).toEqual(
        isHosted ? [{ name: 'plain' }, 'string'] : [undefined, 'undefined'],
      );
    }
    for (const { was, is } of await compared(CONFIGMAPS)) expect(is?.data, names([was])[0]).toEqual(was.data);
  });

  it('trusts its records: clouds get no calls for clusters in their desired state', () => {
    for (const name of ['one', 'asleep', 'forced'])
      expect(madeFor(name, cloud.made), name).toEqual(madeFor(name, opened));
    // Once each: to go on with half, and with the deletion of leaving. Of one and asleep it may be asked once whether all is so as a
    // record says that a tenant could have written.
    expect(cloud.calls.filter((call) => call === 'apply').length).toBeLessThanOrEqual(3);
    expect(cloud.calls.filter((call) => call === 'destroy')).toHaveLength(1);
  });

  it('gets the inventory hub, which its clusters join, except for those without a control plane', async () => {
    const hub = await server.client.get<Hub>(HUBS, 'inventory');
    expect(isTrue(hub.status?.conditions, 'Ready')).toBe(true);
    const { items } = await server.client.list<Membership>(MEMBERSHIPS);
    const members = items.map(({ spec }) => spec.cluster);
    expect(members).toContain('one');
    for (const name of ['paper', 'pooled']) expect(members).not.toContain(name);
  });

  it('continues operations in progress', async () => {
    expect(cloud.names()).not.toContain('leaving/cluster');
    expect(madeFor('leaving', cloud.made)).toEqual({});
    expect(madeFor('half', cloud.made)).toMatchObject(madeFor('half', Object.entries(kept.made)));
    // Nothing here runs its pods: it has got so far when all that they are made of could be applied.
    await until('hosted to wait for its API server', () =>
      status('hosted')?.lastOperation?.description?.includes('Waiting for the API server'),
    );
    expect(status('hosted')?.lastErrors).toEqual([]);
  });

  it("gives new clusters of a profile with a new mesh their own ranges, and keeps the others'", async () => {
    const before = await compared(SHOOTS);
    const { made } = structuredClone({ made: [...cloud.made] });
    for (const profile of ['simulated-scale', 'memory'])
      await server.client.mergePatch(CLOUDPROFILES, profile, undefined, { spec: { mesh: { name: 'default' } } });
    const spec = { cloudProvider: 'simulated', cloudProfile: 'simulated-scale', dataPlaneNodes: 2 };
    for (const name of ['meshed', 'second'])
      await server.client.apply({
        apiVersion: API_VERSION,
        kind: 'WorkerCluster',
        metadata: { name, namespace: 'shop' },
        spec,
      });
    await until('both to be Ready', () =>
      ['meshed', 'second'].every((name) => isTrue(status(name)?.conditions, 'Ready')),
    );
    // 100.96.0.0/11 and 100.64.0.0/13 are what all others have.
    const given = ['meshed', 'second'].map((name) => status(name)?.networking);
    expect(new Set(given.flatMap((one) => [one?.pods, one?.services, String(one?.clusterID)])).size).toBe(6);
    for (const one of given) {
      expect(one).toMatchObject({ mesh: 'default' });
      expect(one?.pods).toMatch(/^100\.(7[2-9]|8[0-9]|9[0-5])\..*\/18$/);
      expect(one?.services).toMatch(/^100\.(7[2-9]|8[0-9]|9[0-5])\..*\/20$/);
    }
    const shoot = await server.client.get(SHOOTS, 'meshed', 'shop');
    expect(shoot.spec).toMatchObject({ networking: { pods: given[0]?.pods, services: given[0]?.services } });

    await quiet();
    const after = await compared(SHOOTS);
    expect(after.map(({ is }) => is?.spec)).toEqual(before.map(({ is }) => is?.spec));
    expect([...cloud.made]).toEqual(made);
    for (const name of [...READY, 'half', 'hosted']) expect(status(name)?.networking?.mesh, name).toBeUndefined();

    const { items } = await server.client.list<Secret>(SECRETS, {
      namespace: 'kube-system',
      labelSelector: 'multi-cluster.demo.io/mesh=default',
    });
    expect(items).toHaveLength(1);
    for (const name of ['meshed', 'second']) await server.client.delete(WORKERCLUSTERS, name, 'shop');
    await until('both to be gone', () => !['meshed', 'second'].some(status));
    const [record] = (
      await server.client.list<Secret>(SECRETS, {
        namespace: 'kube-system',
        labelSelector: 'multi-cluster.demo.io/mesh=default',
      })
    ).items;
    expect(JSON.parse(Buffer.from(record?.data?.record ?? '', 'base64').toString())).toMatchObject({
      clusters: {},
      freed: [{}, {}],
    });
  });

  it("accepts a person's changes of its clusters", async () => {
    const scale = (name: string, dataPlaneNodes: number) =>
      server.client.mergePatch(WORKERCLUSTERS, name, 'shop', { spec: { dataPlaneNodes } });
    await scale('paper', 4);
    await until('paper to have 4 nodes', () => status('paper')?.nodes?.ready === 4);
    const machines = await server.client.get(CONFIGMAPS, 'machines', 'shoot--shop--paper');
    expect(machines.data).toMatchObject(kept.stored['/registry/configmaps/shoot--shop--paper/machines']?.data ?? {});

    await scale('one', 2);
    await until('one to be asked for 2 nodes', () => cloud.made.get(POOL_OF_ONE)?.spec.includes('"desired":2'));
    expect(cloud.made.get(POOL_OF_ONE)?.id).toBe(kept.made[POOL_OF_ONE]?.id);
    for (const name of ['one', 'half', 'asleep']) await server.client.delete(WORKERCLUSTERS, name, 'shop');
    await until('all to be gone', () => !['one', 'half', 'asleep'].some(status));
    // What was deleted by force is somebody's to judge: it was reported.
    expect([...cloud.made.keys()].filter((key) => !key.includes('forced'))).toEqual([]);
    const { items } = await server.client.list(SECRETS, { namespace: 'shop' });
    for (const name of ['one', 'half', 'asleep', 'leaving']) expect(names(items)).not.toContain(`shop/${name}-cloud`);
    const events = await server.client.list(EVENTS, { namespace: 'shop' });
    expect(events.items.map(({ message }) => message).join()).not.toMatch(/forged|not ours/i);
  });
});

const POOL_OF_ONE = 'account-1/shoot--shop--one/pool default';
