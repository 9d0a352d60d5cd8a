import { X509Certificate } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Plugin } from '../../kit/cloud/client.ts';
import { awsGround, azureGround, cloudForFile, gcpGround, REGIONS, T } from './testbed.ts';

const fake = cloudForFile();
let aws: Plugin;
let gcp: Plugin;
let azure: Plugin;

beforeAll(async () => {
  [aws, gcp, azure] = await Promise.all([fake.plugin('aws'), fake.plugin('gcp'), fake.plugin('azure-native')]);
});

const certificate = (base64: string) => new X509Certificate(Buffer.from(base64, 'base64'));

describe('the resources of the fake cloud', () => {
  it('include an EKS cluster from which a kubeconfig can be made', async () => {
    const account = fake.cloud.account('aws').id;
    const ground = await awsGround(aws, 'looks', 10);
    const { id, outputs } = await aws.create(T.cluster, 'cluster', { ...ground.cluster, version: '1.36' });
    expect(id).toBe('looks');
    expect(outputs).toMatchObject({
      arn: `arn:aws:eks:${REGIONS.aws}:${account}:cluster/looks`,
      status: 'ACTIVE',
      version: '1.36',
      vpcConfig: { vpcId: ground.vpc.id },
    });
    expect(outputs.endpoint).toMatch(/^https:\/\/[0-9A-F]{32}\.gr7\.eu-central-1\.eks\.amazonaws\.com$/);
    expect(outputs.identities[0].oidcs[0].issuer).toContain('https://oidc.eks.eu-central-1.amazonaws.com/id/');
    expect(certificate(outputs.certificateAuthority.data).ca).toBe(true);
    expect(ground.role.outputs.arn).toBe(`arn:aws:iam::${account}:role/looks-role`);

    const group = await aws.create(T.nodeGroup, 'pool', ground.nodeGroup('pool'));
    expect(group).toMatchObject({ id: 'looks:pool', outputs: { status: 'ACTIVE' } });
  });

  it('include launch templates with version numbers', async () => {
    const { id, outputs } = await aws.create(T.launchTemplate, 'template', {
      name: 'versions',
      instanceType: 'm7i.large',
    });
    expect(id).toMatch(/^lt-[0-9a-f]{17}$/);
    expect(outputs.latestVersion).toBe(1);
    const after = await aws.update(T.launchTemplate, id, outputs, { name: 'versions', instanceType: 'm7i.xlarge' });
    expect(after.latestVersion).toBe(2);
  });

  it('include a GKE cluster with its node pool', async () => {
    const project = fake.cloud.account('gcp').id;
    const ground = await gcpGround(gcp, 'looks');
    expect(ground.network.id).toBe(`projects/${project}/global/networks/looks`);
    expect(ground.network.outputs.selfLink).toBe(`https://www.googleapis.com/compute/v1/${ground.network.id}`);
    const { id, outputs, marked } = await gcp.create(T.gke, 'cluster', ground.cluster);
    expect(id).toBe(`projects/${project}/locations/${REGIONS.gcp}/clusters/looks`);
    expect(outputs.endpoint).toMatch(/^[\d.]+$/);
    expect(outputs.masterVersion).toMatch(/^1\.36\.1-gke\./);
    expect(certificate(outputs.masterAuth.clusterCaCertificate).ca).toBe(true);
    expect(marked.masterAuth).toMatchObject({ '4dabf18193072939515e22adb298388d': expect.anything() });

    const pool = await gcp.create(T.nodePool, 'pool', {
      name: 'pool',
      cluster: 'looks',
      location: REGIONS.gcp,
      nodeCount: 1,
    });
    expect(pool.id).toBe(`${project}/${REGIONS.gcp}/looks/pool`);
    expect(pool.outputs.version).toBe(outputs.masterVersion);
  });

  it('include an AKS cluster with its agent pool and kubeconfig', async () => {
    const subscription = fake.cloud.account('azure-native').id;
    const ground = await azureGround(azure, 'looks');
    const { id, outputs } = await azure.create(T.aks, 'cluster', ground.cluster);
    expect(id).toBe(
      `/subscriptions/${subscription}/resourceGroups/looks/providers/Microsoft.ContainerService/managedClusters/looks`,
    );
    expect(outputs).toMatchObject({ provisioningState: 'Succeeded', currentKubernetesVersion: '1.35.4' });
    expect(outputs.fqdn).toMatch(/^looks-[0-9a-f]{8}\.hcp\.germanywestcentral\.azmk8s\.io$/);
    await azure.create(T.agentPool, 'pool', ground.agentPool('pool'));
    const found = await azure.read(T.aks, id.toUpperCase());
    expect(found?.outputs.agentPoolProfiles.map(({ name }: { name: string }) => name)).toEqual(['system', 'pool']);

    const { kubeconfigs } = await azure.invoke('azure-native:containerservice:listManagedClusterUserCredentials', {
      resourceGroupName: 'looks',
      resourceName: 'looks',
    });
    const kubeconfig = JSON.parse(Buffer.from(kubeconfigs[0].value, 'base64').toString());
    expect(kubeconfig.clusters[0].cluster.server).toBe(`https://${outputs.fqdn}:443`);
    expect(certificate(kubeconfig.clusters[0].cluster['certificate-authority-data']).ca).toBe(true);
  });

  it('can be looked up by programs', async () => {
    expect(
      await aws.invoke('aws:index/getAvailabilityZones:getAvailabilityZones', { state: 'available' }),
    ).toMatchObject({
      names: ['eu-central-1a', 'eu-central-1b', 'eu-central-1c'],
    });
    expect(await aws.invoke('aws:index/getCallerIdentity:getCallerIdentity', {})).toMatchObject({
      accountId: fake.cloud.account('aws').id,
    });
    expect(await gcp.invoke('gcp:organizations/getProject:getProject', {})).toMatchObject({
      projectId: fake.cloud.account('gcp').id,
    });
    await expect(aws.invoke('aws:ec2/getNothing:getNothing', {})).rejects.toThrow('add it to lookups.ts');
  });

  it('include unknown types, whose inputs become their outputs', async () => {
    const { id, outputs } = await aws.create('aws:sqs/queue:Queue', 'queue', { name: 'jobs', delaySeconds: 3 });
    expect(outputs).toMatchObject({ name: 'jobs', delaySeconds: 3, arn: expect.stringContaining(':sqs:') });
    expect(await aws.read('aws:sqs/queue:Queue', id)).toMatchObject({ inputs: { name: 'jobs', delaySeconds: 3 } });
  });

  it("have the provider's tags besides their own", async () => {
    const tagging = await fake.plugin('aws', { more: { defaultTags: JSON.stringify({ tags: { cost: 'shop' } }) } });
    const { id, outputs } = await tagging.create(T.vpc, 'vpc', { cidrBlock: '10.99.0.0/16', tags: { Name: 'tagged' } });
    expect(outputs.tagsAll).toEqual({ cost: 'shop', Name: 'tagged' });
    expect(fake.cloud.resources({ tags: { cost: 'shop' } }).map((one) => one.id)).toEqual([id]);
    const { resourceTagMappingLists: tagged } = await tagging.invoke(
      'aws:resourcegroupstaggingapi/getResources:getResources',
      { tagFilters: [{ key: 'cost', values: ['shop'] }] },
    );
    expect(tagged.map((one: { resourceArn: string }) => one.resourceArn)).toEqual([outputs.arn]);
  });
});

