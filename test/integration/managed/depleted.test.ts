import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { silent } from '../../../operator/kube/log.ts';
import { aws } from '../../../providers/aws/index.ts';
import { PulumiRunner } from '../../../providers/pulumi/runner.ts';
import { type FakeCloud, fakeCloud } from '../../kit/cloud/index.ts';
import { ManagedGarden, ManagedOperator, memoryProfile } from '../../kit/managed-garden.ts';
import { testTools } from '../../kit/tools.ts';

/** Half a dozen engine runs on two busy cores. */
const PATIENCE_MS = 10 * 60_000;
const REGION = 'eu-central-1';
const T = { cluster: 'aws:eks:Cluster', nodeGroup: 'aws:eks:NodeGroup', network: 'aws:ec2:Vpc' };

const profile: CloudProfile = {
  ...memoryProfile,
  metadata: { name: 'aws', uid: 'a', resourceVersion: '1' },
  spec: {
    ...memoryProfile.spec,
    type: 'aws',
    kubernetes: { versions: [{ version: '1.35.4', classification: 'supported' }] },
    machineTypes: ['m7i.large', 'm6i.large'].map((name) => ({ name, cpu: 2, gpu: 0, memory: '8Gi' })),
    regions: [{ name: REGION, zones: [{ name: `${REGION}a` }, { name: `${REGION}b` }] }],
    defaults: {
      mode: 'Managed',
      region: REGION,
      pods: '10.64.0.0/14',
      services: '10.128.0.0/20',
    },
  },
};

let dir: string;
let cloud: FakeCloud;
let runner: PulumiRunner;

beforeAll(async () => {
  const { pulumi } = await testTools('pulumi');
  dir = await mkdtemp(join(tmpdir(), 'coppice-depleted-'));
  await mkdir(join(dir, 'state'));
  cloud = await fakeCloud({ dir: join(dir, 'cloud') });
  runner = new PulumiRunner({
    engine: async () => pulumi,
    home: join(dir, 'home'),
    log: silent,
    acquirePlugins: false,
    plugins: cloud.pluginFolders,
  });
}, 30 * 60_000);
afterAll(async () => {
  await runner?.close(5_000);
  await cloud?.close();
  if (dir) await rm(dir, { recursive: true, force: true });
});

it('EKS has no machines left of one type: the cluster has those of the next, and nothing twice', {
  timeout: PATIENCE_MS,
}, async () => {
  const account = cloud.account('aws');
  const web = await cloud.web();
  const garden = new ManagedGarden();
  garden.stateURL = pathToFileURL(join(dir, 'state')).href;
  garden.credentials('cloud', { ...account.credentials });
  cloud.faults.set({ depleted: [{ machineType: 'm7i.large' }] });
  const operator = new ManagedOperator(garden, { managed: () => aws(runner, web.aws) }, 'one', '1', { aws: profile });
  const resources = (type: string) => cloud.resources({ account: account.id, type });
  const condition = (type: string) => garden.condition(key, type);

  const key = garden.apply('one', { cloudProvider: 'aws', machineTypes: ['m7i.large', 'm6i.large'] });
  operator.look(key);
  try {
    await expect
      .poll(() => condition('InfrastructureReady')?.status, { timeout: PATIENCE_MS, interval: 200 })
      .toBe('True');
    expect(condition('CapacityAvailable')).toMatchObject({
      status: 'True',
      reason: 'Alternative',
      codes: ['ERR_INFRA_RESOURCES_DEPLETED'],
    });
    expect(condition('CapacityAvailable')?.message).toContain(`sold out: m7i.large in ${REGION}a, ${REGION}b of aws`);
    expect(garden.events.filter((event) => event.startsWith('Warning CapacityDepleted'))).toEqual([
      expect.stringContaining('InsufficientInstanceCapacity'),
    ]);
    expect(
      resources(T.nodeGroup).map(({ inputs }) => [inputs.instanceTypes, inputs.scalingConfig.desiredSize]),
    ).toEqual([[['m6i.large'], 2]]);
    expect([T.cluster, T.network].map((type) => resources(type).length)).toEqual([1, 1]);
    garden.delete(key);
    operator.look(key);
    await expect.poll(() => garden.clusters.has(key), { timeout: PATIENCE_MS, interval: 200 }).toBe(false);
    expect(cloud.resources({ account: account.id }).map(({ id }) => id)).toEqual([]);
  } finally {
    await operator.stop();
  }
});
