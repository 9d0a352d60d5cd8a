import { afterEach, beforeEach, expect, it } from 'vitest';
import { FINALIZER, LABELS } from '../../../operator/api/group.ts';
import { decidedSizesName } from '../../../operator/api/names.ts';
import type { OpenCluster } from '../../../operator/clusters/open-clusters.ts';
import { wireAutoscaling } from '../../../operator/controllers/autoscaling/wiring.ts';
import { wireBackups } from '../../../operator/controllers/backup/wiring.ts';
import { wireCloudProfiles } from '../../../operator/controllers/cloudprofile/wiring.ts';
import { openCore, type Part } from '../../../operator/controllers/core.ts';
import { wireCredentials } from '../../../operator/controllers/credentials/wiring.ts';
import { wireManaged } from '../../../operator/controllers/managed/wiring.ts';
import { wireQuotas } from '../../../operator/controllers/quota/wiring.ts';
import { wireSeeds } from '../../../operator/controllers/seed/wiring.ts';
import { wireShoots } from '../../../operator/controllers/shoot/wiring.ts';
import { wireWorkerClusters } from '../../../operator/controllers/workercluster/wiring.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { silent } from '../../../operator/kube/log.ts';
import { Registry } from '../../../operator/kube/metrics.ts';
import type { WatchEvent } from '../../../operator/kube/requests/watch.ts';
import type { KubeObject, Resource } from '../../../operator/kube/resources.ts';
import { partOf } from '../../kit/builders/partial.ts';

/** An object as a test writes it. */
interface Told {
  readonly kind: string;
  readonly metadata: object;
  readonly spec?: object;
  readonly status?: object | undefined;
}
type Listener = (event: WatchEvent<KubeObject>) => void;

/** A garden whose objects a test tells of, by kind, and which is its own seed. */
class ToldGarden {
  readonly #watches = new Map<string, Set<Listener>>();
  #version = 1;

  readonly client = partOf<KubeClient>({
    server: 'https://127.0.0.1:6443',
    getOrUndefined: async () => ({ metadata: { name: 'kube-system', uid: 'this-garden' } }),
    get: async () => ({ metadata: { name: 'kube-system', uid: 'this-garden' } }),
    list: async () => ({ items: [] }),
    watch: (resource: Resource, { signal }: { signal: AbortSignal }, listener: Listener) => {
      const watches = this.#watches.get(resource.kind) ?? new Set();
      this.#watches.set(resource.kind, watches.add(listener));
      const annotations = { 'k8s.io/initial-events-end': 'true' };
      const metadata = { name: '', resourceVersion: '1', annotations };
      listener({ type: 'BOOKMARK', object: { apiVersion: 'v1', kind: resource.kind, metadata } });
      return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    },
  });

