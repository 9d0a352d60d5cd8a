import { access } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { addressList } from '../../../operator/api/address-range.ts';
import { FINALIZER } from '../../../operator/api/group.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { OpenClusters } from '../../../operator/clusters/open-clusters.ts';
import { AttachedController } from '../../../operator/controllers/attached/controller.ts';
import type { AttachedFacts } from '../../../operator/controllers/attached/facts.ts';
import {
  ATTACHED_RECEIPTS,
  attachedReceiptIn,
  attachedReceipts,
} from '../../../operator/controllers/attached/receipt.ts';
import { KubeClient } from '../../../operator/kube/client.ts';
import { Informer } from '../../../operator/kube/informer.ts';
import { silent } from '../../../operator/kube/log.ts';
import { SECRETS, type Secret } from '../../../operator/kube/resources.ts';
import { writeKubeconfigText } from '../../../operator/pki/kubeconfig.ts';
import { buildWorkerCluster } from '../../kit/builders/objects.ts';
import { startProxy } from '../../kit/connect-proxy.ts';
import { type RefusedKubeconfig, refusedKubeconfigs } from '../../kit/refused-kubeconfigs.ts';
import { SmallApiServer } from '../../kit/small-api-server.ts';

const OPERATOR = 'coppice-system';
const NEVER = new AbortController().signal;

let garden: SmallApiServer;
let theirs: SmallApiServer;
let others: SmallApiServer;
let client: KubeClient;
let receipts: Informer<Secret>;
let controller: AttachedController;
let clusters: Map<string, WorkerCluster>;
let open: OpenClusters;
let allowed: string[];
let enqueued: string[];

beforeEach(async () => {
  const start = (identity: string) => SmallApiServer.start(identity);
  [garden, theirs, others] = await Promise.all([start('garden'), start('theirs'), start('others')]);
  client = KubeClient.fromKubeconfig(garden.kubeconfig);
  receipts = new Informer<Secret>(client, SECRETS, { labelSelector: ATTACHED_RECEIPTS, namespace: OPERATOR });
  receipts.start();
  await receipts.whenSynced(AbortSignal.timeout(60_000));
  clusters = new Map();
  enqueued = [];
  allowed = ['127.0.0.0/8'];
  begin();
  theirs.put('/api/v1/nodes/one', { metadata: { name: 'one' }, spec: {}, status: {} } as never);
});
afterEach(async () => {
  await Promise.all([controller.stop(), receipts.stop()]);
  await client.close();
  await Promise.all([garden.stop(), theirs.stop(), others.stop()]);
});

/** An operator that knows nothing but what is written down. */
function begin(): void {
  open = new OpenClusters();
  controller = new AttachedController({
    garden: client,
    namespace: OPERATOR,
    log: silent,
    clusters: { get: (key) => clusters.get(key), list: () => [...clusters.values()] },
    openClusters: open,
    receipts: attachedReceipts(client, OPERATOR, receipts),
    allReceipts: () => receipts.list().flatMap((secret) => attachedReceiptIn(secret) ?? []),
    platform: () => ({ servers: [], identities: new Map([['garden', 'the garden']]) }),
    allowed: addressList(allowed),
    random: () => 0.5,
    enqueue: (key) => void enqueued.push(key),
    changed: () => {},
  });
}

const keep = (text: string, name = 'demo', namespace = 'shop') =>
  garden.put(`/api/v1/namespaces/${namespace}/secrets/${name}`, {
    metadata: { name, namespace },
    data: { value: Buffer.from(text).toString('base64') },
  } as never);
const attach = (name = 'demo', namespace = 'shop', more: object = {}, annotations: Record<string, string> = {}) => {
  const attached = { kubeconfigSecretRef: { name }, ...more };
  const key = `${namespace}/${name}`;
  const metadata = { name, namespace, uid: `uid-of-${key}`, generation: 1, finalizers: [FINALIZER], annotations };
  clusters.set(key, buildWorkerCluster({ metadata, spec: { mode: 'Attached', attached } }));
  return key;
};
const facts = (key: string) => controller.facts(key, `uid-of-${key}`);
const look = async (key: string): Promise<AttachedFacts> => {
  await controller.reconcile(key, NEVER);
  return facts(key)!;
};
/** Until what a watch has brought was taken note of. */
const noticed = (predicate: () => boolean) => expect.poll(predicate, { interval: 10 }).toBe(true);
const recordsOf = () => [...garden.objects.keys()].filter((path) => path.includes(`/${OPERATOR}/secrets/attached-`));

