import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dump, load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { burstPolicySpec } from '../../../operator/api/burstpolicy.ts';
import { cloudProfileSpec } from '../../../operator/api/cloudprofile.ts';
import { hubSpec } from '../../../operator/api/hub.ts';
import { profileManifests } from '../../../operator/api/profiles.ts';
import { workerClusterSpec } from '../../../operator/api/workercluster.ts';
import { demoWorkOf, policy, privateCluster, soldAs, stageObjects } from '../../../operator/cli/demo/burst-objects.ts';
import { leftOfDemo } from '../../../operator/cli/demo/clean-up.ts';
import { karmadaLeft, karmadaOf } from '../../../operator/cli/demo/existing-karmada.ts';
import { KarmadaFleet } from '../../../operator/cli/demo/karmada-fleet.ts';
import { NeutralFleet } from '../../../operator/cli/demo/neutral-fleet.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import type { KubeObject, Secret } from '../../../operator/kube/resources.ts';
import { MemoryApiServer } from '../../kit/memory-api-server.ts';

const NEVER = new AbortController().signal;
const profiles = await profileManifests();
const sold = soldAs(profiles);
const local = profiles.find(({ metadata }) => metadata.name === 'local')!;
const garden = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system', uid: 'uid-of-garden' } };
const clientOf = (...objects: KubeObject[]) => {
  const memory = new MemoryApiServer(garden, ...objects);
  return Object.assign(memory, { get: memory.getOrUndefined.bind(memory) }) as unknown as KubeClient;
};
const neutral = new NeutralFleet(clientOf(), '', {}, () => {});
const staged = [...neutral.objects, ...stageObjects(local, sold, neutral.hub)];

it('namespaces of the demo have Pod Security labels', () => {
  const namespaces = staged.filter(({ kind }) => kind === 'Namespace');
  const levels = namespaces.map(({ metadata }) => metadata.labels?.['pod-security.kubernetes.io/enforce']);
  expect(levels.sort()).toEqual(['baseline', 'restricted']);
});
const found = (kind: string) => staged.find((one) => one.kind === kind) as KubeObject & { spec: any };

it('the demo uses prices of the shipped profiles, for machines as large as local ones', () => {
  expect(sold).toHaveLength(2);
  for (const { candidate, machineType, region, hourly } of sold) {
    const type = profiles
      .find(({ metadata }) => metadata.name === candidate)!
      .spec.machineTypes.find(({ name }) => name === machineType)!;
    const here = type.price!.regions?.find(({ name }) => name === region) ?? type.price!;
    expect(hourly).toBe(here.hourly);
    expect(type.cpu).toBe(local.spec.machineTypes[0]!.cpu);
  }
  expect(() => soldAs([])).toThrow('CloudProfile aws has no price of m5.large in eu-central-1');
});

it("objects of the demo are valid, and the policy makes clusters of the demo's profile", () => {
  cloudProfileSpec.parse(found('CloudProfile').spec);
  hubSpec.parse(found('Hub').spec);
  workerClusterSpec.parse(privateCluster.spec);
  const { candidates } = burstPolicySpec.parse(policy(sold).spec);
  const types = found('CloudProfile').spec.machineTypes.map(({ name }: { name: string }) => name);
  for (const { template } of candidates) {
    expect(template.spec.cloudProvider).toBe(found('CloudProfile').metadata.name);
    expect(types).toContain(template.spec.pools![0]!.machineType);
  }
});

it('the demo deletes objects of an earlier demo, and nothing else', async () => {
  const left = (...objects: KubeObject[]) => leftOfDemo(clientOf(...objects), 'kube-system', NEVER);
  expect(await left()).toEqual([]);
  expect(await left(found('Hub'))).toHaveLength(1);
  const theirs = { ...found('Hub'), metadata: { name: 'burst-demo' } };
  await expect(left(theirs)).rejects.toThrow('there is a Hub burst-demo that no demo created');
});

const marksOf = (garden: string) => ({
  labels: { 'app.kubernetes.io/managed-by': 'coppice-demo', 'multi-cluster.demo.io/garden': garden },
});

describe('the Karmada of a demo', () => {
  const context = (name: string) => ({ name, context: { cluster: name, user: name } });
  const entry = (name: string) => ({ name, cluster: { server: `https://${name}.example.com` } });
  const user = (name: string) => ({ name, user: { token: `of-${name}` } });
  const names = ['karmada-host', 'karmada-apiserver'];
  const document = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: names.map(entry),
    users: names.map(user),
    contexts: names.map(context),
    'current-context': 'karmada-host',
  };
  const opened = async (text: object, chosen?: string) => {
    const file = join(await mkdtemp(join(tmpdir(), 'karmada-')), 'karmada.config');
    await writeFile(file, dump(text));
    const { fleet, close } = await karmadaOf(clientOf(), file, chosen, 'kube-system', NEVER);
    await close();
    const [secret] = fleet.objects as [Secret & { stringData: { value: string } }];
    return { secret, fleet, kubeconfig: load(secret.stringData.value) as typeof document };
  };

  it("is found by its installers' context, and the operator gets no other context of the person", async () => {
    const { secret, kubeconfig, fleet } = await opened(document);
    expect(secret.metadata).toMatchObject({ namespace: 'kube-system', name: fleet.hub.kubeconfigRef.name });
    expect(kubeconfig).toEqual({
      ...document,
      clusters: [entry('karmada-apiserver')],
      users: [user('karmada-apiserver')],
      contexts: [context('karmada-apiserver')],
      'current-context': 'karmada-apiserver',
    });
    expect((await opened(document, 'karmada-host')).kubeconfig.clusters).toEqual([entry('karmada-host')]);
    hubSpec.parse(stageObjects(local, sold, fleet.hub).find(({ kind }) => kind === 'Hub')!['spec' as never]);
  });

  it('is refused when the kubeconfig lacks the context or runs a program', async () => {
    await expect(opened(document, 'other')).rejects.toThrow('has no context other');
    const users = [{ name: 'karmada-apiserver', user: { exec: { command: 'true' } } }];
    await expect(opened({ ...document, users })).rejects.toThrow('the operator could not use it');
  });

  it('loses only objects that a demo of this garden has made', async () => {
    const { labels } = marksOf('uid-of-garden');
    const sale = (namespace: string, more?: Record<string, string>) => ({
      ...demoWorkOf('sale', 1),
      metadata: { name: 'sale', namespace, ...(more && { labels: more }) },
    });
    const karmada = clientOf(
      sale('burst-demo-fleet', labels),
      sale('theirs'),
      sale('of-another-garden', marksOf('uid-of-another').labels),
    );
    const fleet = new KarmadaFleet(karmada, '', 'kube-system', 'uid-of-garden');
    await fleet.ebb(NEVER);
    expect((karmada as unknown as MemoryApiServer).writes).toEqual(['delete deployments burst-demo-fleet/sale']);
  });

  it("is known from the garden's Secret after an interrupted demo", async () => {
    expect(await karmadaLeft(clientOf(), 'kube-system', NEVER)).toBeUndefined();
    const { secret } = await opened(document);
    const data = { value: Buffer.from(secret.stringData.value).toString('base64') };
    const left = clientOf({ ...secret, data } as KubeObject);
    expect(await leftOfDemo(left, 'kube-system', NEVER)).toHaveLength(1);
    const found = await karmadaLeft(left, 'kube-system', NEVER);
    expect(found).toBeDefined();
    await found!.close();
  });
});
