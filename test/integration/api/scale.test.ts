import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { findCondition } from '../../../operator/api/conditions.ts';
import { API_VERSION } from '../../../operator/api/group.ts';
import { installManifests } from '../../../operator/api/install.ts';
import { profileManifests, simulatedProfile } from '../../../operator/api/profiles.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { DecidedSizes } from '../../../operator/controllers/decided-sizes.ts';
import { idleWarnings } from '../../../operator/garden/control-plane/idle-controllers.ts';
import { Informer, waitFor } from '../../../operator/kube/informer.ts';
import { silent } from '../../../operator/kube/log.ts';
import { Registry } from '../../../operator/kube/metrics.ts';
import {
  CLOUDPROFILES,
  type KubeObject,
  pathOf,
  SECRETS,
  type Secret,
  SHOOTS,
  WORKERCLUSTERS,
} from '../../../operator/kube/resources.ts';
import { type Operator, startOperator } from '../../../operator/operator.ts';
import { providerNamed } from '../../../providers/index.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';
import { testTools } from '../../kit/tools.ts';

const run = promisify(execFile);
const RANGE = [{ name: 'a', minimum: 2, maximum: 9 }];

let garden: TestApiserver;
let operator: Operator;
let clusters: Informer<WorkerCluster>;
let shoots: Informer<Shoot>;
let stop = new AbortController();
/** Standard output, and the warnings on standard error. */
let kubectl: (...args: string[]) => Promise<string>;
let warnings: (...args: string[]) => Promise<string>;

const begin = async () => {
  stop = new AbortController();
  const options = {
    garden: await garden.asOperator(),
    log: silent,
    metrics: new Registry(),
    provider: () => providerNamed('simulated'),
    state: { namespace: 'kube-system', directory: undefined },
  };
  operator = await startOperator(options, stop.signal);
};
const end = async () => {
  stop.abort();
  await operator?.stop();
};

/** An operator, and no seed: what a Shoot is asked for is all that matters. */
beforeAll(async () => {
  garden = await startApiserver();
  for (const manifest of installManifests()) await garden.client.apply(manifest);
  const profiles = new Informer<CloudProfile>(garden.client, CLOUDPROFILES);
  clusters = new Informer<WorkerCluster>(garden.client, WORKERCLUSTERS);
  shoots = new Informer<Shoot>(garden.client, SHOOTS);
  for (const cache of [profiles, clusters, shoots]) cache.start();
  await Promise.all([profiles, clusters, shoots].map((cache) => cache.whenSynced(AbortSignal.timeout(30_000))));
  const aws = (await profileManifests()).find(({ metadata }) => metadata.name === 'aws')!;
  await garden.client.apply(simulatedProfile(aws));
  await profiles.stop();
  const file = join(garden.directory, 'kubeconfig');
  await writeFile(file, garden.kubeconfig);
  const { kubectl: binary } = await testTools('kubectl');
  const call = (args: string[]) => run(binary, ['--kubeconfig', file, ...args]);
  kubectl = async (...args) => (await call(args)).stdout;
  warnings = async (...args) => (await call([...args, '--dry-run=server'])).stderr;
  await begin();
});
afterAll(async () => {
  await end();
  await Promise.all([clusters?.stop(), shoots?.stop()]);
  await garden?.stop();
});

const manifest = (name: string, spec: object): KubeObject => ({
  apiVersion: API_VERSION,
  kind: 'WorkerCluster',
  metadata: { name, namespace: 'default' },
  spec: { cloudProvider: 'aws', ...spec },
});
const make = (name: string, spec: object = { pools: RANGE }) => garden.client.create(manifest(name, spec));
/** A GitOps tool that applies on the server's side, and takes no field from anybody. */
const applied = (name: string, spec: object) =>
  garden.client.apply(manifest(name, spec), { fieldManager: 'gitops', force: false });
const scalePath = (name: string) => pathOf(WORKERCLUSTERS, 'default', name, 'scale');
const told = async (name: string) =>
  (await garden.client.request<{ spec: { replicas?: number } }>('GET', scalePath(name))).spec.replicas;
