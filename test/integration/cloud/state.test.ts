import { beforeAll, describe, expect, it } from 'vitest';
import { type Plugin, startPlugin } from '../../kit/cloud/client.ts';
import { UNKNOWN } from '../../kit/cloud/property-values.ts';
import { awsGround, cloudForFile, configurationFor, gcpGround, REGIONS, T } from './testbed.ts';

const fake = cloudForFile();
let aws: Plugin;
let gcp: Plugin;

beforeAll(async () => {
  [aws, gcp] = await Promise.all([fake.plugin('aws'), fake.plugin('gcp')]);
});

describe("a read of the fake cloud's plugin", () => {
  it('returns changes by others, as inputs and outputs', async () => {
    const ground = await awsGround(aws, 'drift', 50);
    await aws.create(T.cluster, 'cluster', ground.cluster);
    const before = ground.nodeGroup('pool');
    await aws.create(T.nodeGroup, 'pool', before);
    await fake.cloud.edit(T.nodeGroup, 'drift:pool', (inputs) => {
      inputs.scalingConfig.maxSize = 9;
    });
    const found = await aws.read(T.nodeGroup, 'drift:pool');
    expect(found?.outputs.scalingConfig).toEqual({ minSize: 1, maxSize: 9, desiredSize: 1 });
    expect(await aws.diff(T.nodeGroup, found!.inputs, before)).toMatchObject({
      changed: ['scalingConfig'],
      details: ['scalingConfig.maxSize'],
      replaces: [],
    });
  });

  it('returns nothing for a deleted resource', async () => {
    const { id } = await aws.create(T.vpc, 'vpc', { cidrBlock: '10.51.0.0/16' });
    await fake.cloud.remove(T.vpc, id);
    expect(await aws.read(T.vpc, id)).toBeUndefined();
    await expect(aws.update(T.vpc, id, {}, { cidrBlock: '10.51.0.0/16', tags: {} })).rejects.toThrow('does not exist');
  });

  it('returns for an import the inputs of the resource', async () => {
    const ground = await awsGround(aws, 'import', 52);
    await aws.create(T.cluster, 'cluster', ground.cluster);
    const group = ground.nodeGroup('pool', { labels: { a: 'b' } });
    await aws.create(T.nodeGroup, 'pool', group);
    const imported = await aws.read(T.nodeGroup, 'import:pool');
    expect(await aws.diff(T.nodeGroup, imported!.inputs, group)).toMatchObject({ changed: [] });
  });

  it.each([
    ['aws', T.launchTemplate, { name: 'ids', instanceType: 'm7i.large' }, (id: string) => [id, `${id}@${REGIONS.aws}`]],
    [
      'aws',
      'aws:ec2/route:Route',
      { routeTableId: 'rtb-1', destinationCidrBlock: '0.0.0.0/0', gatewayId: 'igw-1' },
      (id: string) => [id, 'rtb-1_0.0.0.0/0'],
    ],
    [
      'gcp',
      T.network,
      { name: 'ids' },
      (id: string) => [id, id.replace('projects/', '').replace('global/networks/', ''), 'ids'],
    ],
    [
      'gcp',
      'gcp:compute/address:Address',
      { name: 'ids', region: REGIONS.gcp },
      (id: string) => [id, `${REGIONS.gcp}/ids`, 'ids'],
    ],
  ] as const)('accepts the import IDs of %s %s', async (name, token, inputs, forms) => {
    const plugin = name === 'aws' ? aws : gcp;
    const { id } = await plugin.create(token, 'it', inputs);
    for (const form of forms(id)) expect(await plugin.read(token, form), form).toMatchObject({ id });
  });

  it('does not find resources of other regions or accounts', async () => {
    const { id } = await aws.create(T.launchTemplate, 'it', { name: 'here', instanceType: 'm7i.large' });
    const elsewhere = await fake.plugin('aws', { region: 'us-east-1' });
    expect(await elsewhere.read(T.launchTemplate, id)).toBeUndefined();
  });
});