describe('the fake cloud refuses', () => {
  it.each([
    [
      'a role',
      () => aws,
      T.role,
      { name: 'twice', assumeRolePolicy: '{}' },
      'EntityAlreadyExists: Role with name twice already exists.',
    ],
    [
      'a launch template',
      () => aws,
      T.launchTemplate,
      { name: 'twice' },
      'InvalidLaunchTemplateName.AlreadyExistsException',
    ],
    ['a network', () => gcp, T.network, { name: 'twice' }, "networks/twice' already exists, alreadyExists"],
    [
      'a resource group',
      () => azure,
      T.group,
      { resourceGroupName: 'twice', location: 'germanywestcentral' },
      'cannot create already existing resource',
    ],
  ] as const)('a second resource of the same name: %s', async (_, plugin, token, inputs, message) => {
    await plugin().create(token, 'first', inputs);
    await expect(plugin().create(token, 'second', inputs)).rejects.toThrow(message);
    expect(fake.cloud.resources({ type: token, name: 'twice' })).toHaveLength(1);
  });

  it('a second cluster or pool of the same name', async () => {
    const ground = await awsGround(aws, 'twice', 20);
    await aws.create(T.cluster, 'first', ground.cluster);
    await aws.create(T.nodeGroup, 'first', ground.nodeGroup('pool'));
    await expect(aws.create(T.cluster, 'second', ground.cluster)).rejects.toThrow(
      'ResourceInUseException: Cluster already exists with name: twice',
    );
    await expect(aws.create(T.nodeGroup, 'second', ground.nodeGroup('pool'))).rejects.toThrow(
      'NodeGroup already exists with name pool and cluster name twice',
    );
  });

  it('no duplicates of resources without unique names, like the real cloud', async () => {
    const vpc = { cidrBlock: '10.21.0.0/16', tags: { Name: 'both' } };
    const made = [await aws.create(T.vpc, 'one', vpc), await aws.create(T.vpc, 'two', vpc)];
    expect(new Set(made.map(({ id }) => id)).size).toBe(2);
  });

  it('no name used in another region or account', async () => {
    const template = { name: 'everywhere', instanceType: 'm7i.large' };
    await aws.create(T.launchTemplate, 'here', template);
    const elsewhere = await fake.plugin('aws', { region: 'us-east-1' });
    await elsewhere.create(T.launchTemplate, 'there', template);
    const other = await fake.plugin('aws', { account: fake.cloud.account('aws', 2) });
    const { id } = await other.create(T.launchTemplate, 'theirs', template);
    expect(fake.cloud.resources({ type: T.launchTemplate, name: 'everywhere' })).toHaveLength(3);
    expect(await aws.read(T.launchTemplate, id), 'of another account').toBeUndefined();
  });

  it('references to missing resources', async () => {
    const ground = await awsGround(aws, 'lonely', 22);
    await expect(aws.create(T.subnet, 'subnet', { vpcId: 'vpc-0', cidrBlock: '10.0.0.0/24' })).rejects.toThrow(
      "InvalidVpcID.NotFound: The vpc ID 'vpc-0' does not exist",
    );
    await expect(aws.create(T.nodeGroup, 'pool', ground.nodeGroup('pool'))).rejects.toThrow(
      'ResourceNotFoundException: No cluster found for name: lonely.',
    );
    await expect(
      gcp.create(T.nodePool, 'pool', { name: 'pool', cluster: 'lonely', location: REGIONS.gcp }),
    ).rejects.toThrow('Not found: lonely., notFound');
    await expect(
      azure.create(T.vnet, 'vnet', { resourceGroupName: 'lonely', virtualNetworkName: 'lonely', location: 'x' }),
    ).rejects.toThrow(`Code="ResourceGroupNotFound" Message="Resource group 'lonely' could not be found."`);
  });

  it('subnets outside of their network, or overlapping another one', async () => {
    const { vpc } = await awsGround(aws, 'crowded', 23);
    const subnet = (cidrBlock: string) => aws.create(T.subnet, 'subnet', { vpcId: vpc.id, cidrBlock });
    await expect(subnet('10.24.0.0/24')).rejects.toThrow('InvalidSubnet.Range');
    await expect(subnet('10.23.1.128/25')).rejects.toThrow('InvalidSubnet.Conflict');
    await subnet('10.23.3.0/24');
  });

  it('the deletion of resources in use', async () => {
    const ground = await awsGround(aws, 'used', 25);
    await aws.create(T.attachment, 'attachment', { role: 'used-role', policyArn: 'arn:aws:iam::aws:policy/Some' });
    await aws.create(T.cluster, 'cluster', ground.cluster);
    await aws.create(T.nodeGroup, 'pool', ground.nodeGroup('pool'));
    await expect(aws.delete(T.vpc, ground.vpc.id)).rejects.toThrow('DependencyViolation');
    await expect(aws.delete(T.role, 'used-role')).rejects.toThrow('DeleteConflict');
    await expect(aws.delete(T.cluster, 'used')).rejects.toThrow('Cluster has nodegroups attached');
    await aws.delete(T.nodeGroup, 'used:pool');
    await aws.delete(T.cluster, 'used');
    expect(await aws.read(T.cluster, 'used')).toBeUndefined();

    const net = await gcpGround(gcp, 'used');
    await expect(gcp.delete(T.network, net.network.id)).rejects.toThrow(
      `is already being used by '${net.subnetwork.id}', resourceInUseByAnotherResource`,
    );
    const azureNet = await azureGround(azure, 'used');
    await azure.create(T.aks, 'cluster', azureNet.cluster);
    await expect(azure.delete(T.vnet, azureNet.vnet.id)).rejects.toThrow('Code="InUseSubnetCannotBeDeleted"');
  });

  it('upgrades that skip a minor version', async () => {
    const ground = await awsGround(aws, 'upgrades', 26);
    const at = (version: string) => ({ ...ground.cluster, version });
    const { outputs } = await aws.create(T.cluster, 'cluster', at('1.34'));
    await expect(aws.update(T.cluster, 'upgrades', outputs, at('1.36'))).rejects.toThrow(
      'Unsupported Kubernetes minor version update from 1.34 to 1.36',
    );
    expect(await aws.update(T.cluster, 'upgrades', outputs, at('1.35'))).toMatchObject({ version: '1.35' });

    const azureNet = await azureGround(azure, 'upgrades');
    const { id } = await azure.create(T.aks, 'cluster', azureNet.cluster);
    const to = (kubernetesVersion: string) => azure.update(T.aks, id, {}, { ...azureNet.cluster, kubernetesVersion });
    await expect(to('1.37.0')).rejects.toThrow('Upgrading Kubernetes version 1.35.4 to 1.37.0 is not allowed.');
    expect(await to('1.36.1')).toMatchObject({ kubernetesVersion: '1.36.1' });
  });

  it('agent pools added through the cluster', async () => {
    const ground = await azureGround(azure, 'pools');
    const { id } = await azure.create(T.aks, 'cluster', ground.cluster);
    const more = [...ground.cluster.agentPoolProfiles, { name: 'more', count: 1, vmSize: 'Standard_D8s_v5' }];
    await expect(azure.update(T.aks, id, {}, { ...ground.cluster, agentPoolProfiles: more })).rejects.toThrow(
      'A new agent pool was introduced.',
    );
  });
});