/** As kubectl, HPA and KEDA do. */
const scale = (name: string, replicas: number) =>
  garden.client.request('PATCH', scalePath(name), {
    query: { fieldManager: 'horizontal-pod-autoscaler' },
    body: { spec: { replicas } },
    contentType: 'application/merge-patch+json',
  });
const drop = (name: string) =>
  garden.client.mergePatch(WORKERCLUSTERS, name, 'default', { spec: { dataPlaneNodes: null } }, { fieldManager: 'me' });

const of = (name: string) => clusters.get(`default/${name}`);
const asked = (name: string) => shoots.get(`default/${name}`)?.spec.provider.workers?.map(({ minimum }) => minimum);
const until = (what: string, predicate: () => boolean) =>
  waitFor([clusters, shoots], () => predicate() || undefined, {
    timeoutMs: 20_000,
    what: () => `${what}: ${JSON.stringify(clusters.list())}`,
  });
/** The number is there, and nobody owns it. */
const filled = async (name: string, nodes: number) => {
  await until(
    `${name} to be told as ${nodes}`,
    () => of(name)?.spec.dataPlaneNodes === nodes && `${of(name)?.status?.defaultedNodes}` === `${nodes}`,
  );
  const isOwned = async () =>
    JSON.stringify((await garden.client.get(WORKERCLUSTERS, name, 'default')).metadata).includes('f:dataPlaneNodes');
  await expect.poll(isOwned).toBe(false);
};
const fixed = (name: string, nodes: number) =>
  until(
    `${name} to be fixed at ${nodes}`,
    () =>
      of(name)?.spec.dataPlaneNodes === nodes &&
      of(name)?.status !== undefined &&
      of(name)?.status?.defaultedNodes === undefined,
  );
/** Resolves when the operator has looked at the cluster as it is now. */
const seen = (name: string) =>
  until(`${name} to be seen`, () => of(name)?.status?.observedGeneration === of(name)?.metadata.generation);

const sizes = () => {
  const secrets = new Informer<Secret>(garden.client, SECRETS, { namespace: 'kube-system' });
  secrets.start();
  return { secrets, sizes: new DecidedSizes(garden.client, 'kube-system', secrets) };
};

