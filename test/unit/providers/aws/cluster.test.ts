import { describe, expect, it } from 'vitest';
import { cluster } from '../../../../providers/aws/programs/cluster.ts';
import type { CloudPool, ManagedClusterInputs } from '../../../../providers/cloud.ts';
import type { Graph } from '../../../kit/pulumi-graph.ts';
import { answers, cloudPool, clusterInputs, graphOf, untagged } from './fixtures.ts';

const CLUSTER = 'aws:eks/cluster:Cluster';
const GROUP = 'aws:eks/nodeGroup:NodeGroup';
const TEMPLATE = 'aws:ec2/launchTemplate:LaunchTemplate';
const ADDON = 'aws:eks/addon:Addon';

const made = (changes: Partial<ManagedClusterInputs> = {}) => graphOf(cluster, clusterInputs(changes), answers);
const madePool = async (changes: Partial<CloudPool>) =>
  (await made({ pools: [cloudPool(changes)] })).one(GROUP, `pool-${changes.name ?? 'default'}`);

/** Policies by role, for each role who may take it. */
function rolesOf(graph: Graph): Record<string, { who: string; policies: string[] }> {
  return Object.fromEntries(
    graph.all('aws:iam/role:Role').map(({ inputs }) => {
      const attached = graph.all('aws:iam/rolePolicyAttachment:RolePolicyAttachment');
      const policies = attached.filter((link) => link.inputs.role === inputs.name).map((link) => link.inputs.policyArn);
      const { Principal, Action } = JSON.parse(inputs.assumeRolePolicy).Statement[0];
      return [inputs.name, { who: `${Principal.Service} ${Action}`, policies: policies.sort() }];
    }),
  );
}

