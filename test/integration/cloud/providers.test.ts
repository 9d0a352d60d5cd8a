import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { silent } from '../../../operator/kube/log.ts';
import { aws } from '../../../providers/aws/index.ts';
import { azure } from '../../../providers/azure/index.ts';
import type { CloudContext, CloudPool, ManagedCluster, ManagedClusters, Owner } from '../../../providers/cloud.ts';
import { gcp } from '../../../providers/gcp/index.ts';
import { PulumiRunner } from '../../../providers/pulumi/runner.ts';
import type { CloudName } from '../../kit/cloud/index.ts';
import { testTools } from '../../kit/tools.ts';
import { cloudForFile, REGIONS } from './scenery.ts';

const fake = cloudForFile();
/** Engine runs, a dozen for a cloud, on two busy cores. */
const PATIENCE_MS = 15 * 60_000;

let dir: string;
let runner: PulumiRunner;
let managed: Record<CloudName, ManagedClusters>;

beforeAll(async () => {
  const { pulumi } = await testTools('pulumi');
  dir = await mkdtemp(join(tmpdir(), 'coppice-providers-'));
  runner = new PulumiRunner({
    engine: async () => pulumi,
    home: join(dir, 'home'),
    log: silent,
    acquirePlugins: false,
    plugins: fake.cloud.pluginFolders,
  });
  const web = await fake.cloud.web();
  managed = { aws: aws(runner, web.aws), gcp: gcp(runner, web.gcp), 'azure-native': azure(runner, web.azure) };
}, 30 * 60_000);
afterAll(async () => {
  await runner?.close(5_000);
  if (dir) await rm(dir, { recursive: true, force: true });
});

const pool = (machineType: string, more: Partial<CloudPool> = {}): CloudPool => ({
  name: 'workers',
  machineType,
  minimum: 1,
  maximum: 3,
  desired: 1,
  spot: false,
  gpu: 0,
  architecture: 'amd64',
  labels: { team: 'shop' },
  taints: [],
  zones: [],
  ...more,
});

const CLOUDS: [name: CloudName, zones: string[], machineType: string, cluster: string, pool: string][] = [
  ['aws', [`${REGIONS.aws}a`, `${REGIONS.aws}b`], 'm7i.large', 'aws:eks:Cluster', 'aws:eks:NodeGroup'],
  ['gcp', [`${REGIONS.gcp}-a`, `${REGIONS.gcp}-b`], 'e2-standard-4', 'gcp:container:Cluster', 'gcp:container:NodePool'],
  [
    'azure-native',
    ['1', '2'],
    'Standard_D4s_v5',
    'azure-native:containerservice:ManagedCluster',
    'azure-native:containerservice:AgentPool',
  ],
];

describe.each(CLOUDS)(
  'our provider in the real engine, against the fake %s',
  (name, zones, machineType, cluster, node) => {
    const region = REGIONS[name];
    const owner: Owner = { technicalID: `shop--${name}`, uid: `6d0b7c1e-${name}`, name: 'blue', namespace: 'shop' };
    const profile = { metadata: { name }, spec: {} } as unknown as CloudProfile;
    const state = () => join(dir, `state-${name}`);

    const wanted: ManagedCluster = {
      region,
      zones,
      kubernetesVersion: '1.35',
      cidrs: { nodes: '10.0.0.0/16', pods: '10.64.0.0/14', services: '10.128.0.0/20' },
      pools: [pool(machineType)],
      authorizedNetworks: [],
    };

    function context(): CloudContext {
      const account = fake.cloud.account(name);
      return {
        owner,
        account,
        region,
        profile,
        state: { url: pathToFileURL(state()).href, passphrase: 'a phrase for tests', env: {} },
        log: silent,
        signal: new AbortController().signal,
        now: () => new Date(),
      };
    }

    const count = (type?: string) =>
      fake.cloud.resources({ account: fake.cloud.account(name).id, ...(type !== undefined && { type }) }).length;

    it('makes a cluster, scales, upgrades and mends it, finds it again without its state, and takes all of it away', {
      timeout: PATIENCE_MS,
    }, async () => {
      const clusters = managed[name];
      const ctx = context();
      await mkdir(state());
      expect(await clusters.checkAccount(ctx)).toEqual({ id: ctx.account.id, missing: [] });

      const made = await clusters.apply(ctx, wanted);
      expect(made.endpoint).toMatch(/^https:\/\/./);
      expect(made.certificateAuthority).toMatch(/^-----BEGIN CERTIFICATE-----/);
      expect(made.version).toMatch(/^1\.35/);
      expect((await clusters.kubeconfig(ctx, made)).kubeconfig).toContain(made.endpoint);
      expect(await clusters.drift(ctx, wanted)).toEqual([]);
      const updates = async () => (await readdir(join(state(), '.pulumi/history'), { recursive: true })).sort();
      const before = await updates();
      expect(await clusters.apply(ctx, wanted)).toEqual(made);
      expect(await updates(), 'of what is as it should be').toEqual(before);

      const larger: ManagedCluster = {
        ...wanted,
        kubernetesVersion: '1.36',
        pools: [pool(machineType, { desired: 2 }), pool(machineType, { name: 'more', spot: true })],
      };
      expect((await clusters.apply(ctx, larger)).version).toMatch(/^1\.36/);
      expect(count(cluster)).toBe(1);
      const whole = count();

      const { id } = fake.cloud.resources({ type: node })[0]!;
      await fake.cloud.remove(node, id);
      expect(await clusters.drift(ctx, larger)).not.toEqual([]);
      await clusters.apply({ ...ctx, refresh: true }, larger);
      expect(count()).toBe(whole);

      await rm(state(), { recursive: true });
      await mkdir(state());
      await clusters.apply(ctx, larger);
      expect(count(), 'of resources, after the state was lost').toBe(whole);
      expect(await clusters.drift(ctx, larger)).toEqual([]);
      const tagged = (await clusters.tagged?.(ctx)) ?? [];
      expect(tagged.filter(({ owner: { uid } }) => uid === owner.uid).length).toBeGreaterThan(2);

      await clusters.destroy(ctx, larger);
      expect(fake.cloud.resources({ account: ctx.account.id }).map((one) => one.id)).toEqual([]);
      expect(await clusters.tagged?.(ctx)).toEqual([]);
    });
  },
);
