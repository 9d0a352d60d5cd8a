import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import {
  findOrphans,
  removeOrphans,
  type SweepAccount,
  type SweepDependencies,
} from '../../../operator/controllers/managed/sweep.ts';
import { silent } from '../../../operator/kube/log.ts';
import { votersIn } from '../../../operator/shoot/control-plane-group.ts';
import { awsProvider } from '../../../providers/aws/index.ts';
import { nameTag, physicalName } from '../../../providers/aws/names.ts';
import { azureProvider } from '../../../providers/azure/index.ts';
import { virtualNetworkName } from '../../../providers/azure/names.ts';
import type { Change, CloudContext, Owner } from '../../../providers/cloud.ts';
import type {
  ControlPlaneGroup,
  ControlPlaneGroupBootstrap,
  Provider,
  ProviderContext,
} from '../../../providers/contract.ts';
import { gcpProvider } from '../../../providers/gcp/index.ts';
import { gcpLabelsOf } from '../../../providers/gcp/labels.ts';
import { clusterName } from '../../../providers/gcp/names.ts';
import { tagsOf } from '../../../providers/tags.ts';
import type { Plugin } from '../../kit/cloud/client.ts';
import type { CloudName } from '../../kit/cloud/index.ts';
import { GroupCluster, versionTold } from '../../kit/group-cluster.ts';
import { engineFor } from '../../kit/stacks/runner.ts';
import { context, FakeCluster, pool } from '../../unit/providers/fixtures.ts';
import { byName, cloudForFile, gcpGround, REGIONS, runnersForFile, T } from './testbed.ts';

const fake = cloudForFile();
/** A dozen engine runs on two busy cores. */
const PATIENCE_MS = 20 * 60_000;

/** An operator that knows nothing yet. */
let started: Record<CloudName, () => Provider>;
const providers: Partial<Record<CloudName, Provider>> = {};
const engineOf = (cloud: CloudName) => engineFor(cloud, 'machines');
const kept = runnersForFile(fake, engineOf, async (runners) => {
  const web = await fake.cloud.web();
  started = {
    aws: () => awsProvider(runners.aws, web.aws),
    gcp: () => gcpProvider(runners.gcp, web.gcp),
    'azure-native': () => azureProvider(runners['azure-native'], web.azure),
  };
  for (const [name] of CLOUDS) providers[name] = started[name]();
});

/** What somebody changes by hand, and what a look then says. */
type ByHand = { type: string; name: string; change: (inputs: Record<string, unknown>) => void; found: Change }[];

