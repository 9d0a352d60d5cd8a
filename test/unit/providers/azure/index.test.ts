import { describe, expect, it } from 'vitest';
import { driftOf } from '../../../../providers/azure/drift.ts';
import { azureClusters, azureProvider } from '../../../../providers/azure/index.ts';
import type { Change, NetworkOutputs, WantedCluster } from '../../../../providers/cloud.ts';
import type { StackRequest } from '../../../../providers/pulumi/request.ts';
import type { StackRunner } from '../../../../providers/pulumi/stack-runner.ts';
import { pool as machinePool, profile, context as providerContext } from '../fixtures.ts';
import { context, FakeAzure } from './fake-azure.ts';
import { autoscaled, client, clusterInputs, pool, subscription, tenant } from './fixtures.ts';

const { owner: _owner, network, ...cluster } = clusterInputs();

/** Remembers what it was asked to run. */
function recorder(changes: Change[] = []) {
  const requests: StackRequest[] = [];
  const runner: StackRunner = {
    async preview(request) {
      requests.push(request);
      return changes;
    },
    async apply(request) {
      requests.push(request);
      return { outputs: { ...network }, changes: [] };
    },
    async drift(request) {
      requests.push(request);
      return changes;
    },
    async destroy(request) {
      requests.push(request);
    },
    outputs: async () => ({ ...network }),
  };
  return { runner, requests };
}

describe('the AKS provider', () => {
  it("applies two stacks, and passes the network's outputs to the cluster", async () => {
    const { runner, requests } = recorder();
    await azureClusters(runner).apply(context(), cluster);
    expect(requests.map(({ program }) => program)).toEqual([
      { provider: 'azure', layer: 'network' },
      { provider: 'azure', layer: 'cluster' },
    ]);
    expect((requests[1]!.inputs as { network: NetworkOutputs }).network).toEqual(network);
  });

  it('passes the plugin its identity as settings, and only the secret as a credential', async () => {
    const { runner, requests } = recorder();
    await azureClusters(runner).preview(context(), cluster);
    for (const { credentials, settings } of requests) {
      expect(credentials).toEqual({ ARM_CLIENT_SECRET: 'hush' });
      expect(settings).toEqual({
        ARM_CLIENT_ID: client,
        ARM_TENANT_ID: tenant,
        ARM_SUBSCRIPTION_ID: subscription,
      });
    }
  });

  it('finds the code in an error of Azure', async () => {
    const { runner, requests } = recorder();
    await azureClusters(runner).apply(context(), cluster);
    expect(requests[0]!.classify!({ text: 'Code="SkuNotAvailable"' })).toBe('ERR_INFRA_RESOURCES_DEPLETED');
  });

  it('starts nothing with unusable credentials', async () => {
    const { runner, requests } = recorder();
    await expect(azureClusters(runner).apply(context({}), cluster)).rejects.toMatchObject({
      code: 'ERR_INFRA_UNAUTHENTICATED',
    });
    expect(requests).toEqual([]);
  });
});

describe('drift at Azure', () => {
  const AKS = 'azure-native:containerservice:ManagedCluster cluster';
  const update = (resource: string, ...properties: string[]): Change => ({ operation: 'update', resource, properties });
  const of = (change: Change, changed: Partial<WantedCluster> = {}) => driftOf([change], { ...cluster, ...changed });

  const WORKERS = 'azure-native:containerservice:AgentPool pool-workers';

  it('includes changes by others', () => {
    const tags = update('azure-native:network:VirtualNetwork network', 'tags');
    expect(of(tags)).toEqual([tags]);
    expect(of(update(WORKERS, 'count'))).toEqual([update(WORKERS, 'count')]);
    expect(of({ operation: 'delete', resource: WORKERS })).toEqual([{ operation: 'delete', resource: WORKERS }]);
  });

  it('excludes changes that Azure makes by itself', () => {
    expect(of(update(AKS, 'agentPoolProfiles[1]', 'eTag'))).toEqual([]);
    expect(of(update(AKS, 'agentPoolProfiles', 'disableLocalAccounts'))).toEqual([update(AKS, 'disableLocalAccounts')]);
    expect(of(update(WORKERS, 'nodeImageVersion'))).toEqual([]);
  });

  it('is searched for in both stacks', async () => {
    const tags = update('azure-native:network:VirtualNetwork network', 'tags');
    const { runner } = recorder([tags, update(AKS, 'eTag')]);
    expect(await azureClusters(runner).drift(context(), cluster)).toEqual([tags, tags]);
  });

  it('excludes sizes that the autoscaler decides', () => {
    expect(of(update(WORKERS, 'count'), { pools: [autoscaled()] })).toEqual([]);
    expect(of(update(WORKERS, 'count'), { pools: [pool(), autoscaled({ name: 'other' })] })).toHaveLength(1);
  });
});

describe('the machine provider of Azure', () => {
  it('lists machines at the endpoint of the profile', async () => {
    await using cloud = await FakeAzure.start(() => ({ body: {} }));
    const elsewhere = { ...profile, spec: { ...profile.spec, providerConfig: { endpoints: cloud.endpoints } } };
    const ctx = providerContext({ cloud: async () => ({ ...context(), profile: elsewhere }) });
    const provider = azureProvider(recorder().runner);
    await provider.reconcilePools!(ctx, [machinePool()]);
    expect(await provider.listMachines(ctx)).toEqual([]);
    expect(cloud.asked.some(({ path }) => path.includes('/Microsoft.Compute/virtualMachines?'))).toBe(true);
  });
});
