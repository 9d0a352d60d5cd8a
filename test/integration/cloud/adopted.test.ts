import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { silent } from '../../../operator/kube/log.ts';
import { awsClusters } from '../../../providers/aws/index.ts';
import { azureClusters } from '../../../providers/azure/index.ts';
import type { CloudContext, ManagedClusters, WantedCluster } from '../../../providers/cloud.ts';
import { gcpClusters } from '../../../providers/gcp/index.ts';
import type { StackRunner } from '../../../providers/pulumi/stack-runner.ts';
import type { Plugin } from '../../kit/cloud/client.ts';
import type { CloudName, WebEndpoints } from '../../kit/cloud/index.ts';
import { engineFor } from '../../kit/stacks/runner.ts';
import { awsGround, azureGround, cloudForFile, gcpGround, REGIONS, runnersForFile, T } from './testbed.ts';

const fake = cloudForFile();
const PATIENCE_MS = 10 * 60_000;
const NAME = 'theirs';

/** A cloud with a cluster that others made in it, which runs 1.35 and has one pool, `before`. */
interface Testbed {
  cloud: CloudName;
  cluster: string;
  pool: string;
  clusters(runner: StackRunner, web: WebEndpoints): ManagedClusters;
  build(plugin: Plugin): Promise<void>;
  zones: string[];
  machineType: string;
  /** As `spec.adopt.id` has it. */
  id: string;
  tags: { property: string; own: Record<string, string>; taken: string };
  /** Something that its makers chose, and how they change their mind. */
  theirs(inputs: Record<string, any>): unknown;
  change: (inputs: Record<string, any>) => void;
}

const SCENES: readonly Testbed[] = [
  {
    cloud: 'aws',
    cluster: T.cluster,
    pool: T.nodeGroup,
    clusters: (runner, web) => awsClusters(runner, web.aws),
    async build(plugin) {
      const ground = await awsGround(plugin, NAME, 9);
      const chosen = { enabledClusterLogTypes: ['audit'], tags: { team: 'shop' }, version: '1.35' };
      await plugin.create(T.cluster, NAME, { ...ground.cluster, ...chosen });
      await plugin.create(T.nodeGroup, NAME, ground.nodeGroup('before'));
    },
    zones: ['a', 'c'].map((letter) => `${REGIONS.aws}${letter}`),
    machineType: 'm7i.large',
    id: NAME,
    tags: { property: 'tags', own: { team: 'shop' }, taken: 'shop/blue' },
    theirs: ({ enabledClusterLogTypes, vpcConfig, roleArn }) => ({ enabledClusterLogTypes, vpcConfig, roleArn }),
    change: (inputs) => inputs.enabledClusterLogTypes.push('api'),
  },
  {
    cloud: 'gcp',
    cluster: T.gke,
    pool: T.nodePool,
    clusters: (runner, web) => gcpClusters(runner, web.gcp),
    async build(plugin) {
      const ground = await gcpGround(plugin, NAME);
      const chosen = {
        minMasterVersion: '1.35',
        resourceLabels: { team: 'shop' },
        loggingConfig: { enableComponents: ['APISERVER'] },
        deletionProtection: true,
      };
      await plugin.create(T.gke, NAME, { ...ground.cluster, ...chosen });
      const nodeConfig = { machineType: 'e2-medium' };
      await plugin.create(T.nodePool, NAME, {
        name: 'before',
        cluster: NAME,
        location: REGIONS.gcp,
        nodeCount: 1,
        nodeConfig,
      });
    },
    zones: ['a', 'c'].map((letter) => `${REGIONS.gcp}-${letter}`),
    machineType: 'e2-standard-4',
    id: NAME,
    tags: { property: 'resourceLabels', own: { team: 'shop' }, taken: 'shop__blue' },
    theirs: ({ loggingConfig, network, subnetwork }) => ({ loggingConfig, network, subnetwork }),
    change: (inputs) => inputs.loggingConfig.enableComponents.push('SCHEDULER'),
  },
  {
    cloud: 'azure-native',
    cluster: T.aks,
    pool: T.agentPool,
    clusters: (runner, web) => azureClusters(runner, web.azure),
    async build(plugin) {
      const ground = await azureGround(plugin, NAME);
      const chosen = {
        // No tags at all. Nobody is let in but by a role of Azure's.
        disableLocalAccounts: true,
        aadProfile: { managed: true, enableAzureRBAC: true },
      };
      await plugin.create(T.aks, NAME, { ...ground.cluster, ...chosen });
      await plugin.create(T.agentPool, NAME, ground.agentPool('before'));
    },
    zones: ['1', '3'],
    machineType: 'Standard_D8s_v5',
    id: `${NAME}/${NAME}`,
    tags: { property: 'tags', own: {}, taken: 'shop/blue' },
    theirs: ({ agentPoolProfiles, aadProfile, dnsPrefix }) => ({ agentPoolProfiles, aadProfile, dnsPrefix }),
    change(inputs) {
      inputs.agentPoolProfiles[0].count = 5;
    },
  },
];

