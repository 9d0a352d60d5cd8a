import { describe, expect, it } from 'vitest';
import { clusterOfID, lookAtAdopted } from '../../../../providers/azure/adopted.ts';
import { driftOf } from '../../../../providers/azure/drift.ts';
import { existingAt } from '../../../../providers/azure/existing.ts';
import { ADMINISTRATOR, roleAssignmentName } from '../../../../providers/azure/names.ts';
import type { adopted } from '../../../../providers/azure/programs/adopted.ts';
import { programs } from '../../../../providers/azure/programs.ts';
import { validateCluster } from '../../../../providers/azure/validate.ts';
import type { CloudPool } from '../../../../providers/cloud.ts';
import { graphOf } from '../../../kit/pulumi-graph.ts';
import { type Answer, context, FakeAzure } from './fake-azure.ts';
import { answers, clusterInputs, owner, pool, subnet, subscription, tags } from './fixtures.ts';

type AdoptedInputs = Parameters<typeof adopted>[0];

const ID = `/subscriptions/${subscription}/resourceGroups/group-1/providers/Microsoft.ContainerService/managedClusters/theirs`;
const CLUSTER = 'azure-native:containerservice:ManagedCluster';
const POOL = 'azure-native:containerservice:AgentPool';
const GRANT = 'azure-native:authorization:RoleAssignment';
const adopt = { id: ID, deletionPolicy: 'Release' as const };

describe('the ID of an AKS cluster to adopt', () => {
  it.each([
    [ID, 'group-1', 'theirs', subscription],
    [ID.replace('resourceGroups', 'resourcegroups'), 'group-1', 'theirs', subscription],
    ['group_(1).a/theirs', 'group_(1).a', 'theirs', undefined],
  ])('%s is parsed', (id, resourceGroup, name, of) => {
    expect(clusterOfID(id)).toEqual({ resourceGroup, name, ...(of && { subscription: of }) });
  });

  it.each([
    [ID, true],
    ['group-1/theirs', true],
    // In which group, it does not say.
    ['theirs', false],
    ['../theirs', false],
    ['group-1/theirs?x=', false],
    [ID.replace('managedClusters', 'agentPools'), false],
  ])('%s is valid: %s', (id, possible) => {
    const profile = { spec: { regions: [], machineTypes: [] } } as unknown as Parameters<typeof validateCluster>[1];
    const problems = validateCluster({ ...clusterInputs({ pools: [] }), adopt: { ...adopt, id } }, profile);
    expect(problems.map(({ field }) => field)).toEqual(possible ? [] : ['adopt.id']);
  });
});