it('an attached cluster is opened, recorded, and shown with its contents', async () => {
  keep(theirs.kubeconfig);
  const seen = await look(attach());
  expect(seen).toMatchObject({ refusal: undefined, identity: 'theirs', version: '1.36.3', server: theirs.url });
  expect(seen.inside?.nodes.map(({ metadata }) => metadata.name)).toEqual(['one']);
  expect(open.get('shop/demo')?.identity).toBe('theirs');
  expect(recordsOf()).toHaveLength(1);
  const wrote = theirs.requests.filter((request) => !request.startsWith('GET '));
  expect(wrote).toEqual([]);
});

describe('a kubeconfig written by a tenant', () => {
  const ran = join(tmpdir(), `coppice-attached-${process.pid}`);
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'touch', args: [ran] };
  const config = (cluster: object, user: object = { token: 't' }, more: object[] = []) =>
    JSON.stringify({
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server: theirs.url, 'certificate-authority-data': '', ...cluster } }],
      users: [{ name: 'u', user }, ...more],
    });
  it.each<RefusedKubeconfig>([
    ...refusedKubeconfigs(config, exec),
    [
      'does not reach the garden',
      () => garden.kubeconfig,
      'PlatformCluster',
      /points to the garden, which only administrators/,
    ],
    ['leads to whom somebody vouches for', () => config({}), 'NotReachable', /certificate/],
  ])('%s', async (_, text, reason, message) => {
    keep(text());
    const { refusal } = await look(attach());
    expect(refusal).toMatchObject({ reason, message: expect.stringMatching(message) });
    expect(open.keys()).toEqual([]);
    expect(recordsOf()).toEqual([]);
    await expect(access(ran)).rejects.toThrow('ENOENT');
  });

  it.each<[string, string, number, string, RegExp]>([
    ['not accept', '/api', 401, 'Unauthorized', /does not accept the credentials/],
    ['not let get kube-system', '/api/v1/namespaces', 403, 'Forbidden', /may not get namespace kube-system$/],
    ['not let list nodes', '/api/v1/nodes', 403, 'Forbidden', /may not list nodes$/],
    ['not let list pods', '/api/v1/pods', 403, 'Forbidden', /may not list pods of all namespaces$/],
    ['send elsewhere', '/api', 302, 'NotReachable', /302/],
  ])('is of somebody whom the cluster may %s', async (_, path, status, reason, message) => {
    theirs.refuses.set(path, status);
    keep(theirs.kubeconfig);
    expect((await look(attach())).refusal).toMatchObject({ reason, message: expect.stringMatching(message) });
  });

  it("reaches no loopback address unless permitted; in the operator's namespace it reaches everything", async () => {
    allowed = [];
    begin();
    keep(theirs.kubeconfig);
    keep(theirs.kubeconfig.replace('127.0.0.1', 'localhost'), 'named');
    for (const name of ['demo', 'named'])
      expect((await look(attach(name))).refusal?.message).toMatch(
        /^address (127.0.0.1|::1) is internal to the platform/,
      );
    expect(theirs.requests).toEqual([]);
    keep(theirs.kubeconfig, 'demo', OPERATOR);
    expect((await look(attach('demo', OPERATOR))).refusal).toBeUndefined();
  });

  it('uses the proxy of the environment, which the tenant cannot choose', async () => {
    const proxy = await startProxy({});
    vi.stubEnv('HTTPS_PROXY', proxy.url);
    try {
      keep(config({ server: 'https://192.0.2.1:6443' }));
      const message = expect.stringContaining(`proxy ${proxy.url} did not open a connection to 192.0.2.1:6443`);
      expect((await look(attach())).refusal).toMatchObject({ reason: 'NotReachable', message });
    } finally {
      vi.unstubAllEnvs();
      await proxy.close();
    }
  });

  it.each([{}, { kind: 'x' }, { metadata: { uid: { a: 1 } } }, { metadata: { uid: 'x'.repeat(999) } }])(
    'leads to nobody who does not say who it is (%j)',
    async (object) => {
      theirs.objects.set('/api/v1/namespaces/kube-system', object as never);
      keep(theirs.kubeconfig);
      expect((await look(attach())).refusal?.message).toMatch(/^the API server does not say who it is/);
    },
  );
});

it('the garden itself is attached by administrators only, and its client stays open', async () => {
  const self = { kubeconfigSecretRef: undefined, garden: true };
  expect((await look(attach('self', 'shop', self))).refusal).toMatchObject({
    reason: 'PlatformCluster',
    message: `the garden itself is attached in namespace ${OPERATOR} only`,
  });
  const key = attach('self', OPERATOR, self);
  expect(await look(key)).toMatchObject({ refusal: undefined, identity: 'garden' });
  await controller.release(key, `uid-of-${key}`, NEVER);
  expect(await client.getOrUndefined(SECRETS, 'any', 'shop')).toBeUndefined();
});

