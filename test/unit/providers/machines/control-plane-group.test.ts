import { beforeEach, describe, expect, it } from 'vitest';
import { votersIn } from '../../../../operator/shoot/control-plane-group.ts';
import type { Change, ControlPlaneInputs, ManagedClusters } from '../../../../providers/cloud.ts';
import type {
  ControlPlaneGroupBootstrap,
  ControlPlanePart,
  Provider,
  ProviderContext,
} from '../../../../providers/contract.ts';
import type { CloudMachine, MachineCloud } from '../../../../providers/machines/machine-cloud.ts';
import { machineProvider } from '../../../../providers/machines/provider.ts';
import type { StackRunner } from '../../../../providers/pulumi/stack-runner.ts';
import { GroupCluster, versionTold } from '../../../kit/group-cluster.ts';
import { context, FakeCluster, pool } from '../fixtures.ts';
import { LAYERS, tenantAccount } from './memory-cloud.ts';

const RECORD = 'Secret/shoot--team--one/cloud-control-plane';

interface Ran {
  stack: { layer: string };
  inputs: unknown;
  refresh?: boolean;
  allows?: (planned: readonly Change[]) => boolean;
}

/** A cloud in memory: a group is what the last run of the layer `control-plane` said, unless that was what it had said before. */
class Cloud {
  machines: CloudMachine[] = [];
  /** Machines that are gone and that the group still counts. */
  lost: string[] = [];
  forgotten: string[] = [];
  desired = 0;
  /** Whether machines to come are told the keys of the authorities. */
  tellsKeys = false;
  runs: string[] = [];
  zones: string[] = [];
  missing: string[] = [];
  id = 'account-1';
  /** Thrown once. */
  broken: Error | undefined;
  /** What is other in the cloud than the last runs made it, by layer. */
  drift: Record<string, Change[]> = {};
  now = new Date('2026-11-21T12:00:00Z');
  /** What machines to come bear, and what they are told. */
  hash: string | undefined;
  userData = '';
  #said: number | undefined;
  #serial = 0;