describe('lookAtAdopted at Azure', () => {
  const properties = {
    provisioningState: 'Succeeded',
    powerState: { code: 'Running' },
    kubernetesVersion: '1.35',
    currentKubernetesVersion: '1.35.4',
    agentPoolProfiles: [
      { name: 'b', mode: 'System', vnetSubnetID: 'another' },
      { name: 'a', mode: 'System', vnetSubnetID: subnet },
      { name: '0', mode: 'User', vnetSubnetID: 'of a user' },
    ],
    apiServerAccessProfile: { enablePrivateCluster: true },
  };
  const described = { name: 'theirs', location: 'Germany West Central', tags: { team: 'shop' }, properties };
  const byRole = {
    ...described,
    properties: { ...properties, disableLocalAccounts: true, aadProfile: { enableAzureRBAC: true } },
  };
  const assignment = (name: string, principalId: string, scope = ID, role: string = ADMINISTRATOR.role) => ({
    name,
    properties: { scope, principalId, roleDefinitionId: `/providers/Microsoft.Authorization/roleDefinitions/${role}` },
  });

  async function look(cluster: object, { id = ID, kubernetesVersion = '' } = {}, assignments: object[] = []) {
    await using azure = await FakeAzure.start(({ path }): Answer | undefined => {
      if (path.startsWith(`${ID}?`)) return { body: cluster };
      const isList = path.startsWith(`${ID}/providers/Microsoft.Authorization/roleAssignments?`);
      return isList ? { body: { value: assignments } } : undefined;
    });
    const wanted = { ...clusterInputs({ kubernetesVersion, pools: [] }), adopt: { ...adopt, id } };
    return await lookAtAdopted(context(), azure.endpoints, wanted);
  }

  it('returns the facts that the program needs', async () => {
    expect(await look(described)).toEqual({
      isTaken: false,
      facts: {
        id: ID,
        resourceGroup: 'group-1',
        name: 'theirs',
        version: '1.35.4',
        tags: { team: 'shop' },
        accessProfile: { enablePrivateCluster: true },
        addresses: { vnetSubnetID: subnet },
        isPrivate: false,
      },
    });
    const hidden = { ...described, properties: { ...properties, fqdn: '', privateFQDN: 'x.private' } };
    expect((await look(hidden)).facts.isPrivate).toBe(true);
    expect((await look(described, { id: 'group-1/theirs' })).facts.id).toBe(ID);
  });

  it('returns the holders of the administrator role where access depends on it', async () => {
    const others = [
      assignment('x', 'somebody'),
      assignment(roleAssignmentName(owner, 'administrator'), 'us'),
      assignment('y', 'of the whole group', ID.replace(/\/providers\/.*/, '')),
      assignment('z', 'a reader', ID, 'acdd72a7-3385-48ef-bd42-f606fba81ae7'),
    ];
    expect((await look(byRole, {}, others)).facts.administrators).toEqual(['somebody']);
    expect((await look(described, {}, others)).facts).not.toHaveProperty('administrators');
  });

  const taken = { team: 'shop', 'coppice-adopted-by': owner.uid };
  it('recognizes an adopted cluster by its tags, and then tolerates its failed state', async () => {
    const failed = { ...described, tags: taken, properties: { ...properties, provisioningState: 'Failed' } };
    const { isTaken, facts } = await look(failed);
    expect(isTaken).toBe(true);
    expect(facts.tags).toEqual({ team: 'shop' });
  });

  const state = (provisioningState: string) => ({ ...described, properties: { ...properties, provisioningState } });
  const stopped = { ...described, properties: { ...properties, powerState: { code: 'Stopped' } } };
  const other = { 'coppice-adopted-by': 'x', 'coppice-adopted-as': 'bank/two' };
  it.each<[string, object, { id?: string; kubernetesVersion?: string }, string]>([
    ['is not there', described, { id: 'group-1/other' }, 'has none of that name'],
    ['is in another subscription', described, { id: ID.replace('1111', '2222') }, `of subscription ${subscription}`],
    ['is in another region', { ...described, location: 'westeurope' }, {}, 'it is in region westeurope'],
    ['is being deleted', state('Deleting'), {}, 'it is Deleting'],
    ['does not work', state('Failed'), {}, 'it is Failed'],
    ['is stopped', stopped, {}, 'it is Stopped'],
    ['is of another garden', { ...described, tags: other }, {}, 'taken over for WorkerCluster bank/two'],
    ['we made', { ...described, tags }, {}, 'it was made for WorkerCluster shop/one'],
    ['is to go back', described, { kubernetesVersion: '1.34' }, 'it runs Kubernetes 1.35.4, and 1.34 is older'],
  ])('refuses a cluster that %s', async (_, cluster, changes, expected) => {
    const looking = look(cluster, changes);
    await expect(looking).rejects.toMatchObject({ code: 'ERR_CONFIGURATION_PROBLEM' });
    await expect(looking).rejects.toThrow(expected);
  });

  it('does not report a cluster as missing when Azure refuses the call', async () => {
    await using azure = await FakeAzure.start(() => ({
      status: 403,
      body: { error: { code: 'AuthorizationFailed', message: 'no' } },
    }));
    const looking = lookAtAdopted(context(), azure.endpoints, { ...clusterInputs(), adopt });
    await expect(looking).rejects.toMatchObject({ code: 'ERR_INFRA_UNAUTHORIZED' });
  });
});