describe('the scale subresource', () => {
  it('reads the size of a cluster with pools and no fixed size', async () => {
    await make('ranged');
    await filled('ranged', 2);
    expect(await told('ranged')).toBe(2);
    expect(asked('ranged')).toEqual([2]);
    const { metadata } = await garden.client.get(WORKERCLUSTERS, 'ranged', 'default');
    expect(JSON.stringify(metadata)).not.toContain('f:dataPlaneNodes');
  });

  it("a defaulted size survives export and backup, and still counts as nobody's", async () => {
    await make('exported');
    await filled('exported', 2);
    const file = join(garden.directory, 'exported.json');
    const exportOf = async () => {
      const { metadata, spec, ...rest } = await garden.client.get<WorkerCluster>(WORKERCLUSTERS, 'exported', 'default');
      const { name, namespace, annotations = {} } = metadata;
      const { status: _, ...kind } = rest;
      return { ...kind, metadata: { name, namespace, annotations }, spec };
    };
    const exported = await exportOf();
    expect(exported.spec.dataPlaneNodes).toBe(2);
    // An edit of something else, applied as people do.
    await writeFile(
      file,
      JSON.stringify({ ...exported, spec: { ...exported.spec, pools: [{ ...RANGE[0]!, maximum: 8 }] } }),
    );
    await kubectl('apply', '-n', 'default', '-f', file);
    await seen('exported');
    await filled('exported', 2);
    // A backup that is restored has no status.
    await garden.client.delete(WORKERCLUSTERS, 'exported', 'default');
    await until('it to be gone', () => of('exported') === undefined);
    await garden.client.create(exported as KubeObject, { fieldManager: 'velero' });
    await until('it to be told as 2', () => `${of('exported')?.status?.defaultedNodes}` === '2');
    // What people and autoscalers write is theirs.
    await scale('exported', 4);
    await fixed('exported', 4);
    await expect.poll(async () => (await exportOf()).metadata.annotations).toEqual({});
    await kubectl('scale', 'workercluster/exported', '-n', 'default', '--replicas=2');
    await fixed('exported', 2);
  });

  it('warns of kinds that no controller of an embedded garden handles', async () => {
    for (const object of idleWarnings()) await garden.client.apply(object);
    await make('warned');
    // A new policy is heeded a moment after it was made.
    await expect
      .poll(() => warnings('autoscale', 'workercluster', 'warned', '--max=5', '--cpu=50%'), { timeout: 30_000 })
      .toMatch(/^Warning: .*no metrics and no HPA controller\. Use pools\[\]\.autoscale: Coppice/);
    expect(await warnings('create', 'cronjob', 'tick', '--image=a', '--schedule=* * * * *')).toContain('no CronJobs');
    expect(await warnings('create', 'service', 'loadbalancer', 'a', '--tcp=80')).toContain('no load balancers');
    expect(await warnings('create', 'service', 'clusterip', 'b', '--tcp=80')).toBe('');
    expect(await warnings('create', 'job', 'once', '--image=a')).toBe('');
  });

  it('accepts a size from kubectl or an autoscaler, and keeps it', async () => {
    await make('scaled');
    await filled('scaled', 2);
    await kubectl('scale', 'workercluster', 'scaled', '--replicas=4');
    await fixed('scaled', 4);
    await until('4 nodes', () => asked('scaled')?.[0] === 4);
    await scale('scaled', 5);
    await fixed('scaled', 5);
    await until('5 nodes', () => asked('scaled')?.[0] === 5);
    // Who owns it is asked of the server, not remembered.
    await end();
    await begin();
    expect(asked('scaled')).toEqual([5]);
    expect(await told('scaled')).toBe(5);
    await expect(scale('scaled', 10)).rejects.toThrow('more than the maximums');
  });

  it('removing the size returns the decision to the operator', async () => {
    await make('given-back', { pools: RANGE, dataPlaneNodes: 6 });
    await until('6 nodes', () => asked('given-back')?.[0] === 6);
    await drop('given-back');
    await filled('given-back', 2);
    await until('2 nodes', () => asked('given-back')?.[0] === 2);
  });

  it('a defaulted size does not block changes of pools', async () => {
    await make('changed');
    await filled('changed', 2);
    await garden.client.mergePatch(WORKERCLUSTERS, 'changed', 'default', {
      spec: { pools: [{ ...RANGE[0], minimum: 4 }] },
    });
    await filled('changed', 4);
    await until('4 nodes', () => asked('changed')?.[0] === 4);
    // A person's number is held against the pools as ever.
    await scale('changed', 5);
    await fixed('changed', 5);
    const more = { spec: { pools: [{ ...RANGE[0], minimum: 6 }] } };
    await expect(garden.client.mergePatch(WORKERCLUSTERS, 'changed', 'default', more)).rejects.toThrow(
      'less than the minimums',
    );
  });

  it('an apply that removes the only size is refused, and the nodes stay', async () => {
    await make('poolless');
    await filled('poolless', 2);
    await until('2 nodes', () => asked('poolless')?.[0] === 2);
    await garden.client.mergePatch(WORKERCLUSTERS, 'poolless', 'default', { spec: { pools: null } });
    await until('poolless to be refused', () =>
      JSON.stringify(of('poolless')?.status?.lastErrors ?? []).includes('say how many nodes'),
    );
    expect(asked('poolless')).toEqual([2]);
  });
});

describe('tools that apply a manifest repeatedly', () => {
  it("server-side without a size change nothing, and the size stays nobody's", async () => {
    await applied('gitops', { pools: RANGE });
    await filled('gitops', 2);
    await seen('gitops');
    const { metadata } = of('gitops')!;
    await applied('gitops', { pools: RANGE });
    expect((await garden.client.get(WORKERCLUSTERS, 'gitops', 'default')).metadata.generation).toBe(
      metadata.generation,
    );
    await applied('gitops', { pools: [{ ...RANGE[0], minimum: 3 }] });
    await filled('gitops', 3);
  });

  it('server-side with a size own it without a conflict, and give it up without it', async () => {
    await applied('stated', { pools: RANGE });
    await filled('stated', 2);
    await applied('stated', { pools: RANGE, dataPlaneNodes: 5 });
    await fixed('stated', 5);
    await applied('stated', { pools: RANGE });
    await filled('stated', 2);
    await applied('stated', { pools: RANGE, dataPlaneNodes: 2 });
    await fixed('stated', 2);
  });

  it('client-side work without a size, with the same and with another size', async () => {
    const apply = async (spec: object) => {
      const file = join(garden.directory, 'client-side.json');
      await writeFile(file, JSON.stringify(manifest('client-side', spec)));
      await kubectl('apply', '-f', file);
    };
    await apply({ pools: RANGE });
    await filled('client-side', 2);
    await apply({ pools: RANGE });
    await filled('client-side', 2);
    await apply({ pools: RANGE, dataPlaneNodes: 2 });
    await fixed('client-side', 2);
    await apply({ pools: RANGE, dataPlaneNodes: 5 });
    await fixed('client-side', 5);
    await apply({ pools: RANGE });
    await filled('client-side', 2);
  });
});