it('a cluster is attached once in the garden, also when two are opened at once, and again after its release', async () => {
  keep(theirs.kubeconfig);
  keep(theirs.kubeconfig, 'demo', 'rival');
  const keys = [attach(), attach('demo', 'rival')];
  const [first, second] = await Promise.all(keys.map(look));
  expect([first?.refusal?.reason, second?.refusal?.reason].sort()).toEqual(['SameCluster', undefined]);
  const [holder, loser] = first?.refusal ? [keys[1]!, keys[0]!] : [keys[0]!, keys[1]!];
  expect(open.keys()).toEqual([holder]);
  expect(facts(loser)?.refusal?.message).toMatch(/^a WorkerCluster of another namespace is the same cluster/);
  await controller.release(holder, `uid-of-${holder}`, NEVER);
  expect(enqueued).toContain(loser);
  clusters.delete(holder);
  expect((await look(loser)).refusal).toBeUndefined();
});

it('another cluster behind the same Secret is not touched without approval', async () => {
  keep(theirs.kubeconfig);
  const key = attach();
  await look(key);
  enqueued.length = 0;
  keep(others.kubeconfig);
  await noticed(() => enqueued.includes(key));
  const { refusal, identity } = await look(key);
  expect({ reason: refusal?.reason, identity }).toEqual({ reason: 'OtherCluster', identity: 'theirs' });
  expect(open.get(key)).toBeUndefined();
  expect(others.requests.filter((request) => !request.startsWith('GET '))).toEqual([]);
  // Nor by an operator that knows only what was written down.
  await controller.stop();
  begin();
  expect((await look(key)).refusal?.reason).toBe('OtherCluster');

  attach('demo', 'shop', {}, { 'multi-cluster.demo.io/approve-cluster': 'others' });
  expect(await look(key)).toMatchObject({ refusal: undefined, identity: 'others' });
});

it('another cluster at the same address ends the connection before any write', async () => {
  keep(theirs.kubeconfig);
  const key = attach();
  await look(key);
  let ended = false;
  open.get(key)!.onStop(() => {
    ended = true;
  });
  theirs.put('/api/v1/namespaces/kube-system', { metadata: { name: 'kube-system', uid: 'imposter' } });
  theirs.disconnect();
  await noticed(() => ended && open.get(key) === undefined);
  expect(facts(key)?.refusal?.reason).toBe('NotReachable');
  expect((await look(key)).refusal?.reason).toBe('OtherCluster');
});

it("an attached cluster's connection closes when its Secret is deleted, and opens when it is back", async () => {
  keep(theirs.kubeconfig);
  const key = attach();
  await look(key);
  enqueued.length = 0;
  garden.remove('/api/v1/namespaces/shop/secrets/demo');
  await noticed(() => enqueued.includes(key));
  expect((await look(key)).refusal).toMatchObject({
    reason: 'KubeconfigMissing',
    message: 'Secret shop/demo does not exist: put the kubeconfig of the cluster into its key value',
  });
  expect(open.get(key)).toBeUndefined();
  enqueued.length = 0;
  keep(theirs.kubeconfig);
  await noticed(() => enqueued.includes(key));
  expect((await look(key)).refusal).toBeUndefined();
});

it('an attached cluster takes a new token without closing its connection', async () => {
  keep(theirs.kubeconfig);
  const key = attach();
  await look(key);
  const before = open.get(key);
  const closed: string[] = [];
  open.onChange((changed) => {
    if (!open.get(changed)) closed.push(changed);
  });
  enqueued.length = 0;
  keep(writeKubeconfigText({ server: theirs.url, ca: theirs.ca, token: 'new', name: 'c', user: 'u' }));
  await noticed(() => enqueued.includes(key));
  expect((await look(key)).refusal).toBeUndefined();
  expect(open.get(key)).not.toBe(before);
  expect(closed).toEqual([]);
});

it('nothing is remembered of an attached cluster that was released, or deleted by force', async () => {
  keep(theirs.kubeconfig);
  const key = attach();
  await look(key);
  await controller.release(key, `uid-of-${key}`, NEVER);
  expect([recordsOf(), open.keys(), facts(key)]).toEqual([[], [], undefined]);
  // A look that comes late opens nothing.
  await controller.reconcile(key, NEVER);
  expect(open.keys()).toEqual([]);

  clusters.delete(key);
  await controller.reconcile(key, NEVER);
  attach();
  await look(key);
  expect(recordsOf()).toHaveLength(1);
  clusters.delete(key);
  await controller.reconcile(key, NEVER);
  expect([recordsOf(), open.keys()]).toEqual([[], []]);
});

it('an attached cluster is opened only after its finalizer is set', async () => {
  keep(theirs.kubeconfig);
  const key = attach();
  delete clusters.get(key)!.metadata.finalizers;
  await controller.reconcile(key, NEVER);
  expect(facts(key)).toBeUndefined();
  expect(theirs.requests).toEqual([]);
});