describe('the Azure program of an adopted cluster', () => {
  const found: AdoptedInputs['found'] = {
    id: ID,
    resourceGroup: 'group-1',
    name: 'theirs',
    version: '1.35.4',
    tags: { team: 'shop' },
    accessProfile: { enablePrivateCluster: true },
    addresses: { vnetSubnetID: subnet },
    isPrivate: false,
  };
  const made = (changes: Partial<AdoptedInputs> = {}, facts: Partial<AdoptedInputs['found']> = {}) =>
    graphOf(
      programs.adopted!,
      {
        ...clusterInputs({ kubernetesVersion: '', pools: [] }),
        adopt,
        leaving: false,
        ...changes,
        found: { ...found, ...facts },
      },
      answers,
    );
  const poolOf = async (changes: Partial<CloudPool>, facts: Partial<AdoptedInputs['found']> = {}) =>
    (await made({ pools: [pool(changes)] }, facts)).one(POOL).inputs;

  it('declares the cluster as it is, and no group, network or identity', async () => {
    const graph = await made();
    const { inputs, options } = graph.one(CLUSTER, 'adopted');
    expect(inputs).toEqual({
      resourceGroupName: 'group-1',
      resourceName: 'theirs',
      tags: {
        team: 'shop',
        'coppice-adopted-by': owner.uid,
        'coppice-adopted-as': 'shop/one',
        'coppice-adopted-in': owner.garden,
        'coppice-adopted-until': 'Release',
      },
    });
    expect(options.ignoreChanges).toEqual(
      expect.arrayContaining(['agentPoolProfiles', 'networkProfile', 'kubernetesVersion', 'apiServerAccessProfile']),
    );
    expect(options.ignoreChanges).not.toContain('tags');
    expect(graph.resources.map(({ type }) => type)).toEqual([CLUSTER]);
    expect(graph.outputs).toMatchObject({ name: 'theirs', certificateAuthority: 'CERTIFICATE' });
  });

  it('changes only the requested fields of the cluster', async () => {
    const changed = await made({ kubernetesVersion: '1.36.3', authorizedNetworks: ['192.0.2.0/24'] });
    const { inputs, options } = changed.one(CLUSTER);
    expect(inputs).toMatchObject({
      kubernetesVersion: '1.36.3',
      apiServerAccessProfile: { enablePrivateCluster: true, authorizedIPRanges: ['192.0.2.0/24'] },
    });
    for (const ours of ['kubernetesVersion', 'apiServerAccessProfile'])
      expect(options.ignoreChanges).not.toContain(ours);
    // A later patch than was asked for stays.
    const patched = await made({ kubernetesVersion: '1.35.2', pools: [pool()] });
    expect(patched.one(CLUSTER).inputs).not.toHaveProperty('kubernetesVersion');
    expect(patched.one(POOL).inputs.orchestratorVersion).toBe('1.35.4');
  });

  it.each([
    ['Release', { leaving: true }, { team: 'shop' }, true],
    ['Delete', { adopt: { id: ID, deletionPolicy: 'Delete' as const } }, undefined, false],
  ])('retains the cluster unless deletionPolicy is Delete: %s', async (_, changes, left, retained) => {
    const { inputs, options } = (await made(changes)).one(CLUSTER);
    expect(options.retainOnDelete ?? false).toBe(retained);
    if (left) expect(inputs.tags).toEqual(left);
  });

  it.each([
    ['it has local accounts', undefined, false],
    ['nobody gave us the role', ['somebody'], true],
    ['others gave us the role', ['somebody', 'us'], false],
  ])('assigns Coppice the administrator role only if needed; where %s: %s', async (_, administrators, given) => {
    const graph = await made({}, administrators && { administrators });
    expect(graph.all(GRANT).map(({ inputs }) => inputs)).toEqual(
      given ? [expect.objectContaining({ scope: ID, principalId: 'us' })] : [],
    );
  });

  it("puts Coppice's agent pools beside the existing ones, with the owner's tags", async () => {
    const inputs = await poolOf({ zones: ['2'] });
    expect(inputs).toMatchObject({
      resourceGroupName: 'group-1',
      resourceName: 'theirs',
      mode: 'User',
      vnetSubnetID: subnet,
      availabilityZones: ['2'],
      orchestratorVersion: '1.35.4',
    });
    expect(inputs.tags).toMatchObject(tags);
    // Its network may have no addresses for so many.
    expect(inputs).not.toHaveProperty('maxPods');
    expect(await poolOf({}, { addresses: {} })).not.toHaveProperty('vnetSubnetID');
    expect(await poolOf({}, { addresses: { vnetSubnetID: subnet, podSubnetID: 'pods' } })).toMatchObject({
      podSubnetID: 'pods',
    });
  });
});

it('an adopted AKS cluster is imported with its found inputs only, and retained', async () => {
  await using azure = await FakeAzure.start(() => undefined);
  const inputs = { resourceGroupName: 'group-1', resourceName: 'theirs' };
  const wanted = { urn: 'urn', type: CLUSTER, name: 'adopted', inputs: { ...inputs, tags: { ours: 'too' } } };
  const found = await existingAt(azure.endpoints, context())(wanted, new AbortController().signal);
  expect(found).toEqual({ id: ID, retain: true, inputs });
});

it("an upgrade by Azure is no drift when the cluster's upgrades are not managed", () => {
  const upgraded = { operation: 'update', resource: `${POOL} pool-a`, properties: ['orchestratorVersion'] };
  expect(driftOf([upgraded], { pools: [], adopt })).toEqual([]);
  expect(driftOf([upgraded], { pools: [] })).toEqual([upgraded]);
});