describe('dataPlaneNodes with autoscale Coppice', () => {
  const COPPICE = [{ ...RANGE[0], autoscale: 'Coppice' }];
  const said = (name: string) => findCondition(of(name)?.status?.conditions, 'SizeDecided');

  it('is a minimum, shown with its author, and can be removed', async () => {
    await make('floor', { pools: COPPICE });
    await filled('floor', 2);
    await scale('floor', 5);
    await until('5 nodes', () => asked('floor')?.[0] === 5);
    await until('to be said', () => said('floor')?.reason === 'Floor');
    expect(said('floor')?.message).toContain(
      'pool a: 5 nodes, raised to the floor. spec.dataPlaneNodes: 5 is the floor',
    );
    await applied('floor', { pools: COPPICE, dataPlaneNodes: 4 });
    await until('its writer', () => said('floor')?.message?.includes('written by gitops') === true);
    await applied('floor', { pools: COPPICE });
    await drop('floor');
    await filled('floor', 2);
    await until('2 nodes', () => asked('floor')?.[0] === 2);
    await until('to be quiet', () => said('floor') === undefined);
  });

  it('with autoscale Cloud needs a maximum', async () => {
    for (const autoscale of ['Coppice', 'Cloud'])
      await expect(make('boundless', { pools: [{ name: 'a', autoscale }] })).rejects.toThrow(
        'autoscale needs a maximum',
      );
    await make('nobody', { pools: [{ name: 'a', minimum: 1, autoscale: 'None' }] });
    await until('1 node', () => asked('nobody')?.[0] === 1);
  });
});

describe('the scale subresource with a decided size', () => {
  it('shows it; a restarted operator removes nothing and writes nothing', async () => {
    await make('decided', { pools: [{ ...RANGE[0], autoscale: 'Coppice' }] });
    await filled('decided', 2);
    const receipt = sizes();
    await receipt.secrets.whenSynced();
    const { uid = '' } = of('decided')!.metadata;
    const pool = { ...RANGE[0]!, sizedBy: 'minimum' as const };
    await receipt.sizes.decide({
      key: 'default/decided',
      uid,
      pool,
      size: { count: 5, by: 'Coppice', why: 'pods wait' },
    });
    await filled('decided', 5);
    await until('5 nodes', () => asked('decided')?.[0] === 5);
    expect(await told('decided')).toBe(5);
    await seen('decided');
    await end();

    const least: number[] = [];
    const unfollow = shoots.onChange(({ object }) => {
      if (object.metadata.name === 'decided')
        least.push(...(object.spec.provider.workers ?? []).map(({ minimum }) => minimum));
    });
    const versions = () => clusters.list().map(({ metadata }) => `${metadata.name} ${metadata.generation}`);
    const before = versions();
    await begin();
    await make('next', { dataPlaneNodes: 1 });
    await until('next to be asked for', () => asked('next')?.[0] === 1);
    await seen('next');
    expect(versions().filter((line) => !line.startsWith('next '))).toEqual(before);
    expect(new Set(least)).toEqual(new Set([5]));
    unfollow();

    await garden.client.delete(WORKERCLUSTERS, 'decided', 'default');
    await until('decided to be gone', () => of('decided') === undefined);
    await receipt.secrets.waitFor(() => !receipt.sizes.has('default/decided'), {
      timeoutMs: 20_000,
      what: 'its receipt to be gone',
    });
    await receipt.secrets.stop();
  });
});
