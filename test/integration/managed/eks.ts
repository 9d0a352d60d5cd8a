import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { silent } from '../../../operator/kube/log.ts';
import { awsClusters } from '../../../providers/aws/index.ts';
import { PulumiRunner } from '../../../providers/pulumi/runner.ts';
import { type Account, type FakeCloud, fakeCloud } from '../../kit/cloud/index.ts';
import { ManagedGarden, ManagedOperator, memoryProfile } from '../../kit/managed-garden.ts';
import { testTools } from '../../kit/tools.ts';

export const REGION = 'eu-central-1';

const profile: CloudProfile = {
  ...memoryProfile,
  metadata: { name: 'aws', uid: 'a', resourceVersion: '1' },
  spec: {
    ...memoryProfile.spec,
    type: 'aws',
    kubernetes: { versions: [{ version: '1.35.4', classification: 'supported' }] },
    machineTypes: ['m7i.large', 'm6i.large'].map((name) => ({ name, cpu: 2, gpu: 0, memory: '8Gi' })),
    regions: [{ name: REGION, zones: [{ name: `${REGION}a` }, { name: `${REGION}b` }] }],
    defaults: { mode: 'Managed', region: REGION, pods: '10.64.0.0/14', services: '10.128.0.0/20' },
  },
};

/** Managed clusters as the operator's controllers make them, by the real provider in the real engine, in the fake EKS. */
export interface EksTestbed {
  cloud: FakeCloud;
  account: Account;
  garden: ManagedGarden;
  /** Where state is kept, if the test does not say otherwise. */
  stateURL: string;
  /** An operator that is stopped at the end of the test. */
  operator(): Promise<ManagedOperator>;
  /** How many of a type the account has. */
  readonly count: (type: string) => number;
}

/** One cloud and one garden for a file of tests. */
export function eksForFile(): EksTestbed {
  const testbed = { garden: new ManagedGarden() } as EksTestbed;
  let dir: string;
  let runner: PulumiRunner;
  beforeAll(async () => {
    const { pulumi } = await testTools('pulumi');
    dir = await mkdtemp(join(tmpdir(), 'coppice-eks-'));
    await mkdir(join(dir, 'state'));
    const cloud = await fakeCloud({ dir: join(dir, 'cloud') });
    runner = new PulumiRunner({
      engine: async () => pulumi,
      home: join(dir, 'home'),
      log: silent,
      acquirePlugins: false,
      plugins: cloud.pluginFolders,
    });
    const account = cloud.account('aws');
    const { garden } = testbed;
    Object.assign(testbed, {
      cloud,
      account,
      stateURL: pathToFileURL(join(dir, 'state')).href,
      async operator() {
        const web = await cloud.web();
        const operator = new ManagedOperator(garden, { managed: () => awsClusters(runner, web.aws) }, 'one', '1', {
          aws: profile,
        });
        onTestFinished(() => operator.stop());
        return operator;
      },
      count: (type) => cloud.resources({ account: account.id, type }).length,
    } satisfies Partial<EksTestbed>);
    garden.stateURL = testbed.stateURL;
    garden.credentials('cloud', { ...account.credentials });
  }, 30 * 60_000);
  afterAll(async () => {
    await runner?.close(5_000);
    await testbed.cloud?.close();
    if (dir) await rm(dir, { recursive: true, force: true });
  });
  return testbed;
}
