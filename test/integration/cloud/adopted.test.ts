import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { silent } from '../../../operator/kube/log.ts';
import { aws } from '../../../providers/aws/index.ts';
import type { CloudContext, ManagedCluster, ManagedClusters } from '../../../providers/cloud.ts';
import { awsGround, cloudForFile, REGIONS, runnerForFile, T } from './scenery.ts';

const fake = cloudForFile();
const PATIENCE_MS = 10 * 60_000;
const NAME = 'theirs';

let clusters: ManagedClusters;
const kept = runnerForFile(fake, async (runner) => {
  clusters = aws(runner, (await fake.cloud.web()).aws);
});

const context = (uid: string): CloudContext => ({
  owner: { technicalID: `shop--${uid}`, uid, name: uid, namespace: 'shop', garden: 'garden-1' },
  account: fake.cloud.account('aws'),
  region: REGIONS.aws,
  profile: { metadata: { name: 'aws' }, spec: {} } as unknown as CloudProfile,
  state: { url: pathToFileURL(kept.dir).href, passphrase: 'a phrase for tests', env: {} },
  log: silent,
  signal: new AbortController().signal,
  now: () => new Date(),
});

const wanted = (deletionPolicy: 'Release' | 'Delete', more: Partial<ManagedCluster> = {}): ManagedCluster => ({
  region: REGIONS.aws,
  zones: [`${REGIONS.aws}a`, `${REGIONS.aws}b`],
  kubernetesVersion: '',
  cidrs: { nodes: '10.0.0.0/16', pods: '10.64.0.0/14', services: '10.128.0.0/20' },
  pools: [],
  authorizedNetworks: [],
  adopt: { id: NAME, deletionPolicy },
  ...more,
});

const POOL: ManagedCluster['pools'][number] = {
  name: 'ours',
  machineType: 'm7i.large',
  minimum: 1,
  maximum: 1,
  desired: 1,
  spot: false,
  gpu: 0,
  architecture: 'amd64',
  labels: {},
  taints: [],
  zones: [`${REGIONS.aws}a`, `${REGIONS.aws}c`],
};

describe('an EKS cluster that others made, in the real engine', () => {
  it('is taken over as it is, grows and is upgraded, and is released as it was', { timeout: PATIENCE_MS }, async () => {
    const plugin = await fake.plugin('aws');
    const ground = await awsGround(plugin, NAME, 9);
    const logging = { enabledClusterLogTypes: ['audit'], tags: { team: 'shop' }, version: '1.35' };
    await plugin.create(T.cluster, 'theirs', { ...ground.cluster, ...logging });
    await plugin.create(T.nodeGroup, 'theirs', ground.nodeGroup('before'));
    const before = fake.cloud.resources().map(({ id }) => id);
    const { createdAt, inputs } = fake.cloud.resource(T.cluster, NAME);
    const ctx = context('blue');

    // Nothing of theirs is to be changed but tags.
    const changes = await clusters.preview(ctx, wanted('Release'));
    const ofCluster = changes.filter(({ resource }) => resource.includes('eks/cluster:Cluster'));
    expect(ofCluster).toEqual([
      {
        operation: 'update',
        resource: 'aws:eks/cluster:Cluster adopted',
        properties: [expect.stringMatching(/^tags/)],
      },
    ]);
    expect(fake.cloud.resources().map(({ id }) => id)).toEqual(before);
    expect(fake.cloud.tags(fake.cloud.resource(T.cluster, NAME))).toEqual({ team: 'shop' });

    const made = await clusters.apply(ctx, wanted('Release', { pools: [POOL] }));
    expect(made).toMatchObject({ name: NAME, version: '1.35' });
    expect(made.endpoint).toMatch(/^https:\/\//);
    const taken = fake.cloud.resource(T.cluster, NAME);
    expect(taken.createdAt).toBe(createdAt);
    expect(taken.inputs.enabledClusterLogTypes).toEqual(['audit']);
    expect(fake.cloud.tags(taken)).toMatchObject({ team: 'shop', 'coppice-adopted-as': 'shop/blue' });
    // The sweep must never see it as something that we made.
    expect(fake.cloud.tags(taken)).not.toHaveProperty('coppice-uid');
    const groups = fake.cloud.resources({ type: T.nodeGroup }).filter(({ inputs: one }) => one.clusterName === NAME);
    expect(groups.map(({ name }) => name.split('-')[0]).sort()).toEqual(['before', 'ours']);
    expect(await clusters.drift(ctx, wanted('Release', { pools: [POOL] }))).toEqual([]);

    await expect(clusters.apply(context('red'), wanted('Release'))).rejects.toThrow(
      'cannot be taken over: it was taken over for WorkerCluster shop/blue',
    );
    await clusters.destroy(context('red'), wanted('Delete'));
    await expect(clusters.apply(ctx, wanted('Release', { kubernetesVersion: '1.33' }))).rejects.toThrow(
      'it runs Kubernetes 1.35, and 1.33 is older',
    );

    const upgraded = await clusters.apply(ctx, wanted('Release', { kubernetesVersion: '1.36', pools: [POOL] }));
    expect(upgraded.version).toBe('1.36');
    expect(fake.cloud.resource(T.cluster, NAME).createdAt).toBe(createdAt);

    await clusters.destroy(ctx, wanted('Release', { pools: [POOL] }));
    expect(fake.cloud.resources().map(({ id }) => id)).toEqual(before);
    const released = fake.cloud.resource(T.cluster, NAME);
    expect(released.createdAt).toBe(createdAt);
    expect(fake.cloud.tags(released)).toEqual({ team: 'shop' });
    expect(released.inputs.vpcConfig).toEqual(inputs.vpcConfig);
  });

  it('is deleted only where the user says so', { timeout: PATIENCE_MS }, async () => {
    await fake.cloud.remove(T.nodeGroup, 'theirs:before');
    const ctx = context('green');
    await clusters.apply(ctx, wanted('Release'));
    // Said only now, and not applied any more.
    await clusters.destroy(ctx, wanted('Delete'));
    expect(fake.cloud.resources({ type: T.cluster })).toEqual([]);
    expect(fake.cloud.resources({ tags: { 'coppice-uid': 'green' } })).toEqual([]);
  });
});
