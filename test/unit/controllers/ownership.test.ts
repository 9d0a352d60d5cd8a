import { beforeEach, describe, expect, it } from 'vitest';
import { LABELS } from '../../../operator/api/group.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import { closeNamespace, removeKubeconfig } from '../../../operator/controllers/shoot/deletion/deletion-tasks.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import {
  GARDEN_ANNOTATION,
  otherOwnerIn,
  SHOOT_UID_ANNOTATION,
} from '../../../operator/controllers/shoot/ownership.ts';
import { issueCertificates } from '../../../operator/controllers/shoot/tasks/issue-certificates.ts';
import { storeKubeconfig } from '../../../operator/controllers/shoot/tasks/kubeconfig-task.ts';
import { namespaceTask } from '../../../operator/controllers/shoot/tasks/namespace-task.ts';
import { Applier } from '../../../operator/kube/applier.ts';
import { type KubeObject, NAMESPACES, resourceOf, SECRETS, type Secret } from '../../../operator/kube/resources.ts';
import { PKI_SECRET, type PKIData } from '../../../operator/shoot/pki.ts';
import { buildShoot } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { MemoryApiServer } from '../../kit/memory-api-server.ts';

const NS = 'shoot--default--demo';
const shoot = buildShoot({ metadata: { name: 'demo', namespace: 'default', uid: 's1' } });
const placed = { ...shoot, status: { seedName: 'local' } } as Shoot;
const signal = new AbortController().signal;

const labels = (name = 'demo', namespace = 'default') => ({ [LABELS.shoot]: name, [LABELS.shootNamespace]: namespace });
const namespace = (metadata: Partial<KubeObject['metadata']> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: NS, ...metadata },
});
const OURS = { [GARDEN_ANNOTATION]: 'ours' };

describe("an existing namespace with a cluster's namespace name", () => {
  it.each<[string, KubeObject | undefined, Shoot, RegExp | undefined]>([
    ['is not there', undefined, shoot, undefined],
    ['is ours', namespace({ labels: labels(), annotations: OURS }), shoot, undefined],
    ['is ours, of before gardens were written on it', namespace({ labels: labels() }), placed, undefined],
    [
      'lost its labels, and its UID says that it is ours',
      namespace({ annotations: { ...OURS, [SHOOT_UID_ANNOTATION]: 's1' } }),
      shoot,
      undefined,
    ],
    [
      'is of another garden',
      namespace({ labels: labels(), annotations: { [GARDEN_ANNOTATION]: 'theirs' } }),
      shoot,
      /garden theirs/,
    ],
    [
      'is of a cluster whose long name has the same hash',
      namespace({ labels: labels('demo2'), annotations: OURS }),
      placed,
      /belongs to Shoot default\/demo2/,
    ],
    ['was made by somebody, without labels', namespace(), placed, /was not made for this cluster/],
    [
      'was made by somebody beforehand, with our labels',
      namespace({ labels: labels() }),
      shoot,
      /was not made for this cluster/,
    ],
    [
      'bears the UID of another',
      namespace({ annotations: { ...OURS, [SHOOT_UID_ANNOTATION]: 's2' } }),
      shoot,
      /was not made/,
    ],
  ])('%s', (_, found, whose, expected) => {
    const otherOwner = otherOwnerIn(found, whose, 'ours');
    if (expected) expect(otherOwner?.whose).toMatch(expected);
    else expect(otherOwner).toBeUndefined();
  });
});

let server: MemoryApiServer;
/** What the caches have; they know things by their labels only, so nothing that lost them. */
let cached: Map<string, KubeObject>;

function operation(of: Shoot = placed): Operation {
  const cache = {
    synced: true,
    get: (key: string) => {
      const known = cached.get(key);
      // They hear at once of what is gone.
      return known && server.find(resourceOf(known), known.metadata.name, known.metadata.namespace) && known;
    },
    absorb: (object: KubeObject) => void cached.set(`${object.metadata.namespace}/${object.metadata.name}`, object),
    onAnyChange: () => () => {},
  };
  const applier = new Applier(server as never, (object) => ({
    live: cached.get(`${object.metadata.namespace}/${object.metadata.name}`),
  }));
  return partOf<Operation>({
    shoot: of,
    state: {},
    provider: {},
    values: { namespace: NS, shoot: { name: 'demo', namespace: 'default' }, addresses: { etcd: [] } },
    deps: { garden: server, gardenApplier: applier, gardenID: 'ours', now: () => new Date('2026-11-22T00:00:00Z') },
    seed: {
      name: 'local',
      client: server,
      applier,
      namespaces: cache,
      secrets: cache,
      configMaps: cache,
      deployments: cache,
      statefulSets: cache,
    },
    vni: 7,
    networkPolicies: [],
    tell: async () => {},
  });
}

beforeEach(() => {
  server = new MemoryApiServer();
  cached = new Map();
});

