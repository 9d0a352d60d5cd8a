import { beforeEach, describe, expect, it } from 'vitest';
import { LABELS } from '../../../../operator/api/group.ts';
import { silent } from '../../../../operator/kube/log.ts';
import type { Node } from '../../../../operator/kube/resources.ts';
import type { CloudContext, MachinesInputs, ManagedClusters } from '../../../../providers/cloud.ts';
import type { Pool, ProviderContext } from '../../../../providers/contract.ts';
import type { CloudMachine, MachineCloud } from '../../../../providers/machines/machine-cloud.ts';
import { machineProvider } from '../../../../providers/machines/provider.ts';
import type { StackRunner } from '../../../../providers/pulumi/stack-runner.ts';
import { context, FakeCluster, pool, profile } from '../fixtures.ts';

const RECORD = 'Secret/shoot--team--one/cloud-machines';
const HOUR = 3600_000;

/** A cloud in memory: groups are what the last run of the layer `machines` said. */
class Cloud {
  now = Date.parse('2026-11-21T10:00:00Z');
  machines: CloudMachine[] = [];
  runs: string[] = [];
  inputs: MachinesInputs | undefined;
  failure: string | undefined;
  id = 'account-1';
  broken: Error | undefined;
  #serial = 0;

  readonly runner = {
    outputs: async ({ stack }: { stack: { layer: string } }) =>
      stack.layer === 'network' && this.runs.includes('apply network') ? { network: 'n', subnets: [] } : undefined,
    apply: async ({ stack, inputs, refresh }: { stack: { layer: string }; inputs: unknown; refresh?: boolean }) => {
      this.runs.push(`apply ${stack.layer}${refresh ? ' refreshed' : ''}`);
      if (this.broken) throw this.broken;
      if (stack.layer === 'network') return { outputs: { network: 'n', subnets: [] }, changes: [] };
      this.inputs = inputs as MachinesInputs;
      for (const { name, desired = 0 } of this.inputs.pools) {
        while (this.machines.filter((one) => one.pool === name).length < desired) this.start(name);
      }
      this.machines = this.machines.filter(({ pool: own }) => this.inputs!.pools.some(({ name }) => name === own));
      return { outputs: { groups: {} }, changes: [] };
    },
    destroy: async ({ stack }: { stack: { layer: string } }) => {
      this.runs.push(`destroy ${stack.layer}`);
      if (stack.layer === 'machines') this.machines = [];
    },
  } as unknown as StackRunner;

  readonly cloud: MachineCloud = {
    layers: {
      provider: 'aws',
      credentials: async () => ({}),
      settings: () => ({}),
      adopt: () => async () => undefined,
      classify: ({ text }) => (text.includes('Insufficient') ? 'ERR_INFRA_RESOURCES_DEPLETED' : undefined),
      poolOf: () => undefined,
      unmadeNetwork: () => ({ network: 'unmade', subnets: [] }),
    },
    problems: () => [],
    image: async (_, architecture) => ({ image: `ubuntu-${architecture}-${this.now}` }),
    machines: async () => structuredClone(this.machines),
    remove: async (_ctx, own, going) => {
      this.runs.push(`remove ${own} ${going.map(({ name }) => name).join(' ')}`);
      this.machines = this.machines.filter(({ name }) => !going.some((one) => one.name === name));
    },
    failure: async () => this.failure,
  };

  start(own: string): void {
    const name = `i-${++this.#serial}`;
    const createdAt = new Date(this.now).toISOString();
    this.machines.push({ name, pool: own, nodeName: name, phase: 'Running', createdAt, zone: 'north-a' });
  }
}

let cloud: Cloud;
let seed: FakeCluster;
let shoot: FakeCluster;
let token: string;

beforeEach(() => {
  [cloud, seed, shoot, token] = [new Cloud(), new FakeCluster(), new FakeCluster(), 'first'];
});

