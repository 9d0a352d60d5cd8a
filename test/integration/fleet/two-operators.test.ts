import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { ALPHA_API_VERSION, API_VERSION } from '../../../operator/api/group.ts';
import { burstReceiptName, decidedSizesName } from '../../../operator/api/names.ts';
import { OPERATOR_USER } from '../../../operator/api/roles.ts';
import { receiptIn } from '../../../operator/kube/receipt.ts';
import { PODS, type Pod, type Secret } from '../../../operator/kube/resources.ts';
import type { KeyPair } from '../../../operator/pki/certificates.ts';
import { writeKubeconfigText } from '../../../operator/pki/kubeconfig.ts';
import { casesOf } from '../../kit/cases.ts';
import { HoldingProxy } from '../../kit/holding-proxy.ts';
import { makePeakPolicy } from '../../kit/hubs/burst-beside.ts';
import { bind } from '../../kit/hubs/karmada-burst-testbed.ts';
import { serveKinds } from '../../kit/hubs/serve-kinds.ts';
import { memoryProfile } from '../../kit/managed-garden.ts';
import type { OperatorChild } from '../../kit/operator-child.ts';
import { RecordedGarden } from '../../kit/recorded-garden.ts';

const CHILD = fileURLToPath(new URL('../../kit/operator-child.ts', import.meta.url));
/** A Lease that is lost in seconds, on a machine that is busy. */
const TIMING = { leaseDurationMs: 15_000, renewDeadlineMs: 12_000, retryPeriodMs: 1_000 };
/** As of an operator, longer. */
const PATIENT = { leaseDurationMs: 60_000, renewDeadlineMs: 50_000, retryPeriodMs: 4_000 };
const SHARED = 'coppice-operator';
const PATIENCE_MS = 150_000;
/** How long two operators are active at once, in ms. */
const ACTIVE_MS = Number(process.env.COPPICE_TEST_TWO_ACTIVE_MS ?? casesOf(20_000, 5_000));
const PRICE = { hourly: '0.1', currency: 'USD' };

let garden: RecordedGarden;
let operatorKeys: KeyPair;
const children = new Set<ChildProcess>();

beforeAll(async () => {
  garden = await RecordedGarden.withoutOperator();
  const { client } = garden.server;
  operatorKeys = await garden.server.certificate(OPERATOR_USER, ['system:masters']);
  await serveKinds(client, ['karmada']);
  await client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  await client.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: 'shop' } });
  // The API server of all managed clusters is this one, too.
  await client.create({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'cloud-identity' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'reader' }],
  });
  const machineTypes = memoryProfile.spec.machineTypes.map((type) => ({ ...type, price: PRICE }));
  const spec = { ...memoryProfile.spec, machineTypes, controlPlaneFee: PRICE };
  await client.create({ ...memoryProfile, metadata: { name: 'memory' }, spec });
  await secret('keys', 'shop', { accessKey: 'key-1' });
  await secret('karmada', 'kube-system', { value: garden.server.kubeconfig });
  await client.create({
    apiVersion: ALPHA_API_VERSION,
    kind: 'Hub',
    metadata: { name: 'test' },
    spec: { type: 'Karmada', allowedNamespaces: ['shop'], kubeconfigRef: { name: 'karmada' } },
  });
}, 180_000);
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
});
afterAll(() => garden?.stop());

const secret = (name: string, namespace: string, stringData: Record<string, string>) =>
  garden.server.client.create<Secret>({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, stringData });

/** An operator in a process of its own. @param by where it reaches the API server */
async function start(identity: string, lease = SHARED, by = garden.server.url, timing = TIMING) {
  const directory = join(garden.server.directory, 'clouds');
  await mkdir(directory, { recursive: true });
  const file = join(garden.server.directory, `${identity}.kubeconfig`);
  const { ca, url, readerToken } = garden.server;
  await writeFile(file, writeKubeconfigText({ server: by, ca, ...operatorKeys, name: 'test', user: 'operator' }));
  const told: OperatorChild = {
    kubeconfig: file,
    lease,
    identity,
    timing,
    directory,
    managed: { endpoint: url, certificateAuthority: ca, token: readerToken },
  };
  const child = spawn(process.execPath, [CHILD, JSON.stringify(told)], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.add(child);
  const operates = once(child.stdout, 'data');
  const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const failed = ended.then(([code, signal]) => {
    throw new Error(`operator ${identity} has ended: ${code ?? signal}`);
  });
  failed.catch(() => {});
  return { child, operates: () => Promise.race([operates, failed]), ended };
}

const proxy = () => HoldingProxy.before(garden.server.keys, operatorKeys);

const keysOf = (name: string) => garden.secrets.get(`shoot--default--${name}/pki`);
const receipt = (name: string) => garden.secrets.get(`kube-system/${name}`);
const RECEIPT = burstReceiptName('shop/peak');
const SIZES = decidedSizesName('shop/sized');
const bought = () =>
  garden.clusters.list().filter(({ metadata }) => metadata.namespace === 'shop' && metadata.name.startsWith('peak-'));
const purchases = () =>
  receiptIn<{ purchases: { name: string }[] }>(receipt(RECEIPT))?.purchases.map(({ name }) => name) ?? [];
const size = () => receiptIn<{ pools: Record<string, { count: number }> }>(receipt(SIZES))?.pools.a?.count;
/** Spec of a cluster of cloud `memory`. */
const clusterOf = (pools: readonly object[]) => ({
  cloudProvider: 'memory',
  credentialsRef: { name: 'keys' },
  pools,
});

/** A pod for which there is no node. */
const pending = async (name: string) => {
  const requests = { cpu: '1500m', memory: '1Gi' };
  const { client } = garden.server;
  const metadata = { name, namespace: 'shop' };
  await client.create<Pod>({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec: { containers: [{ name: 'c', image: 'work', resources: { requests } }] },
  });
  const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'no node' };
  const since = new Date().toISOString();
  const conditions = [{ ...condition, lastTransitionTime: since }];
  await client.mergePatch(PODS, name, 'shop', { status: { conditions } }, { subresource: 'status' });
};

