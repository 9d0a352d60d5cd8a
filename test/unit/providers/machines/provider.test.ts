import { beforeEach, describe, expect, it, vi } from 'vitest';
import { LABELS } from '../../../../operator/api/group.ts';
import type { Node, Secret } from '../../../../operator/kube/resources.ts';
import type { ManagedClusters } from '../../../../providers/cloud.ts';
import type { Pool, Provider, ProviderContext } from '../../../../providers/contract.ts';
import { machineProvider } from '../../../../providers/machines/provider.ts';
import { context, FakeCluster, pool } from '../fixtures.ts';
import { MemoryCloud, tenantAccount } from './memory-cloud.ts';

const RECORD = 'Secret/shoot--team--one/cloud-machines';
const HOUR = 3600_000;

let cloud: MemoryCloud;
let seed: FakeCluster;
let shoot: FakeCluster;
let token: string;

beforeEach(() => {
  [cloud, seed, shoot, token] = [new MemoryCloud(), new FakeCluster(), new FakeCluster(), 'first'];
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
    cloud: async () => tenantAccount(() => new Date(cloud.now)),
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

describe("machines in a tenant's account", () => {
  it('are a network and groups, created once even across restarts', async () => {
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

  it('have a finalizer from before the first until after the last', async () => {
    cloud.broken = new Error('the cloud is away');
    const provider = started();
    await expect(provider.reconcilePools!(ctx(), workers(1))).rejects.toThrow('away');
    expect(seed.get(RECORD).metadata.finalizers).toEqual(['multi-cluster.demo.io/coppice']);
    cloud.broken = undefined;
    await started().deleteAll(ctx());
    expect(cloud.runs.slice(-2)).toEqual(['destroy machines', 'destroy network']);
    expect(seed.names('Secret')).toEqual([]);
  });

  it('need no credentials for deletion if none were ever created', async () => {
    const without = ctx();
    delete without.cloud;
    await started().deleteAll(without);
    expect(cloud.runs).toEqual([]);
    await expect(started().reconcilePools!(without, workers(1))).rejects.toThrow('names no credentials');
  });

  it('stay when image or bootstrap token change', async () => {
    await started().reconcilePools!(ctx(), workers(1));
    const { image } = cloud.inputs!.pools[0]!;
    [token, cloud.now] = ['second', cloud.now + HOUR / 2];
    const before = cloud.machines.map(({ name }) => name);
    await started().reconcilePools!(ctx(), workers(1));
    expect(cloud.runs.slice(2)).toEqual(['apply machines']);
    expect(cloud.inputs!.pools[0]).toMatchObject({ image, userData: expect.stringContaining('second') });
    expect(cloud.machines.map(({ name }) => name)).toEqual(before);
  });

  it('are replaced in each of two pools that lost some at the same time', async () => {
    const provider = started();
    const pools = (a: number, b: number) => [pool({ name: 'a', count: a }), pool({ name: 'b', count: b })];
    await provider.reconcilePools!(ctx(), pools(2, 4));
    const of = (own: string) => cloud.machines.filter((one) => one.pool === own);
    await Promise.all([
      provider.removeMachines(ctx(), 'a', [of('a')[0]!.name], 1),
      provider.removeMachines(ctx(), 'b', [of('b')[0]!.name], 3),
    ]);
    await provider.reconcilePools!(ctx(), pools(1, 4));
    expect([of('a').length, of('b').length]).toEqual([1, 4]);
  });

  it('are listed as last seen, terminated ones marked, while a cloud does not answer', async () => {
    const provider = started();
    await provider.reconcilePools!(ctx(), [pool({ name: 'a', count: 2 }), pool({ name: 'b', count: 1 })]);
    const told = await provider.listMachines(ctx());
    const [first] = told;
    await provider.removeMachines(ctx(), first!.pool, [first!.name], 1);
    cloud.cloud.machines = async () => {
      throw new Error('throttled');
    };
    const now = await provider.listMachines(ctx());
    expect(now.filter(({ phase }) => phase !== 'Terminating').map(({ name }) => name)).toEqual(
      told.slice(1).map(({ name }) => name),
    );
  });

  it('are removed by name, each once, and none before', async () => {
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

  it('of a pool without description stay until the pool is deleted', async () => {
    const provider = started();
    await provider.reconcilePools!(ctx(), [...workers(1), pool({ name: 'old', count: 1 })]);
    await provider.reconcilePools!(ctx(), workers(1));
    expect(cloud.machines.map((one) => one.pool).sort()).toEqual(['old', 'workers']);
    await provider.deletePool(ctx(), 'old');
    expect(cloud.machines.map((one) => one.pool)).toEqual(['workers']);
  });

  it('that never join are replaced after their token expires', async () => {
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

  it("have nodes with the pool's labels and the cloud's zone", async () => {
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

  it('keep their nodes if the cloud recreated them under the same names meanwhile', async () => {
    const provider = started();
    await provider.reconcilePools!(ctx(), workers(1));
    join('False');
    cloud.machines = [];
    token = 'second';
    // While an engine runs the machine is back, and its kubelet has found the node of before.
    vi.spyOn(cloud.runner, 'apply').mockImplementationOnce(async () => {
      const status = { conditions: [{ type: 'Ready', status: 'True' }] };
      shoot.put({ ...shoot.get<Node>('Node/i-1'), status } as unknown as Node);
      return { outputs: { groups: {} }, changes: [] };
    });
    await expect(provider.reconcilePools!(ctx(), workers(1))).rejects.toMatchObject({ status: 409 });
    expect(shoot.names('Node')).toEqual(['i-1']);
  });

  it('that the cloud cannot provide are reported with its reason and code', async () => {
    const provider = started();
    await provider.reconcilePools!(ctx(), workers(1));
    cloud.machines = [];
    cloud.failure = 'InsufficientInstanceCapacity - none left';
    await expect(provider.reconcilePools!(ctx(), workers(1))).rejects.toMatchObject({
      code: 'ERR_INFRA_RESOURCES_DEPLETED',
      message: expect.stringContaining('pool workers does not get its machines: InsufficientInstanceCapacity'),
    });
  });

  it('are not created again in another account', async () => {
    await started().reconcilePools!(ctx(), workers(1));
    cloud.id = 'account-2';
    await expect(started().reconcilePools!(ctx(), workers(2))).rejects.toThrow(
      'the credentials are of account account-2, but the machines are in account-1',
    );
    expect(cloud.runs).toHaveLength(2);
  });

  it('are listed as last seen while the cloud does not answer', async () => {
    const provider = started();
    await provider.reconcilePools!(ctx(), workers(1));
    expect(await provider.listMachines(ctx())).toHaveLength(1);
    cloud.now += HOUR;
    const silentCloud = { cloud: () => Promise.reject(new Error('revoked')) };
    expect(await provider.listMachines(ctx(silentCloud))).toHaveLength(1);
  });

  describe('that are outdated', () => {
    const outdated = async (provider: Provider, changes: Partial<ProviderContext> = {}) =>
      (await provider.listMachines(ctx(changes))).filter((one) => one.outdated).map(({ name }) => name);

    it.each<[string, Partial<ProviderContext>, Partial<Pool>]>([
      ['Kubernetes', { kubernetesVersion: '1.36.4' }, {}],
      ['machine type', {}, { machineType: 'odd' }],
      ['architecture', {}, { machineType: 'gpu' }],
      ['price', {}, { spot: true }],
    ])('have another %s: the pool grows by maxSurge', async (_, changes, ofPool) => {
      const provider = started();
      await provider.reconcilePools!(ctx(), workers(3));
      expect(await outdated(provider)).toEqual([]);
      cloud.now += HOUR;
      await provider.reconcilePools!(ctx(changes), workers(3, { ...ofPool, maxSurge: 2 }));
      expect(cloud.inputs!.pools[0]).toMatchObject({ desired: 5, maximum: 5 });
      cloud.now += HOUR / 2;
      expect(await outdated(provider)).toEqual(['i-1', 'i-2', 'i-3']);
      // An operator that was started anew knows it as well: the cloud tells.
      expect(await outdated(started())).toEqual(['i-1', 'i-2', 'i-3']);
    });

    it('are none after changes of tokens, labels, taints, zones or addresses', async () => {
      const provider = started();
      await provider.reconcilePools!(ctx(), workers(1, { maxSurge: 1 }));
      token = 'second';
      const changes = { labels: { a: 'b' }, taints: [{ key: 'a', effect: 'NoSchedule' as const }], zones: ['north-a'] };
      await provider.reconcilePools!(
        ctx({ apiserverURL: 'https://10.9.9.9:6443' }),
        workers(1, { ...changes, maxSurge: 1 }),
      );
      expect(cloud.inputs!.pools[0]).toMatchObject({ desired: 1, userData: expect.stringContaining('second') });
      expect(await outdated(provider)).toEqual([]);
    });

    it('are replaced one by one, and a shrunk group grows again, also to the same size', async () => {
      let provider = started();
      await provider.reconcilePools!(ctx(), workers(2));
      const changes = { kubernetesVersion: '1.36.4' };
      for (const victim of ['i-1', 'i-2']) {
        await provider.reconcilePools!(ctx(changes), workers(2, { maxSurge: 1 }));
        expect(cloud.machines).toHaveLength(3);
        await provider.removeMachines(ctx(changes), 'workers', [victim], 2);
        // A crash here.
        provider = started();
      }
      await provider.reconcilePools!(ctx(changes), workers(2, { maxSurge: 1 }));
      const runs = cloud.runs.length;
      await started().reconcilePools!(ctx(changes), workers(2, { maxSurge: 1 }));
      expect(cloud.machines.map(({ name }) => name)).toEqual(['i-3', 'i-4']);
      expect(await outdated(provider)).toEqual([]);
      expect(cloud.runs).toHaveLength(runs);
    });

    it('are replaced by machines with the newest image, but not because of the image', async () => {
      const provider = started();
      await provider.reconcilePools!(ctx(), workers(1));
      const { image } = cloud.inputs!.pools[0]!;
      cloud.now += HOUR;
      await provider.reconcilePools!(ctx(), workers(2));
      expect(cloud.inputs!.pools[0]!.image).toBe(image);
      await provider.reconcilePools!(ctx({ kubernetesVersion: '1.36.4' }), workers(2));
      const { image: newer } = cloud.inputs!.pools[0]!;
      expect(newer).not.toBe(image);
      cloud.now += HOUR;
      await started().reconcilePools!(ctx({ kubernetesVersion: '1.36.4' }), workers(3));
      expect(cloud.inputs!.pools[0]!.image).toBe(newer);
    });

    it('include machines from before hashes only after the next change of the pool', async () => {
      await started().reconcilePools!(ctx(), workers(2));
      for (const machine of cloud.machines) delete machine.hash;
      const secret = seed.get<Secret>(RECORD);
      const receipt = JSON.parse(Buffer.from(secret.data!.record!, 'base64').toString());
      for (const one of receipt.wanted.pools) delete one.hash;
      seed.put({ ...secret, data: { record: Buffer.from(JSON.stringify(receipt)).toString('base64') } } as Secret);
      const provider = started();
      cloud.now += HOUR / 2;
      await provider.reconcilePools!(ctx(), workers(4, { maxSurge: 1 }));
      expect(cloud.machines).toHaveLength(4);
      expect(await outdated(provider)).toEqual([]);
      // A cloud that did not keep the hash of a new one must not have it replaced for ever.
      delete cloud.machines[3]!.hash;
      await started().reconcilePools!(ctx({ kubernetesVersion: '1.36.4' }), workers(4, { maxSurge: 1 }));
      expect(await outdated(started())).toEqual(['i-1', 'i-2', 'i-3']);
    });

    it('do not fail the pool without replacements, but the autoscaler gets the reason', async () => {
      const provider = started();
      await provider.reconcilePools!(ctx(), workers(1));
      [cloud.most, cloud.failure] = [1, 'InsufficientInstanceCapacity - none left'];
      const changes = { kubernetesVersion: '1.36.4' };
      await provider.reconcilePools!(ctx(changes), workers(1, { maxSurge: 1 }));
      const runs = cloud.runs.length;
      await expect(provider.reconcilePools!(ctx(changes), workers(2))).rejects.toThrow('InsufficientInstanceCapacity');
      expect(cloud.runs).toHaveLength(runs);
    });

    it('keep tokens fresh for their replacements', async () => {
      const asked: unknown[] = [];
      const bootstrapKubeconfig = async (own: string, machines?: number) => {
        asked.push([own, machines]);
        return token;
      };
      await started().reconcilePools!(ctx({ bootstrapKubeconfig }), workers(2, { maxSurge: 1 }));
      const changes = { kubernetesVersion: '1.36.4', bootstrapKubeconfig };
      await started().reconcilePools!(ctx(changes), workers(2, { maxSurge: 1 }));
      expect(asked).toEqual([
        ['workers', 2],
        ['workers', 3],
      ]);
    });
  });
});

describe("drift in a tenant's account", () => {
  const group = (properties: string[], name = 'workers') => [
    { operation: 'update', resource: `aws:autoscaling/group:Group pool-${name}`, properties },
  ];
  const changed = (of = started()) => of.drift!(ctx());

  it('contains all differences in the network and in the groups', async () => {
    expect(await changed()).toBeUndefined();
    await started().reconcilePools!(ctx(), workers(2));
    expect(await changed()).toEqual([]);
    const subnet = { operation: 'create', resource: 'aws:ec2/subnet:Subnet a' };
    cloud.drift = { network: [subnet], machines: group(['desiredCapacity']) };
    const writes = seed.writes.length;
    expect(await changed()).toEqual([subnet, ...group(['desiredCapacity'])]);
    expect([seed.writes.length, cloud.runs.filter((run) => run.startsWith('apply'))]).toEqual([
      writes,
      ['apply network', 'apply machines'],
    ]);
  });

  it('excludes the size of a group after a termination by the operator, until it is applied again', async () => {
    const provider = started();
    await provider.reconcilePools!(ctx(), workers(2));
    join();
    await provider.removeMachines(ctx(), 'workers', [cloud.machines[0]!.name], 1);
    cloud.drift = { machines: group(['desiredCapacity']) };
    expect(await changed(provider)).toEqual([]);
    cloud.drift = { machines: group(['desiredCapacity', 'tags']) };
    expect(await changed(provider)).toEqual(group(['tags']));
    cloud.drift = { machines: group(['desiredCapacity'], 'other') };
    expect(await changed(provider)).toEqual(cloud.drift.machines);
    await provider.reconcilePools!(ctx(), workers(1));
    cloud.drift = { machines: group(['desiredCapacity']) };
    expect(await changed(provider)).toEqual(cloud.drift.machines);
  });

  it('is searched for with the last inputs, so that new tokens and sizes are no drift', async () => {
    const provider = started();
    await provider.reconcilePools!(ctx(), workers(1));
    token = 'second';
    await provider.reconcilePools!(ctx(), workers(3));
    const asked = vi.spyOn(cloud.runner, 'drift');
    token = 'third';
    await changed(started());
    expect(asked.mock.calls.at(-1)![0].inputs).toEqual(cloud.inputs);
  });

  it('is unknown while machines are being created, or after another version of the programs', async () => {
    const provider = started();
    await provider.reconcilePools!(ctx(), workers(1));
    cloud.broken = new Error('the cloud is away');
    await expect(provider.reconcilePools!(ctx(), workers(2))).rejects.toThrow('away');
    expect(await changed(provider)).toBeUndefined();
    cloud.broken = undefined;
    await provider.reconcilePools!(ctx(), workers(2));
    expect(await changed(provider)).toEqual([]);
    const managed = { version: '2', checkAccount: async () => ({ id: cloud.id, missing: [] }) };
    const newer = machineProvider('aws', managed as unknown as ManagedClusters, cloud.cloud, cloud.runner);
    expect(await changed(newer)).toBeUndefined();
  });

  it('is unknown with credentials of another account', async () => {
    await started().reconcilePools!(ctx(), workers(1));
    cloud.id = 'account-2';
    await expect(changed()).rejects.toThrow('account-2');
  });

  it('is reverted on request, also in the network', async () => {
    await started().reconcilePools!(ctx(), workers(2));
    join();
    cloud.runs = [];
    await started().reconcilePools!(ctx({ mend: true }), workers(2));
    expect(cloud.runs).toEqual(['apply network refreshed', 'apply machines refreshed']);
    await started().reconcilePools!(ctx(), workers(2));
    expect(cloud.runs).toHaveLength(2);
  });
});