/** Where the group's size is, what says how its machines are made, and what there is one of in a cluster's network. */
interface Kinds {
  zones: string[];
  group: string;
  template: string;
  network: string;
  host: RegExp;
  byHand: ByHand;
  /** What it is not mended without; one cloud is enough to see it. */
  gone?: string;
}
const CLOUDS: [name: CloudName, kinds: Kinds][] = [
  [
    'aws',
    {
      zones: ['a', 'b'].map((letter) => `${REGIONS.aws}${letter}`),
      group: 'aws:autoscaling:Group',
      template: 'aws:ec2:LaunchTemplate',
      network: 'aws:ec2:Vpc',
      host: /^shoot--team--one-.*\.elb\./,
      gone: 'aws:lb:LoadBalancer',
      byHand: [
        {
          type: 'aws:ec2:SecurityGroup',
          name: 'cluster',
          change: (inputs) => {
            const all = { protocol: '-1', fromPort: 0, toPort: 0, cidrBlocks: ['0.0.0.0/0'], description: 'a moment' };
            inputs.ingress = [...(inputs.ingress as object[]), all];
          },
          found: {
            operation: 'update',
            resource: 'aws:ec2/securityGroup:SecurityGroup cluster',
            properties: ['ingress'],
          },
        },
        {
          type: 'aws:lb:LoadBalancer',
          name: '',
          change: (inputs) => {
            inputs.enableCrossZoneLoadBalancing = false;
          },
          found: {
            operation: 'update',
            resource: 'aws:lb/loadBalancer:LoadBalancer endpoint',
            properties: ['enableCrossZoneLoadBalancing'],
          },
        },
        {
          type: 'aws:autoscaling:Group',
          name: 'control-plane',
          change: (inputs) => Object.assign(inputs, { suspendedProcesses: [], protectFromScaleIn: false }),
          found: {
            operation: 'update',
            resource: 'aws:autoscaling/group:Group pool-control-plane',
            properties: ['protectFromScaleIn', 'suspendedProcesses'],
          },
        },
      ],
    },
  ],
  [
    'gcp',
    {
      zones: ['a', 'b'].map((letter) => `${REGIONS.gcp}-${letter}`),
      group: 'gcp:compute:RegionInstanceGroupManager',
      template: 'gcp:compute:InstanceTemplate',
      network: 'gcp:compute:Network',
      host: /^\d+\.\d+\.\d+\.\d+$/,
      byHand: [
        {
          type: 'gcp:compute:Firewall',
          name: 'endpoint',
          change: (inputs) => {
            inputs.sourceRanges = ['0.0.0.0/0'];
          },
          found: {
            operation: 'update',
            resource: 'gcp:compute/firewall:Firewall endpoint',
            properties: ['sourceRanges'],
          },
        },
        {
          type: 'gcp:compute:RegionInstanceGroupManager',
          name: 'control-plane',
          change: (inputs) => {
            inputs.instanceLifecyclePolicy = { defaultActionOnFailure: 'REPAIR' };
          },
          found: {
            operation: 'update',
            resource: 'gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager pool-control-plane',
            properties: ['instanceLifecyclePolicy'],
          },
        },
        {
          type: 'gcp:compute:BackendService',
          name: '',
          change: (inputs) => {
            inputs.timeoutSec = 30;
          },
          found: {
            operation: 'update',
            resource: 'gcp:compute/backendService:BackendService control-plane',
            properties: ['timeoutSec'],
          },
        },
      ],
    },
  ],
  [
    'azure-native',
    {
      zones: ['1', '2'],
      group: 'azure-native:compute:VirtualMachineScaleSet',
      template: 'azure-native:compute:VirtualMachineScaleSet',
      network: 'azure-native:network:VirtualNetwork',
      host: /^\d+\.\d+\.\d+\.\d+$/,
      byHand: [
        {
          type: 'azure-native:network:NetworkSecurityGroup',
          name: 'endpoint',
          change: (inputs) => {
            inputs.securityRules = (inputs.securityRules as object[]).map((one) => ({
              ...one,
              destinationPortRange: '*',
            }));
          },
          found: {
            operation: 'update',
            resource: 'azure-native:network:NetworkSecurityGroup endpoint',
            properties: ['securityRules'],
          },
        },
        {
          type: 'azure-native:network:LoadBalancer',
          name: '',
          change: (inputs) => {
            inputs.probes = (inputs.probes as object[]).map((one) => ({ ...one, requestPath: '/' }));
          },
          found: {
            operation: 'update',
            resource: 'azure-native:network:LoadBalancer endpoint',
            properties: ['probes'],
          },
        },
        {
          type: 'azure-native:compute:VirtualMachineScaleSet',
          name: 'control-plane',
          change: (inputs) => {
            inputs.automaticRepairsPolicy = { enabled: true };
          },
          found: {
            operation: 'update',
            resource: 'azure-native:compute:VirtualMachineScaleSet pool-control-plane',
            properties: ['automaticRepairsPolicy'],
          },
        },
      ],
    },
  ],
];

const begin: ControlPlaneGroupBootstrap = {
  init: 'kind: InitConfiguration\n',
  first: { begin: { 'ca.key': 'THE KEY\n' } },
};
const joining: ControlPlaneGroupBootstrap = {
  init: 'kind: InitConfiguration\n',
  first: { join: 'kind: JoinConfiguration\n', discovery: 'token: first\n' },
};