describe('a deletion in the fake cloud', () => {
  it('of a resource group includes its contents', async () => {
    const ground = await azureGround(azure, 'together');
    await azure.create(T.aks, 'cluster', ground.cluster);
    await azure.create(T.agentPool, 'pool', ground.agentPool('pool'));
    await azure.delete(T.group, ground.group.id);
    expect(fake.cloud.resources({ name: 'together' })).toEqual([]);
    expect(await azure.read(T.agentPool, `${ground.group.id}/x`)).toBeUndefined();
  });

  it('of a GKE cluster includes its node pools', async () => {
    const ground = await gcpGround(gcp, 'together');
    const { id } = await gcp.create(T.gke, 'cluster', ground.cluster);
    const pool = await gcp.create(T.nodePool, 'pool', { name: 'pool', cluster: 'together', location: REGIONS.gcp });
    await gcp.delete(T.gke, id);
    expect(await gcp.read(T.nodePool, pool.id)).toBeUndefined();
  });

  it('of a resource that Google never deletes hides it', async () => {
    const ring = { name: 'forever', location: REGIONS.gcp };
    const { id } = await gcp.create(T.keyRing, 'ring', ring);
    await gcp.delete(T.keyRing, id);
    expect(fake.cloud.resources({ type: T.keyRing })).toEqual([]);
    await expect(gcp.create(T.keyRing, 'ring', ring)).rejects.toThrow('alreadyExists');
  });

  it('can be repeated', async () => {
    const { id } = await aws.create(T.vpc, 'vpc', { cidrBlock: '10.27.0.0/16' });
    await aws.delete(T.vpc, id);
    await aws.delete(T.vpc, id);
  });
});