describe('an EKS cluster', () => {
  it('has private nodes, access entries only, and Secrets encrypted with its own key', async () => {
    const graph = await made();
    const { inputs, options } = graph.one(CLUSTER);
    expect(inputs).toMatchObject({
      name: 'shoot--shop--one',
      version: '1.36',
      vpcConfig: {
        subnetIds: ['subnet-a', 'subnet-b', 'subnet-c'],
        endpointPrivateAccess: true,
        endpointPublicAccess: true,
        publicAccessCidrs: ['0.0.0.0/0'],
      },
      accessConfig: { authenticationMode: 'API', bootstrapClusterCreatorAdminPermissions: false },
      encryptionConfig: { provider: { keyArn: '<secrets.arn>' }, resources: ['secrets'] },
      kubernetesNetworkConfig: { serviceIpv4Cidr: '172.20.0.0/16' },
      bootstrapSelfManagedAddons: false,
    });
    expect(options.ignoreChanges).toEqual([
      'accessConfig.bootstrapClusterCreatorAdminPermissions',
      'bootstrapSelfManagedAddons',
    ]);
    expect(graph.one('aws:kms/key:Key').inputs).toMatchObject({ enableKeyRotation: true, deletionWindowInDays: 7 });
    expect(graph.one('aws:kms/alias:Alias').inputs).toMatchObject({
      name: 'alias/shoot--shop--one-secrets',
      targetKeyId: '<secrets.id>',
    });
  });

  it('keeps its add-ons while it sleeps, so that no wake-up waits for them', async () => {
    const addons = async (changes: Partial<ManagedClusterInputs>) =>
      (await made(changes)).all(ADDON).map(({ name }) => name);
    const pools = [cloudPool({ minimum: 0, desired: 0 })];
    expect(await addons({ pools, asleep: true })).toEqual(await addons({}));
    expect(await addons({ pools })).not.toContain('addon-coredns');
  });

  it('is reachable from authorized networks only, if there are any', async () => {
    const { inputs } = (await made({ authorizedNetworks: ['192.0.2.0/24'] })).one(CLUSTER);
    expect(inputs.vpcConfig.publicAccessCidrs).toEqual(['192.0.2.0/24']);
  });

  it('has roles with the least permissions', async () => {
    expect(rolesOf(await made())).toEqual({
      'shoot--shop--one-cluster': {
        who: 'eks.amazonaws.com sts:AssumeRole',
        policies: ['arn:aws:iam::aws:policy/AmazonEKSClusterPolicy'],
      },
      'shoot--shop--one-node': {
        who: 'ec2.amazonaws.com sts:AssumeRole',
        policies: [
          'arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly',
          'arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy',
        ],
      },
      'shoot--shop--one-cni': {
        who: 'pods.eks.amazonaws.com sts:AssumeRole,sts:TagSession',
        policies: ['arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy'],
      },
      'shoot--shop--one-csi': {
        who: 'pods.eks.amazonaws.com sts:AssumeRole,sts:TagSession',
        policies: ['arn:aws:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy'],
      },
    });
  });

  it('uses the policies and principals of its partition', async () => {
    const roles = rolesOf(await made({ region: 'cn-north-1' }));
    expect(roles['shoot--shop--one-node']).toMatchObject({
      who: 'ec2.amazonaws.com.cn sts:AssumeRole',
      policies: [expect.stringMatching(/^arn:aws-cn:iam::aws:policy\//), expect.anything()],
    });
  });

  it('is administered by the principal of the credentials, whoever created it', async () => {
    const graph = await made();
    const principalArn = 'arn:aws:iam::123456789012:role/teams/coppice';
    expect(graph.one('aws:eks/accessEntry:AccessEntry').inputs).toMatchObject({ principalArn });
    expect(graph.one('aws:eks/accessPolicyAssociation:AccessPolicyAssociation').inputs).toMatchObject({
      principalArn,
      policyArn: 'arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy',
      accessScope: { type: 'cluster' },
    });
  });

  it('outputs how to reach it', async () => {
    expect((await made()).outputs).toEqual({
      name: 'shoot--shop--one',
      endpoint: 'https://one.eks.example',
      certificateAuthority: 'CA\n',
      version: '1.36',
      extra: {
        arn: '<cluster.arn>',
        issuer: 'https://oidc.example/one',
        securityGroup: 'sg-cluster',
        nodeRole: '<role-node.arn>',
      },
    });
  });

  it('tags all its resources with the owner', async () => {
    expect(untagged(await made({ pools: [cloudPool(), cloudPool({ name: 'spot', spot: true })] }))).toEqual([]);
  });
});

describe('the add-ons of an EKS cluster', () => {
  it("match the cluster's version; pod network and identities come before the nodes", async () => {
    const graph = await made();
    const addons = Object.fromEntries(
      graph.all(ADDON).map(({ inputs, options }) => [inputs.addonName, { inputs, options }]),
    );
    expect(Object.keys(addons).sort()).toEqual([
      'aws-ebs-csi-driver',
      'coredns',
      'eks-pod-identity-agent',
      'kube-proxy',
      'vpc-cni',
    ]);
    expect(addons.coredns!.inputs.addonVersion).toBe('coredns for 1.36');
    expect(graph.one(GROUP).options.dependsOn).toEqual([
      'role-node-AmazonEKSWorkerNodePolicy',
      'role-node-AmazonEC2ContainerRegistryPullOnly',
      'addon-vpc-cni',
      'addon-kube-proxy',
      'addon-eks-pod-identity-agent',
    ]);
    expect(addons.coredns!.options.dependsOn).toEqual(['pool-default']);
  });

  it('get their roles by Pod Identity', async () => {
    const graph = await made();
    const identity = (name: string) => graph.one(ADDON, `addon-${name}`).inputs.podIdentityAssociations;
    expect(identity('vpc-cni')).toEqual([{ serviceAccount: 'aws-node', roleArn: '<role-cni.arn>' }]);
    expect(identity('aws-ebs-csi-driver')).toEqual([
      { serviceAccount: 'ebs-csi-controller-sa', roleArn: '<role-csi.arn>' },
    ]);
  });

  it('tag network interfaces and volumes that they create with the owner', async () => {
    const graph = await made();
    const configuration = (name: string) => JSON.parse(graph.one(ADDON, `addon-${name}`).inputs.configurationValues);
    expect(JSON.parse(configuration('vpc-cni').env.ADDITIONAL_ENI_TAGS)).toMatchObject({ 'coppice-uid': '0b3c' });
    expect(configuration('aws-ebs-csi-driver').controller.extraVolumeTags).toMatchObject({ 'coppice-uid': '0b3c' });
  });

  it.each<[string, Partial<CloudPool>]>([
    ['no node', { minimum: 0, desired: 0 }],
    ['tainted nodes only', { taints: [{ key: 'gpu', effect: 'NoSchedule' }] }],
  ])('are not awaited if they need a node, in a cluster with %s', async (_what, changes) => {
    const graph = await made({ pools: [cloudPool(changes)] });
    const names = graph.all(ADDON).map(({ inputs }) => inputs.addonName);
    expect(names.sort()).toEqual(['eks-pod-identity-agent', 'kube-proxy', 'vpc-cni']);
  });
});

describe('an EKS node group', () => {
  it('has as many nodes as its pool', async () => {
    const { inputs, options } = await madePool({ minimum: 1, maximum: 5, desired: 3 });
    expect(inputs.scalingConfig).toEqual({ minSize: 1, maxSize: 5, desiredSize: 3 });
    expect(options.ignoreChanges).toBeUndefined();
  });

  it('keeps its size on apply while an autoscaler decides', async () => {
    const pool = cloudPool({ minimum: 2 });
    delete pool.desired;
    const { inputs, options } = (await made({ pools: [pool] })).one(GROUP);
    expect(inputs.scalingConfig.desiredSize).toBe(2);
    expect(options.ignoreChanges).toEqual(['scalingConfig.desiredSize']);
  });

  it('can be empty', async () => {
    const { inputs } = await madePool({ minimum: 0, maximum: 0, desired: 0 });
    expect(inputs.scalingConfig).toEqual({ minSize: 0, maxSize: 1, desiredSize: 0 });
  });

  it.each<[Partial<CloudPool>, object]>([
    [{}, { amiType: 'AL2023_x86_64_STANDARD', capacityType: 'ON_DEMAND', instanceTypes: ['m5.large'] }],
    [{ architecture: 'arm64', machineType: 'm7g.large' }, { amiType: 'AL2023_ARM_64_STANDARD' }],
    [{ gpu: 1, machineType: 'g5.xlarge' }, { amiType: 'AL2023_x86_64_NVIDIA' }],
    [{ gpu: 1, architecture: 'arm64', machineType: 'g5g.xlarge' }, { amiType: 'AL2023_ARM_64_NVIDIA' }],
    [{ spot: true }, { capacityType: 'SPOT' }],
    [{ zones: ['eu-central-1b'] }, { subnetIds: ['subnet-b'] }],
    [{ labels: { tier: 'web' } }, { labels: { tier: 'web', 'multi-cluster.demo.io/pool': 'default' } }],
    [
      {
        taints: [
          { key: 'a', value: 'b', effect: 'NoExecute' },
          { key: 'c', effect: 'PreferNoSchedule' },
        ],
      },
      {
        taints: [
          { key: 'a', value: 'b', effect: 'NO_EXECUTE' },
          { key: 'c', effect: 'PREFER_NO_SCHEDULE' },
        ],
      },
    ],
  ])('has machines that match pool %j', async (changes, expected) => {
    expect((await madePool(changes)).inputs).toMatchObject({ version: '1.36', ...expected });
  });

  it('has machines with metadata unreachable from pods, encrypted disks, and tags down to the volume', async () => {
    const graph = await made({ pools: [cloudPool({ diskGiB: 80 })] });
    const { inputs } = graph.one(TEMPLATE);
    expect(inputs.metadataOptions).toEqual({
      httpEndpoint: 'enabled',
      httpTokens: 'required',
      httpPutResponseHopLimit: 1,
    });
    expect(inputs.blockDeviceMappings).toEqual([
      {
        deviceName: '/dev/xvda',
        ebs: { encrypted: 'true', deleteOnTermination: 'true', volumeType: 'gp3', volumeSize: 80 },
      },
    ]);
    const tags = { 'coppice-uid': '0b3c', 'coppice-pool': 'default' };
    expect(inputs.tagSpecifications).toMatchObject([
      { resourceType: 'instance', tags },
      { resourceType: 'volume', tags },
      { resourceType: 'network-interface', tags },
    ]);
    expect(graph.one(GROUP).inputs.launchTemplate).toEqual({ id: '<pool-default.id>', version: '7' });
  });

  it('is replaced beside the old one only when its machines change', async () => {
    const name = async (changes: Partial<CloudPool>) => (await madePool(changes)).inputs.nodeGroupName;
    const plain = await name({});
    expect(plain).toMatch(/^default-[0-9a-f]{8}$/);
    for (const same of [{ maximum: 9 }, { desired: 1 }, { labels: { a: 'b' } }, { diskGiB: 100 }]) {
      expect(await name(same)).toBe(plain);
    }
    for (const other of [{ machineType: 'm5.xlarge' }, { spot: true }, { gpu: 1 }, { zones: ['eu-central-1a'] }]) {
      expect(await name(other)).not.toBe(plain);
    }
    expect(await name({ nodeGroup: plain, machineType: 'nobody knows' }), 'that is to be taken away').toBe(plain);
  });
});