/** What others have in the account: what bears another garden's tags, some of it where names lead that are ours. */
const theirs: Record<CloudName, (plugin: Plugin, other: Owner) => Promise<unknown>> = {
  async aws(plugin, other) {
    await plugin.create(T.vpc, 'vpc', {
      cidrBlock: '10.99.0.0/16',
      tags: { ...tagsOf(other), Name: nameTag(other, 'vpc') },
    });
    const role = { name: physicalName('aws:iam/role:Role', other, 'cluster'), assumeRolePolicy: '{}' };
    await plugin.create(T.role, 'role', { ...role, tags: tagsOf(other) });
  },
  async gcp(plugin, other) {
    const ground = await gcpGround(plugin, 'theirs');
    await plugin.create(T.gke, 'cluster', {
      ...ground.cluster,
      name: clusterName(other),
      resourceLabels: gcpLabelsOf(other),
    });
  },
  async 'azure-native'(plugin, other) {
    const common = { resourceGroupName: 'theirs', location: REGIONS['azure-native'], tags: tagsOf(other) };
    await plugin.create(T.group, 'group', common);
    await plugin.create(T.vnet, 'network', { ...common, virtualNetworkName: virtualNetworkName(other) });
  },
};

/** All texts in a value. */
const texts = (value: unknown): string[] => {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(texts) : [];
};

/** As cloud-init reads it. */
function unpacked(text: string): string {
  const bytes = Buffer.from(text, 'base64');
  return bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes).toString() : bytes.toString();
}

const LIVES = CLOUDS.map(([name, kinds]) => [engineOf(name), name, kinds] as const);