  tell(type: 'ADDED' | 'MODIFIED' | 'DELETED', { metadata, ...rest }: Told): void {
    const resourceVersion = String(++this.#version);
    const object = { apiVersion: 'v1', ...rest, metadata: { ...metadata, resourceVersion } } as KubeObject;
    for (const watch of this.#watches.get(rest.kind) ?? []) watch({ type, object: structuredClone(object) });
  }
}

let stop = async () => {};
let garden: ToldGarden;
let core: Awaited<ReturnType<typeof openCore>>;
/** `controller key` of what was queued since the last call, now or for soon. */
let queued: () => string[];

beforeEach(async () => {
  garden = new ToldGarden();
  const { signal } = new AbortController();
  const options = {
    garden: garden.client,
    log: silent,
    metrics: new Registry(),
    provider: () => undefined,
    state: { namespace: 'kube-system', directory: undefined },
  };
  core = await openCore(options, signal);
  const credentials = wireCredentials(core);
  const backup = wireBackups(core, credentials.ofBuckets);
  const managed = wireManaged(core, credentials);
  const quota = wireQuotas(core);
  const seed = wireSeeds(core, backup);
  const { holds } = seed;
  const parts: Part[] = [
    credentials,
    backup,
    managed,
    wireCloudProfiles(core),
    quota,
    wireAutoscaling(core, quota.granted, managed),
    seed,
    wireWorkerClusters(core, { managed: managed.managed, granted: quota.granted, holds }),
    wireShoots(core, { accounts: credentials.ofShoots, backups: backup.backups, holds }),
  ];
  const seen = new Set<string>();
  for (const { name, queue } of parts.flatMap((part) => part.controllers)) {
    queue.add = (key) => void seen.add(`${name} ${key}`);
    queue.addAfter = (key) => void seen.add(`${name} ${key}`);
  }
  queued = () => {
    const all = [...seen].sort();
    seen.clear();
    return all;
  };
  const caches = [...core.caches, ...parts.flatMap((part) => part.caches ?? [])];
  for (const cache of caches) cache.start();
  await Promise.all(caches.map((cache) => cache.whenSynced(signal)));
  stop = async () => {
    await core.registry.closeAll();
    await Promise.all(parts.flatMap((part) => part.close?.() ?? []));
    await Promise.all(caches.map((cache) => cache.stop()));
  };
});
afterEach(() => stop());

const profile = { kind: 'CloudProfile', metadata: { name: 'metal' }, spec: { machineTypes: [], regions: [] } };
const quotaOf = (namespace: string) => ({ kind: 'Quota', metadata: { name: 'all', namespace }, spec: {} });
const cluster = (name: string, spec: object = {}, status?: object) => ({
  kind: 'WorkerCluster',
  metadata: { name, namespace: 'shop', uid: name },
  spec: { cloudProvider: 'metal', ...spec },
  status,
});
const shoot = (name: string, status?: object, ownerReferences?: object[]) => ({
  kind: 'Shoot',
  metadata: { name, namespace: 'shop', uid: `shoot-${name}`, ownerReferences },
  spec: { cloudProfile: { name: 'metal' }, provider: { type: 'metal', workers: [] } },
  status,
});
const seedIn = (host?: string) => ({
  kind: 'Seed',
  metadata: { name: 'here' },
  spec: host ? { kubeconfigRef: { name: `${host}-kubeconfig`, namespace: 'shop' } } : {},
});

it('a cluster is reconciled when it changes, and others only where that affects them', () => {
  garden.tell('ADDED', quotaOf('shop'));
  queued();
  garden.tell('ADDED', cluster('a', { credentialsRef: { name: 'cloud' } }));
  expect(queued()).toEqual(['cloudprofile metal', 'credentials shop', 'workercluster shop/a']);
  garden.tell('MODIFIED', cluster('a', { credentialsRef: { name: 'cloud' } }, { summary: 'fine' }));
  expect(queued()).toEqual(['workercluster shop/a']);
  garden.tell('DELETED', cluster('a', { credentialsRef: { name: 'cloud' } }));
  expect(queued()).toEqual(['cloudprofile metal', 'credentials shop', 'quota shop/all', 'workercluster shop/a']);
});

it('a shoot is reconciled when it changes, but not for its status alone', () => {
  garden.tell('ADDED', quotaOf('shop'));
  garden.tell('ADDED', seedIn());
  queued();
  garden.tell('ADDED', shoot('a', undefined, [{ kind: 'WorkerCluster', uid: 'a' }]));
  expect(queued()).toEqual(['cloudprofile metal', 'shoot shop/a', 'workercluster shop/a']);
  garden.tell('MODIFIED', shoot('a', { seedName: 'here' }, [{ kind: 'WorkerCluster', uid: 'a' }]));
  expect(queued()).toEqual(['seed here', 'workercluster shop/a']);
  // What a person made has a share of its own.
  garden.tell('ADDED', shoot('by-hand'));
  expect(queued()).toEqual([
    'cloudprofile metal',
    'quota shop/all',
    'shoot shop/by-hand',
    'workercluster shop/by-hand',
  ]);
});

it('a deleted Shoot is reconciled when its WorkerCluster releases it, not when that only reports the deletion', () => {
  const held = cluster('a');
  const deleted = shoot('a', undefined, [{ kind: 'WorkerCluster', uid: 'a' }]);
  garden.tell('ADDED', held);
  garden.tell('ADDED', { ...deleted, metadata: { ...deleted.metadata, deletionTimestamp: '2026-11-29T00:00:00Z' } });
  queued();
  // A deletion that fails is told there at each try: the queue would never back off.
  garden.tell('MODIFIED', cluster('a', {}, { lastErrors: [{ description: 'the cloud refuses' }] }));
  expect(queued()).not.toContain('shoot shop/a');
  garden.tell('DELETED', held);
  expect(queued()).toContain('shoot shop/a');
});

it("a cluster's nodes are reconciled when its pods change, where Coppice sizes a pool, and nowhere else", () => {
  const heard: (() => void)[] = [];
  const onChange = (handler: () => void) => {
    heard.push(handler);
    return () => {};
  };
  const watched = { list: () => [], onChange };
  const open = partOf<OpenCluster>({ nodes: watched, pods: watched, onStop: () => {} });
  core.openClusters.add('shop/a', open);
  core.openClusters.add('shop/b', open);
  garden.tell('ADDED', cluster('b', { pools: [{ name: 'p', maximum: 3 }] }));
  queued();
  expect(heard).toEqual([]);
  const pools = [{ name: 'p', maximum: 3, autoscale: 'Coppice' }];
  garden.tell('ADDED', cluster('a', { pools }));
  expect(queued()).toContain('autoscaling shop/a');
  expect(heard).toHaveLength(2);
  for (const tell of heard) tell();
  expect(queued()).toEqual(['autoscaling shop/a']);
  // Of a batch that is open everybody knows.
  for (const tell of heard) tell();
  expect(queued()).toEqual([]);
  garden.tell('MODIFIED', cluster('a', { pools }, { summary: 'fine' }));
  expect(queued()).toEqual(['workercluster shop/a']);
  const accepted = {
    conditions: [{ type: 'SpecAccepted', status: 'True', lastTransitionTime: '2026-11-23T00:00:00Z' }],
  };
  garden.tell('MODIFIED', cluster('a', { pools }, accepted));
  expect(queued()).toContain('autoscaling shop/a');
  garden.tell('MODIFIED', cluster('a', { pools: [{ name: 'p', maximum: 3 }] }));
  expect(queued()).toContain('autoscaling shop/a');
});

it('all users of a profile are reconciled when it changes', () => {
  garden.tell('ADDED', quotaOf('shop'));
  garden.tell('ADDED', quotaOf('bank'));
  garden.tell('ADDED', cluster('a'));
  garden.tell('ADDED', cluster('elsewhere', { cloudProvider: 'other' }));
  garden.tell('ADDED', shoot('a'));
  queued();
  garden.tell('ADDED', profile);
  expect(queued()).toEqual(['cloudprofile metal', 'quota shop/all', 'shoot shop/a', 'workercluster shop/a']);
  // That it is held because of them, and what is told of it, is no news for them.
  const held = { ...profile, metadata: { name: 'metal', finalizers: [FINALIZER] } };
  garden.tell('MODIFIED', held);
  expect(queued()).toEqual(['cloudprofile metal']);
  garden.tell('MODIFIED', { ...held, status: { machineTypes: [] } });
  expect(queued()).toEqual(['cloudprofile metal']);
});

it('clusters refused by a quota are judged again', () => {
  const refused = [{ type: 'SpecAccepted', status: 'False', reason: 'QuotaExceeded' }];
  garden.tell('ADDED', cluster('waits', {}, { conditions: refused }));
  garden.tell('ADDED', cluster('runs'));
  queued();
  garden.tell('ADDED', quotaOf('shop'));
  expect(queued()).toEqual(['quota shop/all', 'workercluster shop/waits']);
  garden.tell('MODIFIED', { ...quotaOf('shop'), status: { summary: 'full' } });
  expect(queued()).toEqual([]);
});

it("a seed's cluster is checked again for its deletion, and so are the shoots that wait for a seed", () => {
  garden.tell('ADDED', shoot('hosted', { seedName: 'here' }));
  garden.tell('ADDED', shoot('nowhere'));
  garden.tell('ADDED', shoot('far', { seedName: 'there' }));
  queued();
  garden.tell('ADDED', seedIn('hub'));
  const told = ['seed here', 'shoot shop/hosted', 'shoot shop/hub', 'shoot shop/nowhere', 'workercluster shop/hub'];
  expect(queued()).toEqual(told);
  // That it is held is no news for those that it hosts, nor is another shoot for one that is held.
  const held = { ...seedIn('hub'), metadata: { name: 'here', finalizers: [FINALIZER] } };
  garden.tell('MODIFIED', held);
  expect(queued()).toEqual(['seed here']);
  garden.tell('ADDED', shoot('more', { seedName: 'here' }));
  expect(queued()).not.toContain('seed here');
});

it('all clusters of a namespace are reconciled when credentials may have changed', () => {
  garden.tell('ADDED', cluster('a', { credentialsRef: { name: 'bound' } }));
  garden.tell('ADDED', cluster('without'));
  queued();
  const told = ['credentials shop', 'managed shop/a'];
  garden.tell('ADDED', { kind: 'CredentialsBinding', metadata: { name: 'bound', namespace: 'shop' } });
  expect(queued()).toEqual(told);
  const binding = {
    kind: 'CredentialsBinding',
    metadata: { name: 'bound', namespace: 'shop' },
    status: { account: 'x' },
  };
  garden.tell('MODIFIED', binding);
  expect(queued()).toEqual([]);
  garden.tell('ADDED', { kind: 'WorkloadIdentity', metadata: { name: 'id', namespace: 'shop' }, spec: {} });
  expect(queued()).toEqual(told);
});

it('a cluster is reconciled when a size was decided for it', () => {
  const labels = { [LABELS.workerCluster]: 'a', [LABELS.workerClusterNamespace]: 'shop' };
  garden.tell('ADDED', {
    kind: 'Secret',
    metadata: { name: decidedSizesName('shop/a'), namespace: 'kube-system', labels },
  });
  expect(queued()).toContain('workercluster shop/a');
});

it("a shoot is reconciled when its objects in a seed change, and its kubelets' requests when their pods do", async () => {
  await core.registry.open(seedIn() as never, new AbortController().signal);
  const labels = { [LABELS.shoot]: 'a', [LABELS.shootNamespace]: 'shop' };
  garden.tell('ADDED', {
    kind: 'Deployment',
    metadata: { name: 'kube-apiserver', namespace: 'shoot--shop--a', labels },
  });
  expect(queued()).toEqual(['shoot shop/a']);
  garden.tell('ADDED', { kind: 'Pod', metadata: { name: 'machine', namespace: 'shoot--shop--a', labels } });
  expect(queued()).toEqual(['certificates shop/a', 'shoot shop/a']);
});

it('the keys of a shoot are looked at when their Secret is deleted, whatever the operation of the shoot waits for', async () => {
  await core.registry.open(seedIn() as never, new AbortController().signal);
  const labels = { [LABELS.shoot]: 'a', [LABELS.shootNamespace]: 'shop' };
  const keys = { kind: 'Secret', metadata: { name: 'pki', namespace: 'shoot--shop--a', labels } };
  garden.tell('ADDED', keys);
  queued();
  garden.tell('DELETED', keys);
  expect(queued()).toContain('keys shop/a');
});