  #break(): void {
    const error = this.broken;
    this.broken = undefined;
    if (error) throw error;
  }

  readonly runner = {
    outputs: async ({ stack }: Ran) =>
      stack.layer === 'network' && this.zones.length > 0 ? { network: 'n', subnets: [] } : undefined,
    apply: async ({ stack, inputs, refresh, allows }: Ran) => {
      const { [stack.layer]: refused = [], ...others } = this.drift;
      if (allows && !allows(refused)) return { outputs: {}, changes: [], refused };
      if (refresh) this.drift = others;
      this.runs.push(`apply ${stack.layer}${refresh ? ' refreshed' : ''}`);
      this.#break();
      if (stack.layer === 'network') {
        this.zones = (inputs as { zones: string[] }).zones;
        return { outputs: { network: 'n', subnets: [] }, changes: [] };
      }
      if (stack.layer === 'endpoint') return { outputs: { host: 'one.example', port: 6443, extra: {} }, changes: [] };
      if (stack.layer !== 'control-plane') return { outputs: { groups: {} }, changes: [] };
      const { desired = 0, hash, holdsKeys, userData } = (inputs as ControlPlaneInputs).pool;
      Object.assign(this, { hash, tellsKeys: holdsKeys, userData });
      if (refresh || desired !== this.#said) this.desired = desired;
      this.#said = desired;
      while (this.machines.length + this.lost.length < this.desired) this.start();
      // Whom it likes.
      this.machines.splice(0, this.machines.length + this.lost.length - this.desired);
      return { outputs: {}, changes: [] };
    },
    destroy: async ({ stack }: Ran) => {
      this.runs.push(`destroy ${stack.layer}`);
      if (stack.layer === 'control-plane') this.machines = [];
    },
  } as unknown as StackRunner;

  readonly cloud: MachineCloud = {
    layers: LAYERS,
    group: { type: 'group', size: 'size' },
    problems: () => [],
    image: async () => ({ image: 'ubuntu' }),
    machines: async (_ctx, pools) => structuredClone(this.machines.filter((one) => pools.includes(one.pool))),
    remove: async (_ctx, _pool, going) => {
      for (const { name } of going) {
        this.#break();
        this.machines = this.machines.filter((one) => one.name !== name);
        this.desired--;
      }
    },
    controlPlane: {
      remade: ['listener'],
      missing: async () => this.missing,
      forget: async (_ctx, _pool, names, listed) => {
        if (this.#said === undefined) throw new Error('there is no such group');
        this.#break();
        for (const name of [...names, ...this.lost.filter((one) => !listed.includes(one))]) {
          const isStopped = this.machines.some((one) => one.name === name && one.phase === 'Terminating');
          if (!isStopped && !this.lost.includes(name)) continue;
          this.lost = this.lost.filter((one) => one !== name);
          this.machines = this.machines.filter((one) => one.name !== name);
          this.forgotten.push(name);
          this.desired--;
        }
      },
    },
  };

  start(): void {
    const name = `i-${++this.#serial}`;
    const createdAt = new Date(Date.parse('2026-11-21T10:00:00Z') + this.#serial * 1000).toISOString();
    const address = `10.250.0.${this.#serial}`;
    const hash = this.hash !== undefined && { hash: this.hash };
    this.machines.push({ name, pool: 'control-plane', nodeName: name, phase: 'Running', createdAt, address, ...hash });
  }

  lose(name: string): void {
    this.machines = this.machines.filter((one) => one.name !== name);
    this.lost.push(name);
  }
}

let cloud: Cloud;
let seed: FakeCluster;
let provider: Provider;
/** Of the keys of Secrets. */
let encryptionRevision: number | undefined;
let kubernetesVersion: string;

const ctx = (): ProviderContext =>
  context({
    seed: seed.client,
    kubernetesVersion,
    ...(encryptionRevision !== undefined && { encryptionRevision }),
    cloud: async () => tenantAccount(() => cloud.now),
  });
const own = (count: number) => pool({ name: 'control-plane', count, zones: ['north-a'] });
const begin: ControlPlaneGroupBootstrap = { init: 'init\n', first: { begin: { 'ca.key': 'KEY\n' } } };
const join: ControlPlaneGroupBootstrap = { init: 'init\n', first: { join: 'join\n', discovery: 'token\n' } };
const group = () => provider.controlPlaneGroup!;
const seen = () => group().observe(ctx(), 'control-plane');

const open = () => {
  const managed = { version: 'v', checkAccount: async () => ({ id: cloud.id, missing: [] }) };
  return machineProvider('aws', managed as unknown as ManagedClusters, cloud.cloud, cloud.runner);
};

beforeEach(() => {
  [cloud, seed, encryptionRevision, kubernetesVersion] = [new Cloud(), new FakeCluster(), undefined, '1.35.4'];
  provider = open();
});

describe('a control plane in a cloud', () => {
  it('gets an endpoint first, and only once', async () => {
    await expect(group().reconcile(ctx(), own(1), begin)).rejects.toThrow('no endpoint yet');
    const place = { host: 'one.example', port: 6443 };
    expect(await group().endpoint(ctx(), own(1))).toEqual(place);
    // Also for an operator that knows no more than what is written down.
    provider = open();
    expect(await group().endpoint(ctx(), own(1))).toEqual(place);
    expect(cloud.runs).toEqual(['apply network', 'apply endpoint']);
    expect(await seen()).toEqual({ asked: 0, machines: [] });
  });

  it('reports missing permissions before it creates or stores anything', async () => {
    cloud.missing = ['elasticloadbalancing:CreateLoadBalancer'];
    await expect(group().endpoint(ctx(), own(1))).rejects.toMatchObject({
      code: 'ERR_INFRA_UNAUTHORIZED',
      message: expect.stringContaining('lack elasticloadbalancing:CreateLoadBalancer'),
    });
    expect([cloud.runs, seed.names('Secret')]).toEqual([[], []]);
  });

  it('is not continued in another account', async () => {
    await group().endpoint(ctx(), own(1));
    cloud.id = 'account-2';
    await expect(group().reconcile(ctx(), own(1), begin)).rejects.toThrow('the credentials are of account account-2');
  });

  it('shares its network with workload machines, in the zones of both', async () => {
    await group().endpoint(ctx(), own(1));
    expect(cloud.zones).toEqual(['north-a']);
    await provider.reconcilePools!(ctx(), [pool({ zones: ['north-b'], count: 1 })]);
    expect(cloud.zones).toEqual(['north-a', 'north-b']);
    await group().endpoint(ctx(), own(1));
    expect(cloud.zones).toEqual(['north-a', 'north-b']);
  });

  it('never runs on spot machines', async () => {
    await group().endpoint(ctx(), own(1));
    await expect(group().reconcile(ctx(), { ...own(1), spot: true }, begin)).rejects.toThrow(
      'that the cloud takes away',
    );
  });

  it('keeps user data where its keys are, with a finalizer until all is deleted', async () => {
    await group().endpoint(ctx(), own(1));
    await group().reconcile(ctx(), own(1), begin);
    expect(seed.get(RECORD).metadata.finalizers).toHaveLength(1);
    await provider.deleteAll(ctx());
    expect(cloud.runs.slice(-3)).toEqual(['destroy control-plane', 'destroy endpoint', 'destroy network']);
    expect([...seed.objects.keys()]).toEqual([]);
  });

  it('is deleted after workload machines and before their shared network', async () => {
    await group().endpoint(ctx(), own(1));
    await provider.reconcilePools!(ctx(), [pool({ count: 1 })]);
    await provider.deleteAll(ctx());
    const destroyed = cloud.runs.filter((run) => run.startsWith('destroy'));
    expect(destroyed.slice(0, 4)).toEqual([
      'destroy machines',
      'destroy control-plane',
      'destroy endpoint',
      'destroy network',
    ]);
    expect([...seed.objects.keys()]).toEqual([]);
  });
});

describe('a control plane in a cloud, driven by the plan,', () => {
  let cluster: GroupCluster;

  beforeEach(async () => {
    cluster = new GroupCluster({
      now: () => cloud.now,
      version: () => kubernetesVersion,
      installs: () => versionTold(cloud.userData),
      observe: seen,
      machines: async () => cloud.machines,
      tell: (machines) => group().reconcile(ctx(), own(machines), join),
      end: (machines) => group().end(ctx(), 'control-plane', machines),
    });
    await group().endpoint(ctx(), own(1));
    await group().reconcile(ctx(), own(1), begin);
    await cluster.follow();
  });

  const names = () => cloud.machines.map(({ name }) => name);

  it('removes the keys from user data after initialization, though no machine is to come', async () => {
    expect(cloud.tellsKeys).toBe(true);
    await cluster.settle(1);
    expect([cloud.tellsKeys, names()]).toEqual([false, ['i-1']]);
  });

  it('grows and shrinks, and the group agrees', async () => {
    await cluster.settle(3);
    expect(names()).toEqual(['i-1', 'i-2', 'i-3']);
    await cluster.settle(1);
    expect(names()).toHaveLength(1);
    expect([cloud.desired, (await seen()).asked, votersIn(cluster.members)]).toEqual([1, 1, names()]);
  });

  it('replaces each lost machine', async () => {
    await cluster.settle(3);
    for (const victim of ['i-1', 'i-3', 'i-5']) {
      cloud.lose(victim);
      await cluster.follow();
      await cluster.settle(3);
      expect(names()).toHaveLength(3);
      expect(names()).not.toContain(victim);
      expect([cloud.desired, cloud.lost, votersIn(cluster.members)]).toEqual([3, [], names().sort()]);
    }
  });

  it('replaces machines one at a time for new encryption keys, each time they change', async () => {
    await cluster.settle(3);
    for (const revision of [1, 2]) {
      encryptionRevision = revision;
      const before = names();
      expect((await seen()).machines.map(({ outdated }) => outdated)).toEqual([true, true, true]);
      await cluster.settle(3);
      expect([...cluster.drained].sort()).toEqual(before);
      expect(cluster.voters).toEqual({ fewest: 3, most: 4 });
      expect(cluster.letIn).toEqual(names());
      expect(names().filter((name) => before.includes(name))).toEqual([]);
      expect([cloud.desired, (await seen()).asked, votersIn(cluster.members)]).toEqual([3, 3, names()]);
      expect((await seen()).machines.some(({ outdated }) => outdated)).toBe(false);
      cluster.drained = [];
    }
    const { length } = cloud.runs;
    await cluster.settle(3);
    expect(cloud.runs.length).toBe(length);
  });

  it('replaces machines one at a time for another version, which the new ones install', async () => {
    await cluster.settle(3);
    const before = names();
    expect(before.map(cluster.versionOf)).toEqual(['1.35.4', '1.35.4', '1.35.4']);
    kubernetesVersion = '1.36.3';
    await cluster.settle(3);
    expect([...cluster.drained].sort()).toEqual(before);
    expect(cluster.voters).toEqual({ fewest: 3, most: 4 });
    expect(names().map(cluster.versionOf)).toEqual(['1.36.3', '1.36.3', '1.36.3']);
    expect([cloud.desired, votersIn(cluster.members)]).toEqual([3, names()]);
    const { length } = cloud.runs;
    await cluster.settle(3);
    expect(cloud.runs.length).toBe(length);
  });

  it('replaces each machine once when keys and version change together', async () => {
    await cluster.settle(1);
    [kubernetesVersion, encryptionRevision] = ['1.36.3', 1];
    await cluster.settle(1);
    expect([names(), names().map(cluster.versionOf)]).toEqual([['i-2'], ['1.36.3']]);
  });

  it('replaces a machine with expiring certificates once, though etcd does not always list it', async () => {
    await cluster.settle(3);
    cluster.shows = (name, look) => (name === 'i-2' && look % 2 === 1 ? new Date(+cloud.now + 3600_000) : undefined);
    await cluster.settle(3);
    expect([names(), cluster.drained]).toEqual([['i-1', 'i-3', 'i-4'], ['i-2']]);
  });

  it('replaces no machine by one with earlier keys after a restore of the seed', async () => {
    encryptionRevision = 10;
    await cluster.settle(3);
    const before = names();
    for (encryptionRevision of [9, undefined]) {
      await expect(cluster.settle(3)).rejects.toMatchObject({
        message: expect.stringMatching(/^Secret .*\/pki of the seed has earlier keys of Secrets than machine i-\d$/),
        advice: expect.stringContaining("Bring the Secret's newest text back"),
      });
      cloud.now = new Date(cloud.now.getTime() + 60_000);
    }
    expect([names(), cluster.drained.length]).toEqual([before, 1]);
    encryptionRevision = 10;
    await cluster.settle(3);
    expect(names()).toEqual(before);
  });

  it('continues an interrupted replacement', async () => {
    await cluster.settle(3);
    encryptionRevision = 1;
    for (let broken = 0; broken < 6; broken++) {
      cloud.broken = new Error('AWS does not answer');
      await expect(cluster.settle(3)).rejects.toThrow('AWS does not answer');
      provider = open();
      // One that was asked for comes all the same.
      await cluster.follow();
    }
    await cluster.settle(3);
    expect(names()).toHaveLength(3);
    expect((await seen()).machines.some(({ outdated }) => outdated)).toBe(false);
    expect(votersIn(cluster.members)).toEqual(names());
  });

  it('replaces a machine that somebody stopped, and ends it for good', async () => {
    await cluster.settle(3);
    const stopped = cloud.machines.find(({ name }) => name === 'i-2')!;
    stopped.phase = 'Terminating';
    await cluster.follow();
    await cluster.settle(3);
    const alive = cloud.machines.filter(({ phase }) => phase === 'Running').map(({ name }) => name);
    expect(alive).toHaveLength(3);
    expect([cloud.desired, cloud.forgotten, votersIn(cluster.members)]).toEqual([3, ['i-2'], alive.sort()]);
  });

  it('repeats an interrupted termination of one machine, and ends no other', async () => {
    await cluster.settle(3);
    cloud.broken = new Error('AWS does not answer');
    await expect(cluster.settle(1)).rejects.toThrow('AWS does not answer');
    expect(names()).toHaveLength(3);
    // As after a restart of the operator.
    provider = open();
    await cluster.settle(1);
    expect([names().length, cloud.desired, votersIn(cluster.members)]).toEqual([1, 1, names()]);
  });

  it('never lets the group choose the victim after an interrupted termination', async () => {
    await cluster.settle(3);
    cloud.broken = new Error('AWS does not answer');
    await expect(cluster.settle(1)).rejects.toThrow('AWS does not answer');
    const { asked } = await seen();
    expect(asked).toBe(2);
    await group().reconcile(ctx(), own(asked), join);
    expect(names()).toEqual(['i-1', 'i-2', 'i-3']);
  });

  it.each([
    ['is lost', undefined],
    ['was stopped', 'Terminating' as const],
  ])('stops counting a machine that %s after an interrupted removal', async (_what, phase) => {
    await cluster.settle(3);
    if (phase) cloud.machines.find(({ name }) => name === 'i-2')!.phase = phase;
    else cloud.lose('i-2');
    await cluster.follow();
    cloud.broken = new Error('AWS does not answer');
    await expect(cluster.settle(3)).rejects.toThrow('AWS does not answer');
    provider = open();
    await cluster.settle(3);
    const alive = cloud.machines.filter((one) => one.phase === 'Running');
    expect([alive.length, cloud.desired, cloud.lost, cloud.forgotten]).toEqual([3, 3, [], ['i-2']]);
  });

  it('stops counting a machine whose member had no name', async () => {
    await cluster.settle(3);
    cloud.lose('i-3');
    await group().end(ctx(), 'control-plane', ['8e9e05c52164694d']);
    expect([cloud.desired, cloud.lost]).toEqual([2, []]);
  });

  it('keeps a stopped machine in the group, unless it was to end', async () => {
    await cluster.settle(3);
    cloud.lose('i-3');
    for (const one of cloud.machines) one.phase = 'Terminating';
    await group().end(ctx(), 'control-plane', ['i-3']);
    expect(cloud.forgotten).toEqual(['i-3']);
  });

  it('replaces a first machine lost before initialization after some minutes', async () => {
    // As at Azure, where a set's capacity follows its machines.
    Object.assign(cloud, { machines: [], desired: 0 });
    await group().reconcile(ctx(), own(1), begin);
    expect(names()).toEqual([]);
    cloud.now = new Date(cloud.now.getTime() + 6 * 60_000);
    await group().reconcile(ctx(), own(1), begin);
    expect(names()).toEqual(['i-2']);
  });

  it('ends no machine that a list omits, once the cluster is initialized', async () => {
    await cluster.settle(3);
    const shown = cloud.machines;
    cloud.lost = ['i-3'];
    cloud.machines = shown.slice(0, 2);
    cloud.now = new Date(cloud.now.getTime() + 6 * 60_000);
    const runs = cloud.runs.length;
    await group().reconcile(ctx(), own(3), join);
    expect([cloud.forgotten, cloud.runs.length]).toEqual([[], runs]);
  });

  it('is not reported as lost with credentials of another account', async () => {
    Object.assign(cloud, { machines: [], id: 'account-2' });
    await expect(seen()).rejects.toThrow('the credentials are of account account-2');
  });

  it('repeats an interrupted request', async () => {
    cloud.broken = new Error('the engine died');
    await expect(cluster.settle(3)).rejects.toThrow('the engine died');
    provider = open();
    await group().reconcile(ctx(), own((await seen()).asked), join);
    await cluster.follow();
    await cluster.settle(3);
    expect(names()).toHaveLength(3);
  });

  const wall: Change = { operation: 'update', resource: 'wall cluster', properties: ['ingress'] };
  const pools = (...properties: string[]): Change => ({ operation: 'update', resource: 'group pool', properties });
  const mend = (part: ControlPlanePart) => group().mend(ctx(), 'control-plane', part);

  it('reverts changes by others in each of its layers', async () => {
    await cluster.settle(3);
    cloud.drift = { network: [wall], endpoint: [wall], 'control-plane': [pools('suspendedProcesses')] };
    cloud.runs = [];
    expect([await mend('endpoint'), await mend('machines'), cloud.drift]).toEqual([[], [], {}]);
    expect(cloud.runs).toEqual(['network', 'endpoint', 'control-plane'].map((layer) => `apply ${layer} refreshed`));
    expect([names(), await mend('machines')]).toEqual([['i-1', 'i-2', 'i-3'], []]);
  });

  it('leaves the repair of workload machines and of the network to their own providers', async () => {
    const workers = [pool({ count: 1, zones: ['north-a'] })];
    await provider.reconcilePools!(ctx(), workers);
    cloud.runs = [];
    await provider.reconcilePools!({ ...ctx(), mend: true }, workers);
    expect(cloud.runs).toEqual(['apply machines refreshed']);
  });

  it('repairs no layer where that is unsafe, and reports what', async () => {
    await cluster.settle(3);
    const address: Change = { operation: 'create', resource: 'address endpoint' };
    cloud.drift = { network: [wall], endpoint: [wall, address], 'control-plane': [pools('size', 'tags')] };
    cloud.runs = [];
    expect([await mend('endpoint'), await mend('machines')]).toEqual([[wall, address], [pools('size', 'tags')]]);
    expect(cloud.runs).toEqual(['apply network refreshed']);
  });

  it('is not repaired while its machines change, or before initialization', async () => {
    cloud.drift = { 'control-plane': [pools('suspendedProcesses')] };
    cloud.runs = [];
    expect(await mend('machines')).toBeUndefined();
    await cluster.settle(3);
    const { runs, drift } = cloud;
    cloud.lose('i-2');
    expect(await mend('machines')).toBeUndefined();
    expect([cloud.runs, cloud.drift]).toEqual([runs, drift]);
    // Somebody made it larger: a run would have it smaller, and choose who goes.
    for (let more = 0; more < 2; more++) cloud.start();
    provider = open();
    expect(await mend('machines')).toBeUndefined();
    expect(names()).toHaveLength(4);
  });

  it('repairs the rest of its layer meanwhile, such as the path to the API server at Google', async () => {
    await cluster.settle(3);
    cloud.lose('i-2');
    cloud.drift = { 'control-plane': [wall] };
    expect([await mend('machines'), cloud.drift]).toEqual([[], {}]);
    expect(names()).toHaveLength(2);
  });

  it('runs nothing without changes', async () => {
    await cluster.settle(3);
    const [runs, writes] = [cloud.runs.length, seed.writes.length];
    await group().reconcile(ctx(), own(3), join);
    await cluster.settle(3);
    expect([cloud.runs.length, seed.writes.length]).toEqual([runs, writes]);
  });
});
