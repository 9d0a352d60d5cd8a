import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { silent } from '../../../operator/kube/log.ts';
import { awsProvider } from '../../../providers/aws/index.ts';
import { azureProvider } from '../../../providers/azure/index.ts';
import type { CloudContext } from '../../../providers/cloud.ts';
import type { Provider, ProviderContext } from '../../../providers/contract.ts';
import { gcpProvider } from '../../../providers/gcp/index.ts';
import type { CloudName } from '../../kit/cloud/index.ts';
import { context, FakeCluster, pool } from '../../unit/providers/fixtures.ts';
import { cloudForFile, REGIONS, runnerForFile } from './scenery.ts';

const fake = cloudForFile();
/** Engine runs, half a dozen for a cloud, on two busy cores. */
const PATIENCE_MS = 15 * 60_000;

let providers: Record<CloudName, Provider>;
const kept = runnerForFile(fake, async (runner) => {
  const web = await fake.cloud.web();
  providers = {
    aws: awsProvider(runner, web.aws),
    gcp: gcpProvider(runner, web.gcp),
    'azure-native': azureProvider(runner, web.azure),
  };
});

/** Type of the group, where its size is, and of what says how its machines are made. */
const CLOUDS: [name: CloudName, zones: string[], group: string, template: string][] = [
  ['aws', [`${REGIONS.aws}a`, `${REGIONS.aws}b`], 'aws:autoscaling:Group', 'aws:ec2:LaunchTemplate'],
  [
    'gcp',
    [`${REGIONS.gcp}-a`, `${REGIONS.gcp}-b`],
    'gcp:compute:RegionInstanceGroupManager',
    'gcp:compute:InstanceTemplate',
  ],
  [
    'azure-native',
    ['1', '2'],
    'azure-native:compute:VirtualMachineScaleSet',
    'azure-native:compute:VirtualMachineScaleSet',
  ],
];

const decoded = (text: string): string => Buffer.from(text, 'base64').toString();

/** All texts in a value. */
const texts = (value: unknown): string[] => {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(texts) : [];
};

describe.each(CLOUDS)(
  'machines for a hosted control plane, by the real engine in the fake %s',
  (name, zones, group, template) => {
    const region = REGIONS[name];
    const profile = {
      metadata: { name },
      spec: {
        regions: [{ name: region, zones: zones.map((zone) => ({ name: zone })) }],
        machineTypes: [{ name: 'm', cpu: 2, gpu: 0, memory: '8Gi' }],
      },
    } as unknown as CloudProfile;
    const owner = { technicalID: 'shoot--team--one', uid: `0b3c-${name}`, name: 'one', namespace: 'team', garden: 'g' };
    const seed = new FakeCluster();
    let token = 'first';

    const account = (): CloudContext => ({
      owner,
      account: fake.cloud.account(name),
      region,
      profile,
      state: { url: pathToFileURL(join(kept.dir, `state-${name}`)).href, passphrase: 'a phrase for tests', env: {} },
      log: silent,
      signal: new AbortController().signal,
      now: () => new Date(),
    });
    const ctx = (): ProviderContext =>
      context({
        seed: seed.client,
        uid: owner.uid,
        region,
        profile,
        nodeCIDR: '10.250.0.0/16',
        apiserverURL: 'https://203.0.113.10:6443',
        bootstrapKubeconfig: async () => `token: ${token}\n`,
        cloud: async () => account(),
      });
    const wanted = (count: number) => [pool({ count, zones, spot: true })];

    it('come, grow, go one by one as they are named, and leave nothing', { timeout: PATIENCE_MS }, async () => {
      const provider = providers[name];
      await mkdir(join(kept.dir, `state-${name}`));
      await provider.reconcilePools!(ctx(), wanted(3));
      const three = await provider.listMachines(ctx());
      expect(three.map((one) => [one.pool, one.phase, one.address?.startsWith('10.250.')])).toEqual(
        Array.from({ length: 3 }, () => ['workers', 'Running', true]),
      );
      expect(new Set(three.map(({ nodeName }) => nodeName)).size).toBe(3);

      const begun =
        fake.cloud.requests({ operation: 'update' }).length + fake.cloud.requests({ operation: 'create' }).length;
      await provider.reconcilePools!(ctx(), wanted(3));
      expect(
        fake.cloud.requests({ operation: 'update' }).length + fake.cloud.requests({ operation: 'create' }).length,
        'of changes when nothing was to be changed',
      ).toBe(begun);

      // A new token is for machines to come: those that are there stay.
      token = 'second';
      await provider.reconcilePools!(ctx(), wanted(3));
      const told = fake.cloud.resources({ type: template }).flatMap(({ inputs }) => texts(inputs));
      expect(told.some((text) => [text, decoded(text)].some((one) => one.includes('token: second')))).toBe(true);
      const names = three.map((one) => one.name).sort();
      expect((await provider.listMachines(ctx())).map((one) => one.name).sort()).toEqual(names);

      // Fewer are wanted: nobody goes before the caller has named who, and nobody comes in its place.
      await provider.reconcilePools!(ctx(), wanted(2));
      expect(await provider.listMachines(ctx())).toHaveLength(3);
      const victim = three[1]!;
      await provider.removeMachines(ctx(), 'workers', [victim.name], 2);
      await provider.removeMachines(ctx(), 'workers', [victim.name], 2);
      await provider.reconcilePools!(ctx(), wanted(2));
      const two = await provider.listMachines(ctx());
      expect(
        two
          .filter(({ phase }) => phase !== 'Terminating')
          .map((one) => one.name)
          .sort(),
      ).toEqual(names.filter((one) => one !== victim.name));
      expect(fake.cloud.resources({ type: group })).toHaveLength(1);

      await provider.deleteAll(ctx());
      expect(fake.cloud.resources({ account: account().account.id }).map((one) => one.id)).toEqual([]);
      expect([...seed.objects.keys()]).toEqual([]);
      await provider.deleteAll(ctx());
    });
  },
);