describe('a foreign namespace', () => {
  it('is not adopted: the cluster reports its owner', async () => {
    server.put(namespace());
    await expect(namespaceTask(operation()).run(signal)).rejects.toThrow(
      `namespace ${NS} of seed local was not made for`,
    );
    expect(server.writes).toEqual([]);
  });

  it('is not deleted with the cluster', async () => {
    server.put(namespace());
    await expect(closeNamespace(operation(), signal)).rejects.toThrow('was not made for this cluster');
    expect(server.writes).toEqual([]);
  });
});

it("a namespace of Coppice's is identified by the Shoot's UID, and deleted with it", async () => {
  await namespaceTask(operation(shoot)).run(signal);
  expect(server.find(NAMESPACES, NS)?.metadata.annotations).toMatchObject({ ...OURS, [SHOOT_UID_ANNOTATION]: 's1' });
  await closeNamespace(operation(), signal);
  expect(server.find(NAMESPACES, NS)).toBeUndefined();
});

describe("a foreign Secret with a kubeconfig's name", () => {
  const own = (more: Partial<Secret> = {}): Secret => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'demo-kubeconfig', namespace: 'default' },
    type: 'Opaque',
    data: { value: 'dGhlaXJz' },
    ...more,
  });

  it.each<[string, Secret]>([
    ['an Opaque one', own()],
    ['one of the same type', own({ type: 'cluster.x-k8s.io/secret' })],
    [
      'one with our labels',
      own({ metadata: { ...own().metadata, labels: { [LABELS.clusterName]: 'demo', [LABELS.managedBy]: 'coppice' } } }),
    ],
  ])('is neither deleted nor written over: %s', async (_, secret) => {
    server.put(secret);
    await removeKubeconfig(operation(), signal);
    await expect(storeKubeconfig(operation(), 'ours', signal)).rejects.toThrow(
      'default/demo-kubeconfig was not made for',
    );
    expect(server.writes).toEqual([]);
  });

  it("is distinguished from Coppice's, which is deleted with the cluster, and an earlier cluster's", async () => {
    await storeKubeconfig(operation(), 'first', signal);
    const later = { ...placed, metadata: { ...placed.metadata, uid: 's2' } } as Shoot;
    await removeKubeconfig(operation(later), signal);
    expect(server.find(SECRETS, 'demo-kubeconfig', 'default')).toBeDefined();
    await storeKubeconfig(operation(later), 'second', signal);
    await removeKubeconfig(operation(later), signal);
    expect(server.find(SECRETS, 'demo-kubeconfig', 'default')).toBeUndefined();
  });
});

it('keys without their labels are still used: no new CA replaces the only copy', async () => {
  const parameters = { apiServerAddress: '10.0.0.1', etcdAddresses: ['10.0.0.2'], services: '10.0.0.0/16' };
  const first = operation();
  await issueCertificates(first, parameters, signal);
  const ca = (first.pki as PKIData)['ca.crt'];
  expect(ca).toContain('BEGIN CERTIFICATE');
  const stored = server.find<Secret>(SECRETS, PKI_SECRET, NS)!;
  const { labels: lost, ...metadata } = stored.metadata;
  expect(lost).toMatchObject(labels());
  server.objects.set(`secrets/${NS}/${PKI_SECRET}`, { ...stored, metadata });
  cached.clear();
  const second = operation();
  await issueCertificates(second, parameters, signal);
  expect((second.pki as PKIData)['ca.crt']).toBe(ca);
  expect(server.find<Secret>(SECRETS, PKI_SECRET, NS)?.data).toEqual(stored.data);
  expect(server.find(SECRETS, PKI_SECRET, NS)?.metadata.labels).toMatchObject(labels());
});

it('a new cluster requests Secrets only where a foreign one may exist, and its own once', async () => {
  const parameters = { apiServerAddress: '10.0.0.1', etcdAddresses: ['10.0.0.2'], services: '10.0.0.0/16' };
  const made = operation();
  const make = async () => {
    await namespaceTask(made).run(signal);
    await issueCertificates(made, parameters, signal);
    await storeKubeconfig(made, 'ours', signal);
  };
  await make();
  expect(server.reads).toEqual([`get namespaces ${NS}`, 'get secrets default/demo-kubeconfig']);
  for (const [key, object] of server.objects) cached.set(key.replace(/^[^/]*\/\/?/, ''), object);
  await make();
  await removeKubeconfig(made, signal);
  await closeNamespace(made, signal);
  expect(server.reads).toHaveLength(2);
  expect(server.writes.slice(-2)).toEqual(['delete secrets default/demo-kubeconfig', `delete namespaces ${NS}`]);
});

it("a Secret that was Coppice's and was replaced stays", async () => {
  await storeKubeconfig(operation(), 'ours', signal);
  const ours = server.find(SECRETS, 'demo-kubeconfig', 'default')!;
  cached.set('default/demo-kubeconfig', ours);
  server.put({ ...ours, metadata: { name: 'demo-kubeconfig', namespace: 'default', uid: 'another' } });
  await expect(removeKubeconfig(operation(), signal)).rejects.toThrow();
  expect(server.find(SECRETS, 'demo-kubeconfig', 'default')).toBeDefined();
});
