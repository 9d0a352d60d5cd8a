import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Plugin, PluginError } from '../../kit/cloud/client.ts';
import { awsGround, azureGround, cloudForFile, gcpGround, REGIONS, T } from './testbed.ts';

const fake = cloudForFile();
let aws: Plugin;
let gcp: Plugin;
let azure: Plugin;

beforeAll(async () => {
  [aws, gcp, azure] = await Promise.all([fake.plugin('aws'), fake.plugin('gcp'), fake.plugin('azure-native')]);
});
afterEach(() => fake.cloud.faults.clear());

/** Each question is a process's that has the lower priority of two. */

const role = (name: string) => ({ name, assumeRolePolicy: '{}' });
const refusal = (promise: Promise<unknown>): Promise<PluginError> =>
  promise.then(
    () => {
      throw new Error('it was not refused');
    },
    (error: PluginError) => error,
  );

describe('the timing of the fake cloud', () => {
  it('delays creation as configured, and shows the unfinished resource', async () => {
    const ground = await awsGround(aws, 'slow', 30);
    fake.cloud.faults.set({ latencyMs: { [T.cluster]: { create: 5_000, delete: 5_000 } } });
    const started = Date.now();
    const creating = aws.create(T.cluster, 'cluster', ground.cluster);
    await expect.poll(() => fake.cloud.resources({ type: T.cluster, name: 'slow' }).length).toBe(1);
    expect((await aws.read(T.cluster, 'slow'))?.outputs).toMatchObject({ status: 'CREATING', endpoint: '' });
    expect((await creating).outputs).toMatchObject({ status: 'ACTIVE', endpoint: expect.stringContaining('https://') });
    expect(Date.now() - started).toBeGreaterThanOrEqual(5_000);

    const deleting = aws.delete(T.cluster, 'slow');
    await expect.poll(async () => (await aws.read(T.cluster, 'slow'))?.outputs.status).toBe('DELETING');
    await deleting;
    expect(await aws.read(T.cluster, 'slow')).toBeUndefined();
  });

  it('finishes an operation whose caller has gone', async () => {
    const ground = await awsGround(aws, 'left', 31);
    fake.cloud.faults.set({ latencyMs: { [T.cluster]: { create: 5_000 } } });
    const impatient = await fake.plugin('aws');
    const creating = refusal(impatient.create(T.cluster, 'cluster', ground.cluster));
    await expect.poll(() => fake.cloud.resources({ type: T.cluster, name: 'left' }).length).toBe(1);
    await impatient.cancel();
    const error = await creating;
    expect(error.message).toContain('context canceled');
    expect(error.partial).toMatchObject({ id: 'left', outputs: { status: 'CREATING' } });
    await expect.poll(async () => (await aws.read(T.cluster, 'left'))?.outputs.status).toBe('ACTIVE');
  });

  it('shows a new resource only after a delay', async () => {
    fake.cloud.faults.set({ unreadableForMs: { [T.role]: 600_000 } });
    await aws.create(T.role, 'role', role('new'));
    expect(await aws.read(T.role, 'new')).toBeUndefined();
    await expect(aws.create(T.role, 'again', role('new'))).rejects.toThrow('EntityAlreadyExists');
    await expect(aws.create(T.attachment, 'attachment', { role: 'new', policyArn: 'arn' })).rejects.toThrow(
      'NoSuchEntity',
    );
    fake.cloud.faults.clear();
    await expect.poll(() => aws.read(T.role, 'new')).toMatchObject({ id: 'new' });
  });
});

