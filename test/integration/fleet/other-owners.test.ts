import { afterAll, beforeAll, expect, it } from 'vitest';
import type { KubeClient } from '../../../operator/kube/client.ts';
import {
  CONFIGMAPS,
  type KubeObject,
  NAMESPACES,
  SECRETS,
  type Secret,
  SHOOTS,
  WORKERCLUSTERS,
} from '../../../operator/kube/resources.ts';
import { RecordedGarden } from '../../kit/recorded-garden.ts';

let garden: RecordedGarden;
let client: KubeClient;
beforeAll(async () => {
  garden = await RecordedGarden.start();
  client = garden.server.client;
});
afterAll(() => garden?.stop());

const until: RecordedGarden['until'] = (what, predicate) => garden.until(what, predicate);
const ask = (name: string) => garden.ask(name);
const refused = (name: string) =>
  until(`${name} to say why`, () =>
    JSON.stringify(garden.cluster(name)?.status ?? '').includes('was not made for this cluster'),
  );
async function removed(name: string): Promise<void> {
  await client.delete(WORKERCLUSTERS, name, 'default');
  const gone = () => !garden.cluster(name) && !garden.shoots.get(`default/${name}`);
  await until(`${name} to be gone`, gone);
}
const caOf = (name: string) => {
  const text = garden.secrets.get(`default/${name}-kubeconfig`)?.data?.value;
  return /certificate-authority-data: (\S+)/.exec(Buffer.from(text ?? '', 'base64').toString())?.[1];
};

it("a person's Secret with the name of the kubeconfig survives the cluster's deletion", async () => {
  const metadata = { name: 'mine-kubeconfig', namespace: 'default' };
  const { metadata: before } = await client.create<Secret>({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata,
    stringData: { value: 'mine' },
  });
  await ask('mine');
  await refused('mine');
  await removed('mine');
  const after = await client.get<Secret>(SECRETS, metadata.name, 'default');
  expect([after.metadata.uid, after.metadata.resourceVersion]).toEqual([before.uid, before.resourceVersion]);
});

it("a person's namespace with the name of the seed's survives the cluster's deletion with its contents", async () => {
  const namespace = 'shoot--default--taken';
  await client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  const precious: KubeObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'precious', namespace } };
  await client.create(precious);
  await ask('taken');
  await refused('taken');
  await removed('taken');
  const after = await client.get(NAMESPACES, namespace);
  expect([after.metadata.deletionTimestamp, after.metadata.labels?.['pod-security.kubernetes.io/enforce']]).toEqual([
    undefined,
    undefined,
  ]);
  expect(await client.getOrUndefined(CONFIGMAPS, 'precious', namespace)).toBeDefined();
});

it('keys whose Secret lost its labels stay the keys of the cluster', async () => {
  await garden.made('plain');
  const namespace = 'shoot--default--plain';
  const { metadata, data: before } = await client.get<Secret>(SECRETS, 'pki', namespace);
  const labels = Object.fromEntries(Object.keys(metadata.labels ?? {}).map((label) => [label, null]));
  await client.mergePatch(SECRETS, 'pki', namespace, { metadata: { labels } });
  const operation = { metadata: { annotations: { 'gardener.cloud/operation': 'reconcile' } } };
  await client.mergePatch(SHOOTS, 'plain', 'default', operation);
  const labelled = () => Object.keys(garden.secrets.get(`${namespace}/pki`)?.metadata.labels ?? {}).length;
  await until('the keys to have their labels back', () => labelled() >= Object.keys(labels).length);
  expect(before?.['ca.crt']).toBeDefined();
  expect(garden.secrets.get(`${namespace}/pki`)?.data?.['ca.crt']).toBe(before?.['ca.crt']);
});

it('the objects made for a cluster are deleted with it', async () => {
  await garden.made('ours');
  expect(caOf('ours')).toBeDefined();
  await removed('ours');
  expect(await client.getOrUndefined(SECRETS, 'ours-kubeconfig', 'default')).toBeUndefined();
  const space = await client.getOrUndefined(NAMESPACES, 'shoot--default--ours');
  expect(space === undefined || space.metadata.deletionTimestamp !== undefined).toBe(true);
});
