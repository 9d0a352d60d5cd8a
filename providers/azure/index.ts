import type { CloudContext, ManagedClusters } from '../cloud.ts';
import type { Provider } from '../contract.ts';
import { recordsIn } from '../dns/records.ts';
import type { ProviderDNS } from '../dns.ts';
import { machineProvider } from '../machines/provider.ts';
import { poolOfResource } from '../pool-resource.ts';
import { type LayeredCloud, managedLayers } from '../pulumi/layers.ts';
import { leftOverLayers } from '../pulumi/left-over-layers.ts';
import type { StackRunner } from '../pulumi/stack-runner.ts';
import { checkAccount } from './account.ts';
import { lookAtAdopted, unseenCluster } from './adopted.ts';
import { type Endpoints, PUBLIC_CLOUD } from './arm.ts';
import { blobBuckets } from './blob-storage.ts';
import { credentialsOf, pluginCredentials, pluginSettings } from './credentials.ts';
import { azureDNS as azureZones } from './dns.ts';
import { driftOf } from './drift.ts';
import { endpointsAt, pluginEndpoints } from './endpoints.ts';
import { classify } from './errors.ts';
import { existingAt } from './existing.ts';
import { refuseForeignResources } from './foreign-resources.ts';
import { aksKubeconfig } from './kubeconfig.ts';
import { azureMachines } from './machines.ts';
import { NODES_SUBNET, virtualNetworkID } from './names.ts';
import { removeNodes } from './remove-nodes.ts';
import { taggedResources } from './tagged.ts';
import { validateCluster } from './validate.ts';

/** Version of @pulumi/azure-native and of the programs; see ManagedClusters.version. */
const VERSION = 'azure-native 3.28.0, programs 1';

/** `endpoints`: Azure's endpoints where a profile names none. */
const at = (endpoints: Endpoints, { profile }: Pick<CloudContext, 'profile'>) => endpointsAt(profile, endpoints);

const layersAt = (endpoints: Endpoints): LayeredCloud => ({
  provider: 'azure',
  credentials: async (ctx) => pluginCredentials(credentialsOf(ctx.account)),
  settings: (ctx) => ({ ...pluginSettings(credentialsOf(ctx.account)), ...pluginEndpoints(ctx.profile) }),
  findExisting: (ctx) => existingAt(at(endpoints, ctx), ctx),
  adopted: { look: (ctx, cluster) => lookAtAdopted(ctx, at(endpoints, ctx), cluster), unseen: unseenCluster },
  classify: ({ text }) => classify(text),
  poolOf: poolOfResource,
  // Azure ids consist of names: grants on the network are found by them after a loss of state.
  unmadeNetwork(_, { account, owner }) {
    const network = virtualNetworkID(credentialsOf(account).subscriptionID, owner);
    return { network, subnets: [{ id: `${network}/subnets/${NODES_SUBNET}` }] };
  },
});

/** AKS with its network. */
export function azureClusters(runner: StackRunner, endpoints: Endpoints = PUBLIC_CLOUD): ManagedClusters {
  const layers = managedLayers(runner, layersAt(endpoints));
  const tagged: NonNullable<ManagedClusters['tagged']> = (ctx) => taggedResources(ctx, at(endpoints, ctx));
  return {
    version: VERSION,
    adopts: true,
    validate: validateCluster,
    checkAccount: (ctx) => checkAccount(ctx, at(endpoints, ctx)),
    kubeconfig: (ctx, outputs) => aksKubeconfig(ctx, at(endpoints, ctx), outputs),
    removeNodes: (ctx, outputs, pool, nodes) => removeNodes(ctx, at(endpoints, ctx), outputs, pool, nodes),
    tagged,
    ...layers,
    destroyLeftOvers: leftOverLayers(runner, layersAt(endpoints), {
      tagged,
      async destroy(ctx, cluster) {
        await refuseForeignResources(ctx, at(endpoints, ctx));
        await layers.destroy(ctx, cluster);
      },
    }),
    drift: async (ctx, cluster) => driftOf(await layers.drift(ctx, cluster), cluster),
  };
}

/** AKS, and machines for control planes outside AKS. */
export const azureProvider = (runner: StackRunner, endpoints: Endpoints = PUBLIC_CLOUD): Provider => ({
  ...machineProvider(
    'azure',
    azureClusters(runner, endpoints),
    azureMachines(layersAt(endpoints), (ctx) => at(endpoints, ctx)),
    runner,
  ),
  dns: openAzureDNS(endpoints),
  backups: blobBuckets((ctx) => at(endpoints, ctx)),
});

/** Azure DNS, public and private. */
export const openAzureDNS = (endpoints: Endpoints = PUBLIC_CLOUD): ProviderDNS => recordsIn(azureZones(endpoints));
