import { describe, expect, it } from 'vitest';
import { programs } from '../../../../providers/azure/programs.ts';
import type { CloudPool, ManagedClusterInputs } from '../../../../providers/cloud.ts';
import { graphOf } from '../../../kit/pulumi-graph.ts';
import { answers, autoscaled, clusterInputs, pool, refusal, subnet, subscription, tags } from './fixtures.ts';

const CLUSTER = 'azure-native:containerservice:ManagedCluster';
const AGENT_POOL = 'azure-native:containerservice:AgentPool';
const GRANT = 'azure-native:authorization:RoleAssignment';
const NETWORK_CONTRIBUTOR = '4d97b98b-1d4f-4787-a291-c67834d212e7';
const AKS_RBAC_CLUSTER_ADMIN = 'b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b';

const plain = graphOf(programs.cluster!, clusterInputs(), answers);
const declared = async (changes?: Partial<ManagedClusterInputs>) =>
  changes ? await graphOf(programs.cluster!, clusterInputs(changes), answers) : await plain;
const clusterOf = async (changes?: Partial<ManagedClusterInputs>) => (await declared(changes)).one(CLUSTER);
const role = (id: string) => `/subscriptions/${subscription}/providers/Microsoft.Authorization/roleDefinitions/${id}`;

describe('an AKS cluster', () => {
  it('is in the resource group of its network, and its nodes are in a group with a fixed name', async () => {
    expect((await clusterOf()).inputs).toMatchObject({
      resourceName: 'shoot--shop--one',
      resourceGroupName: 'shoot--shop--one',
      nodeResourceGroup: 'shoot--shop--one-nodes',
      dnsPrefix: 'shoot--shop--one',
      location: 'germanywestcentral',
      sku: { name: 'Base', tier: 'Standard' },
    });
  });

  it('has an overlay pod network with Cilium, and egress by the NAT gateway', async () => {
    expect((await clusterOf()).inputs.networkProfile).toEqual({
      networkPlugin: 'azure',
      networkPluginMode: 'overlay',
      networkDataplane: 'cilium',
      networkPolicy: 'cilium',
      podCidr: '100.96.0.0/11',
      serviceCidr: '100.64.0.0/13',
      dnsServiceIP: '100.64.0.10',
      outboundType: 'userAssignedNATGateway',
      loadBalancerSku: 'standard',
    });
  });

  it('stays at the requested version, and so do its nodes', async () => {
    const { inputs } = await clusterOf();
    expect(inputs).toMatchObject({
      kubernetesVersion: '1.36.3',
      autoUpgradeProfile: { upgradeChannel: 'none', nodeOSUpgradeChannel: 'Unmanaged' },
    });
    expect(inputs.agentPoolProfiles[0].orchestratorVersion).toBe('1.36.3');
    expect((await plain).one(AGENT_POOL).inputs.orchestratorVersion).toBe('1.36.3');
  });

  it('authenticates people by Entra ID only, and workloads by workload identity', async () => {
    expect((await clusterOf()).inputs).toMatchObject({
      disableLocalAccounts: true,
      enableRBAC: true,
      aadProfile: { managed: true, enableAzureRBAC: true },
      oidcIssuerProfile: { enabled: true },
      securityProfile: { workloadIdentity: { enabled: true } },
    });
  });

  it("has an identity that may only use the nodes' subnet, assigned before it starts", async () => {
    const graph = await declared();
    const { inputs, options } = graph.one(CLUSTER);
    expect(inputs.identity).toEqual({ type: 'UserAssigned', userAssignedIdentities: ['<identity.id>'] });
    expect(options.dependsOn).toContain('subnet');
    const grants = graph.all(GRANT).filter((grant) => grant.inputs.principalId === 'principal of shoot--shop--one-aks');
    expect(grants.map((grant) => grant.inputs)).toEqual([
      {
        roleAssignmentName: expect.stringMatching(/^[0-9a-f-]{36}$/),
        scope: subnet,
        principalId: 'principal of shoot--shop--one-aks',
        principalType: 'ServicePrincipal',
        roleDefinitionId: role(NETWORK_CONTRIBUTOR),
      },
    ]);
  });

  it('makes Coppice administrator of this cluster only', async () => {
    const grants = (await declared()).all(GRANT).filter((grant) => grant.inputs.principalId === 'us');
    expect(grants).toHaveLength(1);
    const scope = `/subscriptions/${subscription}/resourceGroups/shoot--shop--one/providers/Microsoft.ContainerService/managedClusters/shoot--shop--one`;
    expect(grants[0]!.inputs).toMatchObject({ scope, roleDefinitionId: role(AKS_RBAC_CLUSTER_ADMIN) });
    expect(grants[0]!.options).toMatchObject({ deleteBeforeReplace: true, dependsOn: ['cluster'] });
  });

  it('is open to authorized networks and its own nodes, or to all without authorized networks', async () => {
    expect((await clusterOf()).inputs.apiServerAccessProfile).toEqual({ authorizedIPRanges: [] });
    const { inputs } = await clusterOf({ authorizedNetworks: ['198.51.100.0/24'] });
    expect(inputs.apiServerAccessProfile).toEqual({ authorizedIPRanges: ['198.51.100.0/24', '203.0.113.7/32'] });
  });

  it("runs AKS' components on a small system pool over all zones, without other workloads", async () => {
    const { inputs } = await clusterOf();
    expect(inputs.agentPoolProfiles).toEqual([
      expect.objectContaining({
        name: 'system',
        mode: 'System',
        vmSize: 'Standard_D4s_v5',
        count: 2,
        enableAutoScaling: false,
        availabilityZones: ['1', '2', '3'],
        vnetSubnetID: subnet,
        enableNodePublicIP: false,
        nodeTaints: ['CriticalAddonsOnly=true:NoSchedule'],
        tags: { ...tags, 'coppice-pool': 'system' },
      }),
    ]);
  });

  it('has no zones in a region without zones', async () => {
    const graph = await declared({ zones: [] });
    expect(graph.one(CLUSTER).inputs.agentPoolProfiles[0]).not.toHaveProperty('availabilityZones');
    expect(graph.one(AGENT_POOL).inputs).not.toHaveProperty('availabilityZones');
  });

  it('has an agent pool for each pool, created after the cluster', async () => {
    const graph = await declared({ pools: [pool(), autoscaled({ name: 'spot-gpu', spot: true })] });
    const pools = graph.all(AGENT_POOL);
    expect(pools.map(({ name }) => name)).toEqual(['pool-spot-gpu', 'pool-workers']);
    for (const { inputs, options } of pools) {
      expect(inputs).toMatchObject({ resourceGroupName: 'shoot--shop--one', resourceName: 'shoot--shop--one' });
      expect(inputs.agentPoolName).toMatch(/^[a-z][a-z0-9]{0,11}$/);
      expect(options.dependsOn).toContain('cluster');
      expect(options.deleteBeforeReplace).toBe(false);
    }
  });

  it('leaves the size of an autoscaled pool to the autoscaler', async () => {
    const grown = autoscaled({ name: 'grown', minimum: 2, maximum: 9 });
    const countOf = async (changed: CloudPool) => (await declared({ pools: [changed] })).one(AGENT_POOL).inputs.count;
    expect(await countOf(grown)).toBe(7);
    expect(await countOf({ ...grown, maximum: 5 })).toBe(5);
    expect(await countOf({ ...grown, minimum: 8 })).toBe(8);
    expect(await countOf({ ...grown, name: 'new' })).toBe(2);
  });

  it('shrinks no pool when Azure does not return its size', async () => {
    const call = (token: string) => {
      if (token.endsWith('getAgentPool')) throw refusal('RESPONSE 429: too many requests');
      return answers.call!(token, {});
    };
    const asked = graphOf(programs.cluster!, clusterInputs({ pools: [autoscaled()] }), { ...answers, call });
    await expect(asked).rejects.toThrow('429');
  });

  it('can be declared without ranges and pools for its deletion', async () => {
    const cidrs = { nodes: '', pods: '', services: '' };
    const graph = await declared({ pools: [], cidrs, zones: [], kubernetesVersion: '' });
    expect(graph.one(CLUSTER).inputs.resourceName).toBe('shoot--shop--one');
  });

  it('tags all resources that permit tags with the owner', async () => {
    for (const { type, inputs } of (await declared()).resources) {
      if (type !== GRANT) expect(inputs.tags, type).toMatchObject(tags);
    }
  });

  it('outputs what access to it needs', async () => {
    expect((await declared()).outputs).toEqual({
      name: 'shoot--shop--one',
      endpoint: 'https://shoot--shop--one-x.hcp.germanywestcentral.azmk8s.io',
      certificateAuthority: 'CERTIFICATE',
      version: '1.36.3',
      extra: { id: '<cluster.id>', localAccounts: 'false' },
    });
  });
});