describe.each(LIVES)('a control plane on machines, by the %s engine in the fake %s', (_, name, kinds) => {
  const { zones, group: groupType, template, network, host, byHand, gone } = kinds;
  const region = REGIONS[name];
  const owner = { technicalID: 'shoot--team--one', uid: `0b3c-${name}`, name: 'one', namespace: 'team', garden: 'g' };
  const profile = {
    metadata: { name },
    spec: {
      regions: [{ name: region, zones: zones.map((zone) => ({ name: zone })) }],
      machineTypes: [{ name: 'm', cpu: 2, gpu: 0, memory: '8Gi' }],
      kubernetes: { versions: [{ version: '1.36.1' }] },
    },
  } as unknown as CloudProfile;

  const seed = new FakeCluster();
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
      cloud: async () => account(),
    });
  const own = (count: number) => pool({ name: 'control-plane', count, zones });
  const ofType = (type: string) => fake.cloud.resources({ type, account: fake.cloud.account(name).id });
  const changes = () =>
    (['create', 'update', 'delete'] as const).flatMap((operation) => fake.cloud.requests({ operation })).length;
  const told = () => ofType(template).flatMap(({ inputs }) => texts(inputs).map(unpacked));
  const left = () => fake.cloud.resources({ account: fake.cloud.account(name).id }).map(({ id }) => id);

  it('starts, grows, replaces a lost machine, shrinks and leaves nothing', { timeout: PATIENCE_MS }, async () => {
    await mkdir(join(kept.dir, `state-${name}`), { recursive: true });
    const provider = providers[name]!;
    const group: ControlPlaneGroup = provider.controlPlaneGroup!;
    let now = ctx;
    const names = async () =>
      (await group.observe(now(), 'control-plane')).machines.map((machine) => machine.name).sort();

    // Where it is reached is known before any machine is told anything.
    expect(await group.observe(now(), 'control-plane')).toEqual({ asked: 0, machines: [] });
    const endpoint = await group.endpoint(now(), own(3));
    expect(endpoint).toEqual({ host: expect.stringMatching(host), port: 6443 });
    expect(ofType(groupType)).toEqual([]);
    const reached = changes();
    expect(await group.endpoint(now(), own(3))).toEqual(endpoint);
    expect(changes(), 'of changes when nothing was to be changed').toBe(reached);

    await group.reconcile(now(), own(1), begin);
    const [first] = await names();
    expect(await names()).toEqual([first]);
    expect(told().some((text) => text.includes('THE KEY'))).toBe(true);

    // What held the keys goes, and the machine stays.
    await group.reconcile(now(), own(1), joining);
    expect(told().some((text) => text.includes('THE KEY'))).toBe(false);
    expect(told().some((text) => text.includes('token: first'))).toBe(true);
    expect(ofType(template)).toHaveLength(1);
    expect(await names()).toEqual([first]);
    const begun = changes();
    await group.reconcile(now(), own(1), joining);
    expect(changes(), 'of changes when nothing was to be changed').toBe(begun);

    await group.reconcile(now(), own(2), joining);
    await group.reconcile(now(), own(3), joining);
    const three = await names();
    expect(three).toHaveLength(3);
    expect(three).toContain(first);

    // Machines for workloads come beside them, in the same network, and are none of these.
    await provider.reconcilePools!(now(), [pool({ name: 'workers', count: 1, zones })]);
    expect((await provider.listMachines(now())).map((one) => one.pool)).toEqual(['workers']);
    expect((await group.list(now(), 'control-plane')).map((one) => one.name).sort()).toEqual(three);
    expect(ofType(network)).toHaveLength(1);

    // One that is lost is not made again until somebody says so: then it is another one.
    const victim = three.find((one) => one !== first)!;
    await fake.cloud.loseInstance(fake.cloud.account(name), region, victim);
    expect(await names()).toEqual(three.filter((one) => one !== victim));
    await group.end(now(), 'control-plane', [victim]);
    expect((await group.observe(now(), 'control-plane')).asked).toBe(2);
    await group.end(now(), 'control-plane', [victim]);
    // Meanwhile there are other keys for Secrets: it is made with these, and tells so.
    now = () => ({ ...ctx(), encryptionRevision: 1 });
    await group.reconcile(now(), own(3), joining);
    await expect(group.observe(ctx(), 'control-plane')).rejects.toThrow('has earlier keys of Secrets than machine');
    const again = await names();
    expect(again).toHaveLength(3);
    expect(again).not.toContain(victim);
    const { machines } = await group.observe(now(), 'control-plane');
    const outdated = machines.filter((machine) => machine.outdated).map((machine) => machine.name);
    expect(outdated.sort()).toEqual(three.filter((one) => one !== victim));
    expect(machines.map(({ zone }) => zone)).toEqual(expect.arrayContaining([expect.any(String)]));

    // Also one whose etcd member never had a name is no longer counted.
    const nameless = again.find((one) => one !== first)!;
    await fake.cloud.loseInstance(fake.cloud.account(name), region, nameless);
    await group.end(now(), 'control-plane', ['8e9e05c52164694d']);
    await group.reconcile(now(), own(3), joining);
    const third = await names();
    expect(third).toHaveLength(3);
    expect(third).not.toContain(nameless);

    // What others change is told by layers; all of the above was our own doing.
    const edited = byHand.map((one) => ({
      ...one,
      before: ofType(one.type).find((made) => made.name.includes(one.name))!,
    }));
    for (const { type, change, before } of edited) await fake.cloud.edit(type, before.id, change);
    expect(byName(await provider.drift!(now()))).toEqual(byName(edited.map(({ found }) => found)));
    for (const part of ['endpoint', 'machines'] as const)
      expect(await group.mend(now(), 'control-plane', part), 'of what is left').toEqual([]);
    for (const { type, before } of edited) expect(fake.cloud.resource(type, before.id).inputs).toEqual(before.inputs);
    expect(await names()).toEqual(third);

    // Shrinking ends exactly those that are named.
    await group.end(
      now(),
      'control-plane',
      third.filter((one) => one !== first),
    );
    await group.reconcile(now(), own(1), joining);
    expect(await names()).toEqual([first]);

    // What certificates name, or machines are behind, is not made anew.
    if (gone) {
      await fake.cloud.remove(gone, ofType(gone)[0]!.id);
      const left = await group.mend(now(), 'control-plane', 'endpoint');
      expect(left).toContainEqual(expect.objectContaining({ operation: 'create' }));
      expect(ofType(gone)).toEqual([]);
    }

    await provider.deleteAll(now());
    expect(left()).toEqual([]);
    expect([...seed.objects.keys()]).toEqual([]);
    await provider.deleteAll(now());
  });

  it('replaces three machines one at a time for new encryption keys and for another version', {
    timeout: PATIENCE_MS,
  }, async () => {
    await mkdir(join(kept.dir, `state-${name}`), { recursive: true });
    const provider = started[name]();
    const group = provider.controlPlaneGroup!;
    let wanted = { encryptionRevision: 1, kubernetesVersion: '1.35.4' };
    const now = () => ({ ...ctx(), ...wanted });
    const observe = () => group.observe(now(), 'control-plane');
    const cluster = new GroupCluster({
      now: () => new Date(),
      version: () => wanted.kubernetesVersion,
      installs: () => versionTold(told().find((text) => text.includes('KUBERNETES='))!),
      observe,
      machines: async () => (await observe()).machines,
      tell: (machines) => group.reconcile(now(), own(machines), joining),
      end: (machines) => group.end(now(), 'control-plane', machines),
    });
    await group.endpoint(now(), own(1));
    await group.reconcile(now(), own(1), begin);
    await cluster.follow();
    await cluster.settle(3);

    for (wanted of [
      { encryptionRevision: 2, kubernetesVersion: '1.35.4' },
      { encryptionRevision: 2, kubernetesVersion: '1.36.3' },
    ]) {
      const before = votersIn(cluster.members);
      expect(before).toHaveLength(3);
      cluster.drained = [];
      await cluster.settle(3);
      expect([...cluster.drained].sort()).toEqual(before);
      // Some share a zone, so another one always comes first.
      expect(cluster.voters).toEqual({ fewest: 3, most: 4 });
      const { asked, machines } = await observe();
      const after = machines.filter(({ phase }) => phase !== 'Terminating');
      expect(after.map(({ nodeName }) => nodeName).sort()).toEqual(votersIn(cluster.members));
      expect([asked, after.length, after.filter(({ outdated }) => outdated)]).toEqual([3, 3, []]);
      expect(after.filter(({ nodeName }) => before.includes(nodeName))).toEqual([]);
      expect(after.map(({ nodeName }) => cluster.versionOf(nodeName))).toEqual(Array(3).fill(wanted.kubernetesVersion));
    }

    await provider.deleteAll(now());
    expect(left()).toEqual([]);
  });

  it('deletes an endpoint that never had a machine', { timeout: PATIENCE_MS }, async () => {
    const provider = providers[name]!;
    await provider.controlPlaneGroup!.endpoint(ctx(), own(1));
    await provider.deleteAll(ctx());
    expect(left()).toEqual([]);
    expect([...seed.objects.keys()]).toEqual([]);
  });

  it('is swept when nobody remembers it, even after an interruption, without harm to others', {
    timeout: PATIENCE_MS,
  }, async () => {
    await mkdir(join(kept.dir, `state-${name}`), { recursive: true });
    const deps: SweepDependencies = {
      garden: owner.garden,
      client: seed.client,
      log: silent,
      now: () => new Date(),
      stateBackend: async () => account().state,
      owners: async () => [],
      described: () => undefined,
    };
    const { signal } = new AbortController();
    const by: SweepAccount = {
      profile,
      clouds: started[name]().managed!,
      credentials: {
        use: { namespace: 'team', secret: 'account' },
        values: fake.cloud.account(name).credentials,
        version: '1',
      },
      regions: [region],
    };
    const sweep = async () => {
      const { found, gaps } = await findOrphans(deps, [by], signal);
      return { gaps, failures: await removeOrphans(deps, found, signal) };
    };
    await theirs[name](await fake.plugin(name), { ...owner, uid: 'theirs', garden: 'another' });
    const ofOthers = left();

    const provider = started[name]();
    await provider.controlPlaneGroup!.endpoint(ctx(), own(1));
    await provider.controlPlaneGroup!.reconcile(ctx(), own(1), begin);
    await provider.reconcilePools!(ctx(), [pool({ name: 'workers', count: 1, zones: zones.slice(0, 1) })]);
    // The seed is not asked either: the world has no receipts.
    await rm(join(kept.dir, `state-${name}`), { recursive: true });
    await mkdir(join(kept.dir, `state-${name}`));

    // Ends when what was found is in the state, and nothing more is known of it than that.
    fake.cloud.faults.set({ failures: [{ operation: 'read', type: groupType, when: 'before', how: 'engine' }] });
    expect((await sweep()).failures).toEqual([
      { uid: owner.uid, line: expect.stringContaining(`left in ${region}: the refresh of`) },
    ]);
    fake.cloud.faults.clear();
    const read = fake.cloud.requests({ operation: 'read', type: groupType }).length;
    expect(await sweep()).toEqual({ gaps: [], failures: [] });
    expect(left()).toEqual(ofOthers);
    expect(fake.cloud.requests({ operation: 'read', type: groupType }).length, 'looked at before it went').toBe(
      // Of both groups.
      read + 2,
    );
  });
});