it('pending writes of an operator suspended past its Lease change nothing: one CA, no double purchase, no lost size', async () => {
  const { client } = garden.server;
  const [byOne, byTwo] = [await proxy(), await proxy()];
  const one = await start('one', SHARED, byOne.url);
  await one.operates();
  const two = await start('two', SHARED, byTwo.url);
  await makePeakPolicy(
    client,
    [{ name: 'cloud', template: { spec: clusterOf([{ name: 'a', minimum: 3, maximum: 3 }]) } }],
    {
      trigger: { pendingFor: '1s' },
      maximumClusters: 2,
      budget: { hourly: '2' },
      scaleIn: undefined,
      cooldown: { scaleOut: '1s', scaleIn: '1h' },
    },
  );
  await client.create({
    apiVersion: API_VERSION,
    kind: 'WorkerCluster',
    metadata: { name: 'sized', namespace: 'shop' },
    spec: clusterOf([{ name: 'a', minimum: 0, maximum: 9, autoscale: 'Coppice' }]),
  });
  await pending('first');
  await garden.until('a size to be decided', () => size() === 1);

  const onTheirWay = [
    byOne.hold((write) => write.endsWith('/shoot--default--late/secrets/pki')),
    byOne.hold((write) => write.endsWith(`/secrets/${RECEIPT}`)),
    byOne.hold((write) => write.endsWith(`/secrets/${SIZES}`)),
  ];
  await garden.ask('late');
  await bind(client, 'web', {});
  await pending('second');
  await Promise.all(onTheirWay.map(({ seen }) => seen));
  one.child.kill('SIGSTOP');
  await two.operates();
  await pending('third');
  await garden.until('the other operator to make keys, to buy, and to decide', () => {
    return keysOf('late') !== undefined && bought().length === 1 && size() === 3;
  });
  const keys = keysOf('late')!.data;
  const [cluster] = bought();

  // Once while it stands still, as packets that were under way, and then it goes on itself.
  const answers = await Promise.all(onTheirWay.map((held) => held.release()));
  expect(answers).toEqual([[409], [409], [409]]);
  const { length } = byOne.writes;
  one.child.kill('SIGCONT');
  const [code, signal] = await one.ended;
  expect([3, 'SIGKILL']).toContain(code ?? signal);
  expect(byOne.writes.slice(length)).toEqual([]);
  expect([keysOf('late')!.data, size()]).toEqual([keys, 3]);
  expect(bought().map(({ metadata }) => metadata.uid)).toEqual([cluster!.metadata.uid]);
  expect(purchases()).toEqual([cluster!.metadata.name]);

  // What was written down, and is made only now.
  const creation = byTwo.hold((write) => /^POST .*\/workerclusters\/peak-/.test(write));
  await bind(client, 'more', {});
  await creation.seen;
  two.child.kill('SIGSTOP');
  const three = await start('three');
  await three.operates();
  await garden.until('what was bought to be made', () => bought().length === 2);
  expect(await creation.release()).toEqual([409]);
  two.child.kill('SIGCONT');
  await two.ended;
  expect(purchases().sort()).toEqual(
    bought()
      .map(({ metadata }) => metadata.name)
      .sort(),
  );
  expect([keysOf('late')!.data, size()]).toEqual([keys, 3]);
}, 180_000);

it(
  'two operators active at once give each cluster one CA',
  async () => {
    const authorities = new Map<string, Set<string | undefined>>();
    garden.secrets.onChange(({ type, object: { metadata, data } }) => {
      if (metadata.name !== 'pki' || type === 'deleted') return;
      const known = authorities.get(metadata.namespace!) ?? new Set();
      authorities.set(metadata.namespace!, known.add(data?.['ca.crt']));
    });
    let isOver = false;
    /** On a machine that has no time for it an operator loses its Lease, and ends: whoever supervises it starts it anew. */
    const keepRunning = async (name: string) => {
      const { operates, ended } = await start(name, name, garden.server.url, PATIENT);
      void ended.then(() => {
        if (!isOver) keepRunning(name).catch(() => {});
      });
      return operates();
    };
    await Promise.all(['left', 'right'].map(keepRunning));
    const until = performance.now() + ACTIVE_MS;
    let made = 0;
    while (performance.now() < until) {
      const names = Array.from({ length: 10 }, () => `both-${made++}`);
      await Promise.all(names.map((name) => garden.ask(name)));
      await garden.until('all to have keys', () => names.every(keysOf), PATIENCE_MS);
    }
    isOver = true;
    const ofThese = [...authorities].filter(([namespace]) => namespace.startsWith('shoot--default--both-'));
    expect(ofThese).toHaveLength(made);
    expect(ofThese.filter(([, known]) => known.size > 1)).toEqual([]);
  },
  ACTIVE_MS + 2 * PATIENCE_MS,
);
