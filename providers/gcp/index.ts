import type { CloudContext, ManagedClusters } from '../cloud.ts';
import type { Provider } from '../contract.ts';
import { recordsIn } from '../dns/records.ts';
import type { ProviderDNS } from '../dns.ts';
import { machineProvider } from '../machines/provider.ts';
import { type LayeredCloud, managedLayers } from '../pulumi/layers.ts';
import { leftOverLayers } from '../pulumi/left-over-layers.ts';
import type { StackRunner } from '../pulumi/stack-runner.ts';
import { checkAccount } from './account.ts';
import { lookAtAdopted, unseenCluster } from './adopted.ts';
import { cloudStorageBuckets } from './cloud-storage.ts';
import { credentialsOf, hasKey, pluginCredentials } from './credentials.ts';
import { cloudDNS } from './dns.ts';
import { driftOf } from './drift.ts';
import { endpointsAt, pluginEndpoints } from './endpoints.ts';
import { classify } from './errors.ts';
import { existingAt } from './existing.ts';
import { type Endpoints, GOOGLE } from './google-api.ts';
import { gkeKubeconfig } from './kubeconfig.ts';
import { gcpMachines } from './machines.ts';
import { SECONDARY_RANGES } from './names.ts';
import { nodePoolsOf } from './node-pools.ts';
import { removeNodes } from './remove-nodes.ts';
import { taggedResources } from './tagged.ts';
import { accessToken } from './token.ts';
import { validateCluster } from './validate.ts';

/** Version of @pulumi/gcp and of the programs; see ManagedClusters.version. */
export const GCP_VERSION = 'gcp 9.37.0, programs 2';

/** `endpoints`: Google's endpoints where a profile names none. */
const at = (endpoints: Endpoints, { profile }: Pick<CloudContext, 'profile'>) => endpointsAt(profile, endpoints);

const layersAt = (endpoints: Endpoints): LayeredCloud => ({
  provider: 'gcp',
  async credentials(ctx) {
    const credentials = credentialsOf(ctx.account, ctx.profile);
    if (hasKey(credentials.proof)) return pluginCredentials(credentials);
    return pluginCredentials(credentials, (await accessToken(ctx, at(endpoints, ctx))).token);
  },
  settings: (ctx) => ({
    GOOGLE_PROJECT: credentialsOf(ctx.account, ctx.profile).project,
    GOOGLE_REGION: ctx.region,
    ...pluginEndpoints(ctx.profile),
  }),
  findExisting: (ctx) => existingAt(at(endpoints, ctx), ctx),
  adopted: { look: (ctx, cluster) => lookAtAdopted(ctx, at(endpoints, ctx), cluster), unseen: unseenCluster },
  classify: ({ text }) => classify(text),
  poolOf(resource, { pools, zones }) {
    const plan = nodePoolsOf(pools, zones).find(({ key }) => key === resource);
    return plan && { pool: plan.pool.name, zones: plan.zones };
  },
  unmadeNetwork: () => ({
    network: 'projects/unmade/global/networks/unmade',
    subnets: [{ id: 'projects/unmade/regions/unmade/subnetworks/unmade' }],
    extra: SECONDARY_RANGES,
  }),
});

/** GKE with its network. */
export function gcpClusters(runner: StackRunner, endpoints: Endpoints = GOOGLE): ManagedClusters {
  const layers = managedLayers(runner, layersAt(endpoints));
  const tagged: NonNullable<ManagedClusters['tagged']> = (ctx) => taggedResources(ctx, at(endpoints, ctx));
  return {
    version: GCP_VERSION,
    adopts: true,
    validate: validateCluster,
    checkAccount: (ctx) => checkAccount(ctx, at(endpoints, ctx)),
    kubeconfig: (ctx, outputs) => gkeKubeconfig(ctx, at(endpoints, ctx), outputs),
    removeNodes: (ctx, outputs, pool, nodes) => removeNodes(ctx, at(endpoints, ctx), outputs, pool, nodes),
    tagged,
    ...layers,
    destroyLeftOvers: leftOverLayers(runner, layersAt(endpoints), { ...layers, tagged }),
    drift: async (ctx, cluster) => driftOf(await layers.drift(ctx, cluster), cluster),
  };
}

/** GKE, and machines for control planes outside GKE. */
export const gcpProvider = (runner: StackRunner, endpoints: Endpoints = GOOGLE): Provider => ({
  ...machineProvider(
    'gcp',
    gcpClusters(runner, endpoints),
    gcpMachines(layersAt(endpoints), (ctx) => at(endpoints, ctx)),
    runner,
  ),
  dns: gcpDNS(endpoints),
  backups: cloudStorageBuckets((ctx) => at(endpoints, ctx)),
});

/** Cloud DNS. `endpoints`: as in gcp. */
export const gcpDNS = (endpoints: Endpoints = GOOGLE): ProviderDNS => recordsIn(cloudDNS(endpoints));
