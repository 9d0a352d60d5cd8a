import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import type { Change } from '../../../providers/cloud.ts';
import type { PulumiRunner } from '../../../providers/pulumi/runner.ts';
import type { StackRunner } from '../../../providers/pulumi/stack-runner.ts';
import { type Plugin, startPlugin } from '../../kit/cloud/client.ts';
import { configurationFor, REGIONS } from '../../kit/cloud/configuration.ts';
import { type Account, type CloudName, type FakeCloud, fakeCloud } from '../../kit/cloud/index.ts';
import { CLOUDS } from '../../kit/cloud/model.ts';
import { type EngineOfTests, testRunner } from '../../kit/stacks/runner.ts';

export { configurationFor, REGIONS };

/** Tokens as programs write them. */
export const T = {
  vpc: 'aws:ec2/vpc:Vpc',
  subnet: 'aws:ec2/subnet:Subnet',
  role: 'aws:iam/role:Role',
  attachment: 'aws:iam/rolePolicyAttachment:RolePolicyAttachment',
  cluster: 'aws:eks/cluster:Cluster',
  nodeGroup: 'aws:eks/nodeGroup:NodeGroup',
  launchTemplate: 'aws:ec2/launchTemplate:LaunchTemplate',
  autoscaling: 'aws:autoscaling/group:Group',
  network: 'gcp:compute/network:Network',
  subnetwork: 'gcp:compute/subnetwork:Subnetwork',
  gke: 'gcp:container/cluster:Cluster',
  nodePool: 'gcp:container/nodePool:NodePool',
  keyRing: 'gcp:kms/keyRing:KeyRing',
  group: 'azure-native:resources:ResourceGroup',
  vnet: 'azure-native:network:VirtualNetwork',
  aks: 'azure-native:containerservice:ManagedCluster',
  agentPool: 'azure-native:containerservice:AgentPool',
} as const;

/** A cloud, made before the file's tests and taken away after them. */
export function cloudForFile(): {
  cloud: FakeCloud;
  /** A plugin of the account, ended with the file. */
  plugin(name: CloudName, options?: { account?: Account; region?: string; more?: object }): Promise<Plugin>;
} {
  const started: Plugin[] = [];
  const held = {} as { cloud: FakeCloud };
  beforeAll(async () => {
    held.cloud = await fakeCloud();
  });
  afterAll(async () => {
    await Promise.all(started.map((plugin) => plugin.close()));
    await held.cloud.close();
  });
  return {
    get cloud() {
      return held.cloud;
    },
    async plugin(name, { account = held.cloud.account(name), region, more = {} } = {}) {
      const plugin = await startPlugin(held.cloud, name, {
        configuration: { ...configurationFor(account, region), ...more },
      });
      started.push(plugin);
      return plugin;
    },
  };
}

/** Runners over the file's cloud, by their engines, with a directory for what they keep; `opened` gets them, by cloud, before the tests. */
export function runnersForFile(
  fake: { readonly cloud: FakeCloud },
  engineOf: (cloud: CloudName) => EngineOfTests,
  opened: (runners: Record<CloudName, StackRunner>) => Promise<void> | void,
): { readonly dir: string } {
  const held = {} as { dir: string };
  const running: PulumiRunner[] = [];
  const open = async (engine: EngineOfTests) => {
    const runner = await testRunner(fake.cloud, join(held.dir, engine), engine);
    running.push(runner);
    return runner;
  };
  beforeAll(async () => {
    held.dir = await mkdtemp(join(tmpdir(), 'coppice-clouds-'));
    const engines = new Map<EngineOfTests, Promise<PulumiRunner>>();
    const runners = {} as Record<CloudName, StackRunner>;
    for (const cloud of CLOUDS) {
      const engine = engineOf(cloud);
      engines.set(engine, engines.get(engine) ?? open(engine));
      runners[cloud] = await engines.get(engine)!;
    }
    await opened(runners);
  }, 30 * 60_000);
  afterAll(async () => {
    await Promise.all(running.map((runner) => runner.close(5_000)));
    if (held.dir) await rm(held.dir, { recursive: true, force: true });
  });
  return held;
}

/** Changes and their properties by name: the engine comes to them in any order. */
export const byName = (changes: readonly Change[] = []): Change[] =>
  changes
    .map((one) => ({ ...one, ...(one.properties && { properties: [...one.properties].sort() }) }))
    .sort((one, other) => one.resource.localeCompare(other.resource));

/** What an EKS cluster needs: two subnets in two zones, and a role. Names bear `name`, ranges are 10.`block`.0.0. */
export async function awsGround(plugin: Plugin, name: string, block: number) {
  const vpc = await plugin.create(T.vpc, 'vpc', { cidrBlock: `10.${block}.0.0/16`, tags: { Name: name } });
  const subnet = (zone: string, third: number) =>
    plugin.create(T.subnet, `subnet-${zone}`, {
      vpcId: vpc.id,
      cidrBlock: `10.${block}.${third}.0/24`,
      availabilityZone: `${REGIONS.aws}${zone}`,
    });
  const subnets = [await subnet('a', 1), await subnet('b', 2)];
  const role = await plugin.create(T.role, 'role', { name: `${name}-role`, assumeRolePolicy: '{}' });
  const subnetIds = subnets.map(({ id }) => id);
  return {
    vpc,
    subnets,
    role,
    cluster: { name, roleArn: role.outputs.arn, vpcConfig: { subnetIds } },
    nodeGroup: (nodeGroupName: string, more: object = {}) => ({
      clusterName: name,
      nodeGroupName,
      nodeRoleArn: role.outputs.arn,
      subnetIds,
      instanceTypes: ['m7i.large'],
      scalingConfig: { minSize: 1, maxSize: 3, desiredSize: 1 },
      ...more,
    }),
  };
}

/** What a GKE cluster needs. */
export async function gcpGround(plugin: Plugin, name: string) {
  const network = await plugin.create(T.network, 'network', { name, autoCreateSubnetworks: false });
  const subnetwork = await plugin.create(T.subnetwork, 'subnetwork', {
    name: `${name}-nodes`,
    network: network.id,
    region: REGIONS.gcp,
    ipCidrRange: '10.0.0.0/20',
  });
  return {
    network,
    subnetwork,
    cluster: {
      name,
      location: REGIONS.gcp,
      network: network.id,
      subnetwork: subnetwork.id,
      minMasterVersion: '1.36',
      deletionProtection: false,
    },
  };
}

/** What an AKS cluster needs. */
export async function azureGround(plugin: Plugin, name: string) {
  const common = { resourceGroupName: name, location: REGIONS['azure-native'] };
  const group = await plugin.create(T.group, 'group', common);
  const vnet = await plugin.create(T.vnet, 'vnet', {
    ...common,
    virtualNetworkName: name,
    addressSpace: { addressPrefixes: ['10.0.0.0/16'] },
    subnets: [{ name: 'nodes', addressPrefix: '10.0.0.0/20' }],
  });
  const vnetSubnetID = `${vnet.id}/subnets/nodes`;
  return {
    group,
    vnet,
    cluster: {
      ...common,
      resourceName: name,
      dnsPrefix: name,
      kubernetesVersion: '1.35.4',
      agentPoolProfiles: [{ name: 'system', mode: 'System', count: 2, vmSize: 'Standard_D4s_v5', vnetSubnetID }],
    },
    agentPool: (agentPoolName: string, more: object = {}) => ({
      resourceGroupName: name,
      resourceName: name,
      agentPoolName,
      mode: 'User',
      count: 1,
      vmSize: 'Standard_D8s_v5',
      vnetSubnetID,
      ...more,
    }),
  };
}