describe("a plan of the fake cloud's plugin", () => {
  it.each([
    ['a name', T.role, { name: 'a' }, { name: 'b' }, ['name'], false],
    [
      'what cannot change, under the same name',
      T.nodeGroup,
      { clusterName: 'c', nodeGroupName: 'n', instanceTypes: ['a'] },
      { clusterName: 'c', nodeGroupName: 'n', instanceTypes: ['b'] },
      ['instanceTypes'],
      true,
    ],
    ['what can change', T.cluster, { name: 'c', version: '1.35' }, { name: 'c', version: '1.36' }, [], false],
    [
      'a part that cannot change',
      T.cluster,
      { name: 'c', kubernetesNetworkConfig: { serviceIpv4Cidr: '10.0.0.0/16' } },
      { name: 'c', kubernetesNetworkConfig: { serviceIpv4Cidr: '10.1.0.0/16' } },
      ['kubernetesNetworkConfig'],
      true,
    ],
    [
      'a template that cannot change at all',
      'gcp:compute/instanceTemplate:InstanceTemplate',
      { name: 't', machineType: 'a' },
      { name: 't', machineType: 'b' },
      ['machineType'],
      true,
    ],
  ] as const)(
    'tells what is replaced after a change of %s',
    async (_, token, before, after, replaces, deleteBeforeReplace) => {
      const plugin = token.startsWith('gcp') ? gcp : aws;
      expect(await plugin.diff(token, before, after)).toMatchObject({ replaces, deleteBeforeReplace });
    },
  );

  it('generates missing names, and keeps them', async () => {
    const first = await aws.check(T.role, 'worker', { assumeRolePolicy: '{}' });
    expect(first.name).toMatch(/^worker-[0-9a-f]{7}$/);
    expect(await aws.check(T.role, 'worker', { assumeRolePolicy: '[]' }, first)).toMatchObject({ name: first.name });
    expect(await aws.check(T.role, 'worker', { name: 'given' })).toEqual({ name: 'given' });
  });

  it('creates nothing in a preview', async () => {
    const requests = fake.cloud.requests().length;
    const { id, outputs } = await aws.create(T.role, 'role', { name: 'preview' }, { preview: true });
    expect({ id, outputs }).toMatchObject({ id: '', outputs: { name: 'preview', arn: UNKNOWN } });
    expect(fake.cloud.resources({ name: 'preview' })).toEqual([]);
    expect(fake.cloud.requests()).toHaveLength(requests);
  });

  it('marks outputs that are unknown in a preview, also within known ones', async () => {
    const masterAuth = { clientCertificateConfig: { issueClientCertificate: false } };
    const cluster = { name: 'preview', location: REGIONS.gcp, masterAuth };
    const { outputs } = await gcp.create(T.gke, 'cluster', cluster, { preview: true });
    expect(outputs).toMatchObject({ endpoint: UNKNOWN, masterAuth: { ...masterAuth, clusterCaCertificate: UNKNOWN } });
    const known = { endpoint: '34.1.2.3', masterAuth: { ...masterAuth, clusterCaCertificate: 'known' } };
    const after = { ...cluster, minMasterVersion: '1.37' };
    expect(await gcp.update(T.gke, 'id', { ...cluster, ...known }, after, { preview: true })).toEqual({
      ...known,
      ...after,
      masterAuth: known.masterAuth,
    });
  });
});

describe("concurrent processes of the fake cloud's plugin", () => {
  it('create a unique resource only once', async () => {
    const plugins = await Promise.all([1, 2, 3, 4].map(() => fake.plugin('aws')));
    const names = ['a', 'b', 'c', 'd', 'e'].map((letter) => `race-${letter}`);
    const outcomes = await Promise.allSettled(
      plugins.flatMap((plugin) => names.map((name) => plugin.create(T.role, name, { name, assumeRolePolicy: '{}' }))),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(names.length);
    for (const name of names) expect(fake.cloud.resources({ type: T.role, name })).toHaveLength(1);
  });

  it('continue after a process killed during its work', async () => {
    const account = fake.cloud.account('aws');
    const doomed = await startPlugin(fake.cloud, 'aws', { configuration: configurationFor(account) });
    const busy = Array.from({ length: 50 }, (_, index) =>
      doomed.create(T.role, 'r', { name: `doomed-${index}`, assumeRolePolicy: '{}' }).catch(() => undefined),
    );
    await expect.poll(() => fake.cloud.requests({ operation: 'create', type: T.role }).length).toBeGreaterThan(25);
    process.kill(doomed.pid, 'SIGKILL');
    await doomed.ended;
    await Promise.all(busy);
    await aws.create(T.role, 'role', { name: 'after-the-crash', assumeRolePolicy: '{}' });
    await doomed.close();
  });

  it('are known to the fake cloud, which can end them', async () => {
    const plugin = await startPlugin(fake.cloud, 'gcp', { configuration: configurationFor(fake.cloud.account('gcp')) });
    expect(await fake.cloud.processes()).toContain(plugin.pid);
    await plugin.close();
    expect(await fake.cloud.processes()).not.toContain(plugin.pid);
  });

  it('have each request recorded', async () => {
    const ground = await gcpGround(gcp, 'audit');
    await gcp.create(T.network, 'again', { name: 'audit' }).catch(() => undefined);
    expect(fake.cloud.requests({ operation: 'create', type: T.network, name: 'audit' })).toMatchObject([
      { outcome: 'ok', account: fake.cloud.account('gcp').id },
      { outcome: '1 error occurred:' },
    ]);
    expect(fake.cloud.resource(T.network, 'audit').id).toBe(ground.network.id);
  });
});