describe('the throttling of the fake cloud', () => {
  it.each([
    [
      'aws',
      () => aws.create(T.role, 'r', role('fast')),
      'exceeded maximum number of attempts, 25, https response error StatusCode: 400',
      'api error Throttling: Rate exceeded',
    ],
    [
      'gcp',
      () => gcp.create(T.network, 'n', { name: 'fast' }),
      'googleapi: Error 429: Quota exceeded for quota metric',
      'rateLimitExceeded',
    ],
    [
      'azure-native',
      () => azure.create(T.group, 'g', { resourceGroupName: 'fast', location: 'x' }),
      'Status=429',
      'Code="ResourceRequestsThrottled"',
    ],
  ] as const)('by %s refuses requests beyond the limit per second', async (_, create, first, second) => {
    fake.cloud.faults.set({ throttle: { perSecond: 1 / 60 } });
    const outcomes = await Promise.allSettled([create(), create(), create()]);
    const refused = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason.message as string] : []));
    for (const text of [first, second])
      expect(refused.filter((one) => one.includes(text)).length).toBeGreaterThanOrEqual(2);
  });

  it('counts the requests of all processes of an account', async () => {
    const account = fake.cloud.account('aws', 2);
    const [one, other] = await Promise.all([fake.plugin('aws', { account }), fake.plugin('aws', { account })]);
    // One in a minute: the two may be seconds apart where the machine is busy.
    fake.cloud.faults.set({ throttle: { perSecond: 1 / 60 } });
    const outcomes = await Promise.allSettled([one.read(T.role, 'none'), other.read(T.role, 'none')]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  it("permits the provider's retries", async () => {
    fake.cloud.faults.set({ throttle: { perSecond: 2, retryForMs: 5000 } });
    const started = Date.now();
    await Promise.all(['a', 'b', 'c', 'd'].map((name) => aws.create(T.role, name, role(`patient-${name}`))));
    expect(Date.now() - started).toBeGreaterThanOrEqual(900);
  });
});

describe('the capacity limits of the fake cloud', () => {
  it('refuse resources beyond the quota of each region', async () => {
    const before = fake.cloud.resources({ type: T.vpc }).length;
    fake.cloud.faults.set({ quotas: { [T.vpc]: before } });
    const vpc = { cidrBlock: '10.40.0.0/16' };
    await expect(aws.create(T.vpc, 'vpc', vpc)).rejects.toThrow(
      'api error VpcLimitExceeded: The maximum number of VPCs has been reached.',
    );
    const elsewhere = await fake.plugin('aws', { region: 'us-east-1' });
    await elsewhere.create(T.vpc, 'vpc', vpc);
  });

  it.each([
    [
      'aws',
      () => aws.create(T.cluster, 'c', { name: 'q' }),
      'ResourceLimitExceededException: Cluster limit exceeded for account.',
      T.cluster,
    ],
    [
      'gcp',
      () => gcp.create(T.network, 'n', { name: 'q' }),
      "Quota 'NETWORKS' exceeded.  Limit: 0.0 globally.",
      T.network,
    ],
    ['gcp', () => gcp.create(T.gke, 'c', { name: 'q', location: REGIONS.gcp }), 'Insufficient regional quota', T.gke],
    [
      'azure-native',
      () => azure.create(T.group, 'g', { resourceGroupName: 'q', location: 'x' }),
      'Code="OperationNotAllowed"',
      T.group,
    ],
  ] as const)('by %s report a quota of zero as used up', async (_, create, text, type) => {
    fake.cloud.faults.set({ quotas: { [type]: 0 } });
    await expect(create()).rejects.toThrow(text);
    expect(fake.cloud.resources({ type, name: 'q' })).toEqual([]);
  });

  it('leave a broken node group when no machines are available', async () => {
    const ground = await awsGround(aws, 'scarce', 41);
    await aws.create(T.cluster, 'cluster', ground.cluster);
    fake.cloud.faults.set({ depleted: [{ machineType: 'm7i.large' }] });
    const error = await refusal(aws.create(T.nodeGroup, 'pool', ground.nodeGroup('pool')));
    expect(error.message).toContain("unexpected state 'CREATE_FAILED', wanted target 'ACTIVE'");
    expect(error.message).toContain('InsufficientInstanceCapacity');
    expect(error.partial).toMatchObject({ id: 'scarce:pool', outputs: { status: 'CREATE_FAILED' } });
    expect(fake.cloud.resource(T.nodeGroup, 'scarce:pool').failure).toContain('InsufficientInstanceCapacity');

    await aws.create(
      T.nodeGroup,
      'empty',
      ground.nodeGroup('empty', { scalingConfig: { desiredSize: 0, maxSize: 1 } }),
    );
    await expect(
      aws.update(T.nodeGroup, 'scarce:empty', {}, ground.nodeGroup('empty', { scalingConfig: { desiredSize: 2 } })),
    ).rejects.toThrow('InsufficientInstanceCapacity');
  });

  it('can apply to one machine type, zone, or spot machines only', async () => {
    const ground = await awsGround(aws, 'choosy', 42);
    await aws.create(T.cluster, 'cluster', ground.cluster);
    const pool = (name: string, more: object = {}) => aws.create(T.nodeGroup, name, ground.nodeGroup(name, more));
    fake.cloud.faults.set({ depleted: [{ machineType: 'm7i.large', zone: 'eu-central-1a' }] });
    await pool('other-zone');
    fake.cloud.faults.set({ depleted: [{ machineType: 'm7i.large' }] });
    await pool('other-type', { instanceTypes: ['m7i.large', 'm6i.large'] });
    fake.cloud.faults.set({ depleted: [{ spot: true }] });
    await pool('on-demand');
    await expect(pool('spot', { capacityType: 'SPOT' })).rejects.toThrow('Could not launch Spot Instances');
  });

  it('are reported in the words of each cloud', async () => {
    fake.cloud.faults.set({ depleted: [{}] });
    const google = await gcpGround(gcp, 'scarce');
    await gcp.create(T.gke, 'cluster', google.cluster);
    const pool = { name: 'pool', cluster: 'scarce', location: REGIONS.gcp, nodeCount: 1 };
    await expect(gcp.create(T.nodePool, 'pool', pool)).rejects.toThrow('[GCE_STOCKOUT]');
    const microsoft = await azureGround(azure, 'scarce');
    await expect(azure.create(T.aks, 'cluster', microsoft.cluster)).rejects.toThrow('OverconstrainedAllocationRequest');
    await expect(
      azure.create(T.agentPool, 'pool', microsoft.agentPool('zonal', { availabilityZones: ['1'] })),
    ).rejects.toThrow('Code="OverconstrainedZonalAllocationRequest"');
  });
});

describe('the injected failures of the fake cloud', () => {
  const made = (name: string) => fake.cloud.resources({ type: T.role, name }).length;

  it('before an operation: nothing is created', async () => {
    fake.cloud.faults.set({ failures: [{ operation: 'create', type: T.role, when: 'before', how: 'error' }] });
    await expect(aws.create(T.role, 'role', role('before'))).rejects.toThrow('StatusCode: 500');
    expect(made('before')).toBe(0);
    await aws.create(T.role, 'role', role('before'));
  });

  it('after an operation: the resource exists, and Pulumi does not learn of it', async () => {
    fake.cloud.faults.set({
      failures: [{ operation: 'create', type: T.role, when: 'after', how: 'error', message: 'out of the blue' }],
    });
    const error = await refusal(aws.create(T.role, 'role', role('after')));
    expect(error).toMatchObject({ message: expect.stringContaining('out of the blue'), partial: undefined });
    expect(made('after')).toBe(1);
  });

  it('partial: the resource exists, and Pulumi learns of it with the error', async () => {
    fake.cloud.faults.set({ failures: [{ operation: 'create', type: T.role, when: 'after', how: 'partial' }] });
    expect((await refusal(aws.create(T.role, 'role', role('partial')))).partial).toMatchObject({ id: 'partial' });
  });

  it.each(['before', 'after'] as const)('lost %s: the process ends without an answer', async (when) => {
    const name = `lost-${when}`;
    const plugin = await fake.plugin('aws');
    fake.cloud.faults.set({ failures: [{ operation: 'create', type: T.role, name, when, how: 'lost' }] });
    const error = await refusal(plugin.create(T.role, 'role', role(name)));
    expect(error.message).not.toBe('');
    await plugin.ended;
    expect(made(name)).toBe(when === 'after' ? 1 : 0);
    expect(fake.cloud.requests({ operation: 'create', name })).toMatchObject([{ outcome: 'lost' }]);
  });

  it('occur as often as configured, in any process', async () => {
    const other = await fake.plugin('aws');
    fake.cloud.faults.set({ failures: [{ operation: 'read', type: '*', when: 'before', how: 'error', times: 2 }] });
    const read = (plugin: Plugin) =>
      refusal(plugin.read(T.role, 'none')).then(
        () => 'failed',
        () => 'went well',
      );
    expect([await read(aws), await read(other), await read(aws)]).toEqual(['failed', 'failed', 'went well']);
  });
});
