import type { CloudContext, ManagedClusters } from '../cloud.ts';
import { poolOfResource } from '../pool-resource.ts';
import { managedLayers } from '../pulumi/layers.ts';
import type { StackRunner } from '../pulumi/stack-runner.ts';
import { checkAccount } from './account.ts';
import { adoptFrom } from './adopt.ts';
import type { Connection } from './api.ts';
import { credentialsOf, pluginEnvironment, pluginSettings } from './credentials.ts';
import { classify } from './errors.ts';
import { openSession } from './session.ts';
import { taggedResources } from './tagged.ts';
import { eksKubeconfig } from './token.ts';
import { validateCluster } from './validate.ts';

/** Of @pulumi/aws, and of what the programs make of it; see ManagedClusters.version. */
export const VERSION = 'aws 7.48.0, programs 1';

/** EKS, with the network under it. `endpoint`: see Connection. */
export function aws(runner: StackRunner, endpoint?: Connection['endpoint']): ManagedClusters {
  const connect = async ({ account, region, now, signal }: Omit<CloudContext, 'owner'>) => {
    const connection = { region, now, signal, ...(endpoint && { endpoint }) };
    return { ...connection, key: await openSession(credentialsOf(account), connection) };
  };
  return {
    version: VERSION,
    validate: validateCluster,
    checkAccount: async (ctx) => checkAccount(await connect(ctx), ctx.owner),
    kubeconfig: async (ctx, outputs) => eksKubeconfig(outputs, ctx.region, (await connect(ctx)).key, ctx.now()),
    tagged: async (ctx) => taggedResources(await connect(ctx)),
    ...managedLayers(runner, {
      provider: 'aws',
      credentials: async (ctx) => pluginEnvironment((await connect(ctx)).key),
      settings: ({ region }) => pluginSettings(region),
      adopt: (ctx) =>
        adoptFrom(
          () => connect(ctx),
          ctx.owner,
          () => ctx.now(),
        ),
      classify: ({ text }) => classify(text),
      // EKS tries all zones of a node group before it gives up, and never says which had nothing.
      poolOf: poolOfResource,
      unmadeNetwork: (zones) => ({
        network: 'vpc-00000000000000000',
        subnets: zones.map((zone, index) => ({ id: `subnet-0000000000000000${index}`, zone })),
      }),
    }),
  };
}
