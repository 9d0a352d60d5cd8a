import type { ManagedClusters } from '../cloud.ts';
import { poolOfResource } from '../pool-resource.ts';
import { managedLayers } from '../pulumi/layers.ts';
import type { StackRunner } from '../pulumi/stack-runner.ts';
import { checkAccount } from './account.ts';
import { adoptAt } from './adopt.ts';
import { type Endpoints, PUBLIC_CLOUD } from './arm.ts';
import { credentialsOf, pluginCredentials, pluginSettings } from './credentials.ts';
import { driftOf } from './drift.ts';
import { classify } from './errors.ts';
import { aksKubeconfig } from './kubeconfig.ts';
import { NODES_SUBNET } from './names.ts';
import { taggedResources } from './tagged.ts';
import { validateCluster } from './validate.ts';

/** Of @pulumi/azure-native, and of what the programs make of it; see ManagedClusters.version. */
export const VERSION = 'azure-native 3.28.0, programs 1';

const UNMADE =
  '/subscriptions/00000000-0000-4000-8000-000000000000/resourceGroups/unmade/providers/Microsoft.Network/virtualNetworks/unmade';

/** AKS, with the network under it. */
export function azure(runner: StackRunner, endpoints: Endpoints = PUBLIC_CLOUD): ManagedClusters {
  const layers = managedLayers(runner, {
    provider: 'azure',
    credentials: async (ctx) => pluginCredentials(credentialsOf(ctx.account)),
    settings: (ctx) => pluginSettings(credentialsOf(ctx.account)),
    adopt: (ctx) => adoptAt(endpoints, ctx),
    classify: ({ text }) => classify(text),
    poolOf: poolOfResource,
    unmadeNetwork: () => ({ network: UNMADE, subnets: [{ id: `${UNMADE}/subnets/${NODES_SUBNET}` }] }),
  });
  return {
    version: VERSION,
    validate: validateCluster,
    checkAccount: (ctx) => checkAccount(ctx, endpoints),
    kubeconfig: (ctx, outputs) => aksKubeconfig(ctx, endpoints, outputs),
    tagged: (ctx) => taggedResources(ctx, endpoints),
    ...layers,
    drift: async (ctx, cluster) => driftOf(await layers.drift(ctx, cluster), cluster),
  };
}
