import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { silent } from '../../../operator/kube/log.ts';
import { awsProvider } from '../../../providers/aws/index.ts';
import { azureProvider } from '../../../providers/azure/index.ts';
import type { Change, CloudContext } from '../../../providers/cloud.ts';
import type { Provider, ProviderContext } from '../../../providers/contract.ts';
import { gcpProvider } from '../../../providers/gcp/index.ts';
import type { CloudName } from '../../kit/cloud/index.ts';
import { roll } from '../../kit/rolling-shoot.ts';
import { engineFor } from '../../kit/stacks/runner.ts';
import { context, FakeCluster, pool } from '../../unit/providers/fixtures.ts';
import { byName, cloudForFile, REGIONS, runnersForFile } from './testbed.ts';

const fake = cloudForFile();
/** Engine runs, half a dozen for a cloud, on two busy cores. */
const PATIENCE_MS = 15 * 60_000;

/** An operator that knows nothing yet. */
let started: (name: CloudName) => Provider;
const engineOf = (cloud: CloudName) => engineFor(cloud, 'machines');
const kept = runnersForFile(fake, engineOf, async (runners) => {
  const web = await fake.cloud.web();
  const providers = {
    aws: () => awsProvider(runners.aws, web.aws),
    gcp: () => gcpProvider(runners.gcp, web.gcp),
    'azure-native': () => azureProvider(runners['azure-native'], web.azure),
  };
  started = (name) => providers[name]();
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

/** What somebody opens to all the world, and what makes a group larger; with how the engine calls these. */
const BY_HAND: Record<CloudName, { wall: string; open: Edit; found: Change; resize: Edit; resized: Change }> = {
  aws: {
    wall: 'aws:ec2:SecurityGroup',
    open: (inputs) => {
      const ssh = { protocol: 'tcp', fromPort: 22, toPort: 22, cidrBlocks: ['0.0.0.0/0'], description: 'for a moment' };
      inputs.ingress = [...(inputs.ingress as object[]), ssh];
    },
    found: { operation: 'update', resource: 'aws:ec2/securityGroup:SecurityGroup machines', properties: ['ingress'] },
    resize: (inputs) => Object.assign(inputs, { desiredCapacity: 3, maxSize: 3 }),
    resized: {
      operation: 'update',
      resource: 'aws:autoscaling/group:Group pool-workers',
      properties: ['desiredCapacity', 'maxSize'],
    },
  },
  gcp: {
    wall: 'gcp:compute:Firewall',
    open: (inputs) => {
      inputs.sourceRanges = ['0.0.0.0/0'];
    },
    found: {
      operation: 'update',
      resource: 'gcp:compute/firewall:Firewall among-machines',
      properties: ['sourceRanges'],
    },
    resize: (inputs) => {
      inputs.targetSize = 3;
    },
    resized: {
      operation: 'update',
      resource: 'gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager pool-workers',
      properties: ['targetSize'],
    },
  },
  'azure-native': {
    wall: 'azure-native:network:NetworkSecurityGroup',
    open: (inputs) => {
      const to = { destinationAddressPrefix: '*', destinationPortRange: '22', sourcePortRange: '*' };
      const ssh = { name: 'ssh', access: 'Allow', direction: 'Inbound', priority: 100, protocol: 'Tcp', ...to };
      inputs.securityRules = [{ ...ssh, sourceAddressPrefix: '*' }];
    },
    found: {
      operation: 'update',
      resource: 'azure-native:network:NetworkSecurityGroup machines',
      properties: ['securityRules'],
    },
    resize: (inputs) => {
      inputs.sku = { ...(inputs.sku as object), capacity: 3 };
    },
    resized: {
      operation: 'update',
      resource: 'azure-native:compute:VirtualMachineScaleSet pool-workers',
      properties: ['sku'],
    },
  },
};

type Edit = (inputs: Record<string, unknown>) => void;

const decoded = (text: string): string => Buffer.from(text, 'base64').toString();

/** All texts in a value. */
const texts = (value: unknown): string[] => {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(texts) : [];
};

describe.each(CLOUDS.map(([name, ...kinds]) => [engineOf(name), name, ...kinds] as const))(
  'machines for a hosted control plane, by the %s engine in the fake %s',
  (_, name, zones, group, template) => {
    const region = REGIONS[name];
    const profile = {
      metadata: { name },
      spec: {
        regions: [{ name: region, zones: zones.map((zone) => ({ name: zone })) }],
        machineTypes: [{ name: 'm', cpu: 2, gpu: 0, memory: '8Gi' }],
      },
    } as unknown as CloudProfile;
    const owner = { technicalID: 'shoot--team--one', uid: `0b3c-${name}`, name: 'one', namespace: 'team', garden: 'g' };
    const [seed, shoot] = [new FakeCluster(), new FakeCluster()];
    let token = 'first';
    let version = '1.36.1';

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
        shoot: shoot.client,
        kubernetesVersion: version,
        uid: owner.uid,
        region,
        profile,
        nodeCIDR: '10.250.0.0/16',
        apiserverURL: 'https://203.0.113.10:6443',
        bootstrapKubeconfig: async () => `token: ${token}\n`,
        cloud: async () => account(),
      });
    const wanted = (count: number) => [pool({ count, zones, spot: true, maxSurge: 1 })];
    const alive = async (provider: Provider) =>
      (await provider.listMachines(ctx())).filter(({ phase }) => phase !== 'Terminating');

    it('are created, grow, are replaced, are removed by name, and leave nothing', {
      timeout: PATIENCE_MS,
    }, async () => {
      const provider = started(name);
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
      expect((await alive(provider)).map((one) => one.name).sort()).toEqual(names);
      expect((await provider.listMachines(ctx())).filter(({ outdated }) => outdated)).toEqual([]);

      // Fewer are wanted: nobody goes before the caller has named who, and nobody comes in its place.
      await provider.reconcilePools!(ctx(), wanted(2));
      expect(await provider.listMachines(ctx())).toHaveLength(3);
      const victim = three[1]!;
      await provider.removeMachines(ctx(), 'workers', [victim.name], 2);
      await provider.removeMachines(ctx(), 'workers', [victim.name], 2);
      // Somebody opens the machines to all the world; what was ended and told is nobody's but ours.
      const { wall: type, open, found, resize, resized } = BY_HAND[name];
      const wall = fake.cloud.resources({ type }).find((one) => one.name.includes('machines'))!;
      await fake.cloud.edit(type, wall.id, open);
      expect(await provider.drift!(ctx())).toEqual([found]);
      await provider.reconcilePools!(ctx(), wanted(2));
      const two = await provider.listMachines(ctx());
      expect(
        two
          .filter(({ phase }) => phase !== 'Terminating')
          .map((one) => one.name)
          .sort(),
      ).toEqual(names.filter((one) => one !== victim.name));
      expect(fake.cloud.resources({ type: group })).toHaveLength(1);

      // Somebody makes the group larger, too. The wall is closed again; of the machines none goes before it is named.
      await fake.cloud.edit(group, fake.cloud.resource(group).id, resize);
      expect(byName(await provider.drift!(ctx()))).toEqual(byName([found, resized]));
      await provider.reconcilePools!({ ...ctx(), mend: true }, wanted(2));
      expect(fake.cloud.resource(type, wall.id).inputs).toEqual(wall.inputs);
      const larger = (await alive(provider)).map((one) => one.name);
      expect(larger).toHaveLength(3);
      const extra = larger.filter((one) => !two.some((known) => known.name === one));
      await provider.removeMachines(ctx(), 'workers', extra, 2);

      // Another version: first one more comes, then each is replaced in its turn, also by an operator that was started anew half-way.
      version = '1.36.3';
      const looking = () => ({
        ...started(name),
        listMachines: (of: ProviderContext) => started(name).listMachines(of),
      });
      const testbed = { context: ctx, shoot, pools: wanted(2), now: () => new Date() };
      await provider.reconcilePools!(ctx(), wanted(2));
      const before = await alive(looking());
      expect(before.map(({ outdated = false }) => outdated).sort()).toEqual([false, true, true]);
      const crash = new AbortController();
      const first = await roll(
        {
          ...testbed,
          provider: looking(),
          onEvent: () => crash.abort(new Error('the operator ends')),
        },
        crash.signal,
      );
      expect(first).toMatchObject({ most: 3, events: [expect.stringContaining('took away')] });
      const { failure, events, fewestReady, most } = await roll({ ...testbed, provider: looking() });
      expect({ failure, taken: events.length, fewestReady, most }).toEqual({
        failure: undefined,
        taken: 1,
        fewestReady: 2,
        most: 3,
      });
      const after = await alive(started(name));
      const replaced = two.map((one) => one.name);
      expect(after.map((one) => [one.outdated, replaced.includes(one.name)])).toEqual([
        [undefined, false],
        [undefined, false],
      ]);
      await started(name).reconcilePools!(ctx(), wanted(2));
      expect((await alive(started(name))).map((one) => one.name).sort()).toEqual(after.map((one) => one.name).sort());

      await provider.deleteAll(ctx());
      expect(fake.cloud.resources({ account: account().account.id }).map((one) => one.id)).toEqual([]);
      expect([...seed.objects.keys()]).toEqual([]);
      await provider.deleteAll(ctx());
    });
  },
);