const clusters = {} as Record<CloudName, ManagedClusters>;
const engineOf = (cloud: CloudName) => engineFor(cloud, 'managed');
const kept = runnersForFile(fake, engineOf, async (runners) => {
  const web = await fake.cloud.web();
  for (const testbed of SCENES) clusters[testbed.cloud] = testbed.clusters(runners[testbed.cloud], web);
});

const LIVES = SCENES.map((testbed) => [testbed.cloud, engineOf(testbed.cloud), testbed] as const);

describe.each(LIVES)('an adopted cluster at %s, by the %s engine', (_cloud, _engine, testbed) => {
  const region = REGIONS[testbed.cloud];
  const context = (uid: string): CloudContext => ({
    owner: { technicalID: `shop--${uid}`, uid, name: uid, namespace: 'shop', garden: 'garden-1' },
    account: fake.cloud.account(testbed.cloud),
    region,
    profile: { metadata: { name: testbed.cloud }, spec: {} } as unknown as CloudProfile,
    state: { url: pathToFileURL(kept.dir).href, passphrase: 'a phrase for tests', env: {} },
    log: silent,
    signal: new AbortController().signal,
    now: () => new Date(),
  });
  const wanted = (deletionPolicy: 'Release' | 'Delete', more: Partial<WantedCluster> = {}): WantedCluster => ({
    region,
    zones: testbed.zones,
    kubernetesVersion: '',
    cidrs: { nodes: '10.0.0.0/16', pods: '10.64.0.0/14', services: '10.128.0.0/20' },
    pools: [],
    authorizedNetworks: [],
    adopt: { id: testbed.id, deletionPolicy },
    ...more,
  });
  const pool: WantedCluster['pools'][number] = {
    name: 'ours',
    machineType: testbed.machineType,
    minimum: 1,
    maximum: 1,
    desired: 1,
    spot: false,
    gpu: 0,
    architecture: 'amd64',
    labels: {},
    taints: [],
    zones: testbed.zones,
  };
  const all = () => fake.cloud.resources({ account: fake.cloud.account(testbed.cloud).id });
  const ids = () => all().map(({ id }) => id);
  const theirs = () => fake.cloud.resource(testbed.cluster, NAME);
  const pools = () => {
    const names = fake.cloud.resources({ type: testbed.pool }).map(({ name }) => name);
    return [...new Set(names.map((name) => (name.startsWith('ours') ? 'ours' : name)))].sort();
  };
  const at = () => clusters[testbed.cloud];

  it('is adopted unchanged, grows, is upgraded, and is released as it was', { timeout: PATIENCE_MS }, async () => {
    await testbed.build(await fake.plugin(testbed.cloud));
    const before = ids();
    const { createdAt, inputs } = theirs();
    const chosen = structuredClone(testbed.theirs(inputs));
    const ctx = context('blue');

    // Nothing of theirs is to be changed but tags.
    const changes = await at().preview(ctx, wanted('Release'));
    expect(changes.filter(({ resource }) => resource.endsWith(' adopted'))).toEqual([
      {
        operation: 'update',
        resource: `${testbed.cluster} adopted`,
        properties: expect.toSatisfy((names: string[]) =>
          names.every((name) => name.split(/[.[]/)[0] === testbed.tags.property),
        ),
      },
    ]);
    expect(ids()).toEqual(before);
    expect(fake.cloud.tags(theirs())).toEqual(testbed.tags.own);

    const ours = wanted('Release', { pools: [pool] });
    const made = await at().apply(ctx, ours);
    expect(made.name).toBe(NAME);
    expect(made.version).toMatch(/^1\.35/);
    expect(made.endpoint).toMatch(/^https:\/\/./);
    expect(made.certificateAuthority).toContain('BEGIN CERTIFICATE');
    const access = await at().kubeconfig(ctx, made);
    expect(access.kubeconfig).toContain(made.endpoint);
    expect(theirs().createdAt).toBe(createdAt);
    expect(testbed.theirs(theirs().inputs)).toEqual(chosen);
    expect(fake.cloud.tags(theirs())).toMatchObject({ ...testbed.tags.own, 'coppice-adopted-as': testbed.tags.taken });
    // The sweep must never see it as something that we made.
    expect(fake.cloud.tags(theirs())).not.toHaveProperty('coppice-uid');
    const tagged = await at().tagged!(ctx);
    expect(tagged.map(({ id }) => id)).not.toContain(theirs().id);
    expect(pools()).toEqual(['before', 'ours']);
    expect(await at().drift(ctx, ours)).toEqual([]);

    await expect(at().apply(context('red'), wanted('Release'))).rejects.toMatchObject({
      code: 'ERR_CONFIGURATION_PROBLEM',
      message: expect.stringContaining('cannot be taken over: it was taken over for WorkerCluster shop/blue'),
    });
    await at().destroy(context('red'), wanted('Delete'));
    await expect(at().apply(ctx, wanted('Release', { kubernetesVersion: '1.33' }))).rejects.toThrow(
      /it runs Kubernetes 1\.35.*, and 1\.33 is older/,
    );

    // Its makers go on with it; an upgrade of ours must not take that back.
    await fake.cloud.edit(testbed.cluster, NAME, testbed.change);
    const changed = structuredClone(testbed.theirs(theirs().inputs));
    expect(changed).not.toEqual(chosen);
    const upgraded = await at().apply(ctx, { ...ours, kubernetesVersion: '1.36' });
    expect(upgraded.version).toMatch(/^1\.36/);
    expect(theirs().createdAt).toBe(createdAt);
    expect(testbed.theirs(theirs().inputs)).toEqual(changed);

    await at().apply(ctx, wanted('Release', { kubernetesVersion: '1.36' }));
    expect(pools()).toEqual(['before']);
    await at().apply(ctx, { ...ours, kubernetesVersion: '1.36' });

    await at().destroy(ctx, ours);
    expect(ids()).toEqual(before);
    expect(theirs().createdAt).toBe(createdAt);
    expect(fake.cloud.tags(theirs())).toEqual(testbed.tags.own);
    expect(testbed.theirs(theirs().inputs)).toEqual(changed);
  });

  it("is deleted only on the user's request", { timeout: PATIENCE_MS }, async () => {
    await fake.cloud.remove(testbed.pool, 'before');
    const ctx = context('green');
    await at().apply(ctx, wanted('Release'));
    // Said only now, and not applied any more.
    await at().destroy(ctx, wanted('Delete'));
    expect(fake.cloud.resources({ type: testbed.cluster })).toEqual([]);
    expect(fake.cloud.resources({ tags: { 'coppice-uid': 'green' } })).toEqual([]);
  });
});
