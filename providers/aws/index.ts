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
import type { AwsConnection } from './api.ts';
import { credentialsOf, pluginEnvironment, pluginSettings } from './credentials.ts';
import { route53 } from './dns.ts';
import { endpointOf, pluginEndpoints } from './endpoints.ts';
import { classify } from './errors.ts';
import { existingFrom } from './existing.ts';
import { awsMachines } from './machines.ts';
import { removeNodes } from './remove-nodes.ts';
import { s3Buckets } from './s3.ts';
import { openSession } from './session.ts';
import { taggedResources } from './tagged.ts';
import { eksKubeconfig } from './token.ts';
import { validateCluster } from './validate.ts';

/** Version of @pulumi/aws and of the programs; see ManagedClusters.version. */
const VERSION = 'aws 7.48.0, programs 2';

/** `endpoint`: see Connection; a profile's endpoints take precedence. */
function openCloud(endpoint: AwsConnection['endpoint'] | undefined) {
  const connect = async ({
    account,
    profile,
    region,
    now,
    signal,
  }: Pick<CloudContext, 'account' | 'profile' | 'region' | 'now' | 'signal'>) => {
    const named = endpointOf(profile);
    const at: AwsConnection['endpoint'] = (service, where) => named?.(service, where) ?? endpoint?.(service, where);
    const connection = { region, now, signal, endpoint: at };
    return { ...connection, key: await openSession(credentialsOf(account), connection) };
  };
  const layers: LayeredCloud = {
    provider: 'aws',
    credentials: async (ctx) => pluginEnvironment((await connect(ctx)).key),
    settings: ({ region, profile }) => ({ ...pluginSettings(region), ...pluginEndpoints(profile) }),
    findExisting: (ctx) =>
      existingFrom(
        () => connect(ctx),
        ctx.owner,
        () => ctx.now(),
      ),
    adopted: {
      look: async (ctx, cluster) => {
        const connection = await connect(ctx);
        const { id } = await checkAccount(connection, ctx.owner);
        return lookAtAdopted(connection, ctx.owner, cluster, id);
      },
      unseen: unseenCluster,
    },
    classify: ({ text }) => classify(text),
    // EKS tries all zones of a node group before it fails, and never names the zone without capacity.
    poolOf: poolOfResource,
    unmadeNetwork: (zones) => ({
      network: 'vpc-00000000000000000',
      subnets: zones.map((zone, index) => ({ id: `subnet-0000000000000000${index}`, zone })),
    }),
  };
  return { connect, layers };
}

/** EKS with its network. `endpoint`: see Connection. */
export function awsClusters(runner: StackRunner, endpoint?: AwsConnection['endpoint']): ManagedClusters {
  const { connect, layers } = openCloud(endpoint);
  const made = managedLayers(runner, layers);
  const tagged: NonNullable<ManagedClusters['tagged']> = async (ctx) => taggedResources(await connect(ctx));
  return {
    version: VERSION,
    adopts: true,
    validate: validateCluster,
    checkAccount: async (ctx) => checkAccount(await connect(ctx), ctx.owner),
    kubeconfig: async (ctx, outputs) => eksKubeconfig(outputs, ctx.region, (await connect(ctx)).key, ctx.now()),
    removeNodes: async (ctx, outputs, pool, nodes) => removeNodes(await connect(ctx), ctx.owner, outputs, pool, nodes),
    tagged,
    ...made,
    destroyLeftOvers: leftOverLayers(runner, layers, { ...made, tagged }),
  };
}

/** EKS, and machines for control planes outside AWS' service. */
export function awsProvider(runner: StackRunner, endpoint?: AwsConnection['endpoint']): Provider {
  const { connect, layers } = openCloud(endpoint);
  const provider = machineProvider('aws', awsClusters(runner, endpoint), awsMachines(layers, connect), runner);
  return { ...provider, dns: awsDNS(endpoint), backups: s3Buckets(connect) };
}

/** Route 53. `endpoint`: see Connection. */
export const awsDNS = (endpoint?: AwsConnection['endpoint']): ProviderDNS =>
  recordsIn(route53(openCloud(endpoint).connect));
