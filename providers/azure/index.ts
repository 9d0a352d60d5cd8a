import type { CloudContext, ManagedClusters } from '../cloud.ts';
import { managedLayers } from '../pulumi/layers.ts';
import type { StackRunner } from '../pulumi/stack-runner.ts';
import { checkAccount } from './account.ts';
import { adoptAt } from './adopt.ts';
import { type Endpoints, PUBLIC_CLOUD } from './arm.ts';
import { credentialsOf, pluginCredentials, pluginSettings } from './credentials.ts';
import { driftOf } from './drift.ts';
import { endpointsAt, pluginEndpoints } from './endpoints.ts';
import { classify } from './errors.ts';
import { aksKubeconfig } from './kubeconfig.ts';
import { NODES_SUBNET } from './names.ts';
import { taggedResources } from './tagged.ts';
import { validateCluster } from './validate.ts';

/** Of @pulumi/azure-native, and of what the programs make of it; see ManagedClusters.version. */
export const VERSION = 'azure-native 3.28.0, programs 1';

const UNMADE =
  '/subscriptions/00000000-0000-4000-8000-000000000000/resourceGroups/unmade/providers/Microsoft.Network/virtualNetworks/unmade';

/** AKS, with the network under it. `endpoints`: where Azure is, as far as a profile does not say it. */
export function azure(runner: StackRunner, endpoints: Endpoints = PUBLIC_CLOUD): ManagedClusters {
  const at = ({ profile }: Pick<CloudContext, 'profile'>) => endpointsAt(profile, endpoints);
  const layers = managedLayers(runner, {
    provider: 'azure',
    credentials: async (ctx) => pluginCredentials(credentialsOf(ctx.account)),
    settings: (ctx) => ({ ...pluginSettings(credentialsOf(ctx.account)), ...pluginEndpoints(ctx.profile) }),
    adopt: (ctx) => adoptAt(at(ctx), ctx),
    classify: ({ text }) => classify(text),
    unmadeNetwork: () => ({ network: UNMADE, subnets: [{ id: `${UNMADE}/subnets/${NODES_SUBNET}` }] }),
  });
  return {
    version: VERSION,
    validate: validateCluster,
    checkAccount: (ctx) => checkAccount(ctx, at(ctx)),
    kubeconfig: (ctx, outputs) => aksKubeconfig(ctx, at(ctx), outputs),
    tagged: (ctx) => taggedResources(ctx, at(ctx)),
    ...layers,
    drift: async (ctx, cluster) => driftOf(await layers.drift(ctx, cluster), cluster),
  };
}