/** An operator that knows nothing yet. */
const started = () => {
  const managed = { version: '1', checkAccount: async () => ({ id: cloud.id, missing: [] }) };
  return machineProvider('aws', managed as unknown as ManagedClusters, cloud.cloud, cloud.runner);
};
const ctx = (changes: Partial<ProviderContext> = {}): ProviderContext =>
  context({
    seed: seed.client,
    shoot: shoot.client,
    bootstrapKubeconfig: async () => token,
    cloud: async () =>
      ({
        owner: { technicalID: 'shoot--team--one', uid: 'u', name: 'one', namespace: 'team' },
        account: { id: 'x', credentials: {} },
        region: 'north',
        profile,
        log: silent,
        signal: new AbortController().signal,
        now: () => new Date(cloud.now),
      }) as unknown as CloudContext,
    ...changes,
  });
const join = (ready = 'True') => {
  for (const { nodeName, pool: own } of cloud.machines) {
    shoot.put({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: nodeName, labels: { [LABELS.pool]: own } },
      spec: {},
      status: { conditions: [{ type: 'Ready', status: ready }] },
    } as unknown as Node);
  }
};
const workers = (count: number, changes: Partial<Pool> = {}) => [pool({ count, ...changes })];

describe('machines in an account of the tenant', () => {
  it('are a network and groups on it, once: whoever comes after a restart finds them made', async () => {
    await started().reconcilePools!(ctx(), workers(2));
    expect(cloud.runs).toEqual(['apply network', 'apply machines']);
    expect(cloud.inputs?.pools).toMatchObject([
      { name: 'workers', machineType: 'm', minimum: 0, maximum: 2, desired: 2, architecture: 'amd64', gpu: 0 },
    ]);
    join();
    await started().reconcilePools!(ctx(), workers(2));
    const writes = seed.writes.length;
    await started().reconcilePools!(ctx(), workers(2));
    expect(cloud.runs).toHaveLength(2);
    expect(seed.writes.length).toBe(writes);
  });

  it('are looked for from before the first one is made, and until the last one has gone', async () => {
    cloud.broken = new Error('the cloud is away');
    const provider = started();
    await expect(provider.reconcilePools!(ctx(), workers(1))).rejects.toThrow('away');
    expect(seed.get(RECORD).metadata.finalizers).toEqual(['multi-cluster.demo.io/coppice']);
    cloud.broken = undefined;
    await started().deleteAll(ctx());
    expect(cloud.runs.slice(-2)).toEqual(['destroy machines', 'destroy network']);
    expect(seed.names('Secret')).toEqual([]);
  });

  it('need no credentials to be gone where none were ever made', async () => {
    const without = ctx();
    delete without.cloud;
    await started().deleteAll(without);
    expect(cloud.runs).toEqual([]);
    await expect(started().reconcilePools!(without, workers(1))).rejects.toThrow('names no credentials');
  });

  it('stay when their image, or the token for joining, is another one by now', async () => {
    await started().reconcilePools!(ctx(), workers(1));
    const { image } = cloud.inputs!.pools[0]!;
    [token, cloud.now] = ['second', cloud.now + HOUR / 2];
    const before = cloud.machines.map(({ name }) => name);
    await started().reconcilePools!(ctx(), workers(1));
    expect(cloud.runs.slice(2)).toEqual(['apply machines']);
    expect(cloud.inputs!.pools[0]).toMatchObject({ image, userData: expect.stringContaining('second') });
    expect(cloud.machines.map(({ name }) => name)).toEqual(before);
  });

  it('go as they are named, each once, and none before', async () => {
    const provider = started();
    await provider.reconcilePools!(ctx(), workers(3));
    await provider.reconcilePools!(ctx(), workers(2));
    expect(cloud.inputs!.pools[0]!.desired).toBe(3);
    const shown = structuredClone(cloud.machines);
    await provider.removeMachines(ctx(), 'workers', ['i-2'], 2);
    // A cloud goes on showing a machine for a while after it was ended.
    cloud.machines = shown;
    await provider.removeMachines(ctx(), 'workers', ['i-2'], 2);
    await provider.reconcilePools!(ctx(), workers(2));
    expect(cloud.runs.filter((run) => run.startsWith('remove'))).toEqual(['remove workers i-2']);
    expect(cloud.inputs!.pools[0]!.desired).toBe(2);
    const phases = (await provider.listMachines(ctx())).map(({ name, phase }) => `${name} ${phase}`);
    expect(phases).toEqual(['i-1 Running', 'i-2 Terminating', 'i-3 Running']);
  });

  it('of a pool that is no longer described stay until it is deleted', async () => {
    const provider = started();
    await provider.reconcilePools!(ctx(), [...workers(1), pool({ name: 'old', count: 1 })]);
    await provider.reconcilePools!(ctx(), workers(1));
    expect(cloud.machines.map((one) => one.pool).sort()).toEqual(['old', 'workers']);
    await provider.deletePool(ctx(), 'old');
    expect(cloud.machines.map((one) => one.pool)).toEqual(['workers']);
  });

  it('that never join are replaced once their token has expired', async () => {
    const provider = started();
    await provider.reconcilePools!(ctx(), workers(2));
    join();
    shoot.objects.delete('Node/i-2');
    cloud.now += HOUR;
    await provider.reconcilePools!(ctx(), workers(2));
    expect(cloud.runs).toHaveLength(2);
    cloud.now += HOUR;
    await provider.reconcilePools!(ctx(), workers(2));
    expect(cloud.runs.slice(2)).toEqual(['remove workers i-2', 'apply machines refreshed']);
    expect(cloud.machines.map(({ name }) => name)).toEqual(['i-1', 'i-3']);
  });

  it('are nodes with the labels of their pool and the zone that the cloud says', async () => {
    const provider = started();
    await provider.reconcilePools!(ctx(), workers(1));
    join();
    shoot.put({
      ...shoot.get<Node>('Node/i-1'),
      metadata: { name: 'gone', labels: { [LABELS.pool]: 'workers' } },
      status: {},
    } as Node);
    await provider.reconcilePools!(ctx(), workers(1, { labels: { team: 'shop' } }));
    expect(shoot.get('Node/i-1').metadata.labels).toMatchObject({
      team: 'shop',
      'topology.kubernetes.io/zone': 'north-a',
      'node.kubernetes.io/instance-type': 'm',
    });
    expect(shoot.names('Node')).toEqual(['i-1']);
  });

  it('that the cloud cannot give are missed with its reason and code', async () => {
    const provider = started();
    await provider.reconcilePools!(ctx(), workers(1));
    cloud.machines = [];
    cloud.failure = 'InsufficientInstanceCapacity - none left';
    await expect(provider.reconcilePools!(ctx(), workers(1))).rejects.toMatchObject({
      code: 'ERR_INFRA_RESOURCES_DEPLETED',
      message: expect.stringContaining('pool workers does not get its machines: InsufficientInstanceCapacity'),
    });
  });

  it('are not made a second time in another account', async () => {
    await started().reconcilePools!(ctx(), workers(1));
    cloud.id = 'account-2';
    await expect(started().reconcilePools!(ctx(), workers(2))).rejects.toThrow(
      'the credentials are of account account-2, but the machines are in account-1',
    );
    expect(cloud.runs).toHaveLength(2);
  });

  it('are told as last seen while the cloud does not answer', async () => {
    const provider = started();
    await provider.reconcilePools!(ctx(), workers(1));
    expect(await provider.listMachines(ctx())).toHaveLength(1);
    cloud.now += HOUR;
    const silentCloud = { cloud: () => Promise.reject(new Error('revoked')) };
    expect(await provider.listMachines(ctx(silentCloud))).toHaveLength(1);
  });
});
