import { describe, expect, it } from 'vitest';
import { existingAt, resourceID } from '../../../../providers/azure/existing.ts';
import { programs } from '../../../../providers/azure/programs.ts';
import { graphOf } from '../../../kit/pulumi-graph.ts';
import { type Answer, context, FakeAzure } from './fake-azure.ts';
import { answers, clusterInputs, machinesInputs, networkInputs, subscription, tags } from './fixtures.ts';

const group = `/subscriptions/${subscription}/resourceGroups/shoot--shop--one`;
const wanted = (type: string, inputs: Record<string, unknown>) => ({ urn: 'urn', type, name: 'x', inputs });
const CLUSTER = wanted('azure-native:containerservice:ManagedCluster', {
  resourceGroupName: 'shoot--shop--one',
  resourceName: 'shoot--shop--one',
});
const POOL = wanted('azure-native:containerservice:AgentPool', { ...CLUSTER.inputs, agentPoolName: 'workers12345' });
const GRANT = wanted('azure-native:authorization:RoleAssignment', { scope: group, roleAssignmentName: 'uuid' });
const clusterID = `${group}/providers/Microsoft.ContainerService/managedClusters/shoot--shop--one`;

async function adopted(resource: typeof CLUSTER, answer: Answer | undefined) {
  await using azure = await FakeAzure.start(() => answer);
  const found = await existingAt(azure.endpoints, context())(resource, new AbortController().signal);
  return { found, paths: azure.asked.slice(1).map(({ path }) => path) };
}

describe('findExisting at Azure', () => {
  it("finds a resource with the owner's tags", async () => {
    const { found, paths } = await adopted(CLUSTER, { body: { tags } });
    expect(found).toEqual({ id: clusterID });
    expect(paths).toEqual([`${clusterID}?api-version=2025-09-01`]);
  });

  it('ignores foreign and missing resources', async () => {
    expect((await adopted(CLUSTER, { body: { tags: { ...tags, 'coppice-uid': 'earlier' } } })).found).toBeUndefined();
    expect((await adopted(CLUSTER, { body: {} })).found).toBeUndefined();
    expect((await adopted(CLUSTER, undefined)).found).toBeUndefined();
  });

  it('recognizes the owner of agent pools by inner tags, and of role assignments by name', async () => {
    expect((await adopted(POOL, { body: { properties: { tags } } })).found).toEqual({
      id: `${clusterID}/agentPools/workers12345`,
    });
    expect((await adopted(POOL, { body: { tags } })).found).toBeUndefined();
    expect((await adopted(GRANT, { body: {} })).found).toEqual({
      id: `${group}/providers/Microsoft.Authorization/roleAssignments/uuid`,
    });
  });

  it('does not search without a known name or for an unknown type', async () => {
    const nameless = wanted(CLUSTER.type, { resourceGroupName: 'shoot--shop--one' });
    expect(await adopted(nameless, { body: { tags } })).toEqual({ found: undefined, paths: [] });
    expect(await adopted(wanted('azure-native:x:Y', {}), { body: { tags } })).toEqual({ found: undefined, paths: [] });
  });

  it('waits for a cluster that Azure is still creating, as it has no address yet', async () => {
    const being = (provisioningState: string) =>
      adopted(CLUSTER, { body: { tags, properties: { provisioningState } } });
    await expect(being('Creating')).rejects.toThrow('AKS cluster shoot--shop--one is still being created');
    expect((await being('Updating')).found).toEqual({ id: clusterID });
  });

  it('uses one token for all searches', async () => {
    await using azure = await FakeAzure.start(() => ({ body: { tags } }));
    const adopt = existingAt(azure.endpoints, context());
    await Promise.all([CLUSTER, POOL, GRANT].map((resource) => adopt(resource, new AbortController().signal)));
    expect(azure.asked.filter(({ method }) => method === 'POST')).toHaveLength(1);
    expect(azure.asked.filter(({ method }) => method === 'GET')).toHaveLength(3);
  });

  it('rejects when Azure does not answer', async () => {
    await expect(adopted(CLUSTER, { status: 503, body: '' })).rejects.toMatchObject({
      code: 'ERR_RETRYABLE_INFRA_DEPENDENCIES',
    });
  });

  it('covers every type that the programs declare, by names known beforehand', async () => {
    const graphs = [
      await graphOf(programs.network!, networkInputs, answers),
      await graphOf(programs.cluster!, clusterInputs(), answers),
      await graphOf(programs.machines!, machinesInputs(), answers),
    ];
    for (const resource of graphs.flatMap((graph) => graph.resources)) {
      const id = resourceID(resource, subscription);
      expect(id, resource.type).toMatch(new RegExp(`^/subscriptions/${subscription}/resourceGroups/`));
      expect(id, resource.type).not.toContain('<');
    }
  });
});
