import type { Shortage } from '../../operator/api/errors.ts';
import type {
  CloudContext,
  ManagedCluster,
  ManagedClusterInputs,
  ManagedClusterOutputs,
  ManagedClusters,
  NetworkInputs,
  NetworkOutputs,
} from '../cloud.ts';
import type { Layer, ProgramRef } from './program.ts';
import type { Adopt, Classify, StackRequest } from './request.ts';
import type { StackRunner } from './stack-runner.ts';
import { nameOf } from './stack-state.ts';

/** What the layers of a managed cluster need to know of a cloud. */
export interface LayeredCloud {
  provider: ProgramRef['provider'];
  /** Environment by which plugins authenticate; may ask the cloud for a session. */
  credentials(ctx: CloudContext): Promise<Record<string, string>>;
  /** Further environment of plugins that is no secret. */
  settings(ctx: CloudContext): Record<string, string>;
  adopt(ctx: CloudContext): Adopt;
  classify: Classify;
  /** The pool, and the zones where the cloud has one resource a zone, that the program's resource of this name is for. */
  poolOf(resource: string, cluster: ManagedCluster): Shortage | undefined;
  /** Stands for the network in previews while there is none: in the form of real ids, so that the plugin's checks pass. */
  unmadeNetwork(zones: readonly string[]): NetworkOutputs;
}

type Layered = Pick<ManagedClusters, 'preview' | 'apply' | 'drift' | 'destroy'>;

/** Of the time that a managed cluster takes, about so many percent are for the network under it. */
const NETWORK_SHARE = 20;

/** Tells how far one layer is as a part of the whole, in percent. */
function share({ onProgress }: CloudContext, from: number, to: number): Pick<StackRequest, 'onProgress'> {
  if (!onProgress) return {};
  return {
    onProgress: ({ description, done, total }) => {
      const part = Math.min(1, done / Math.max(1, total ?? done + 10));
      onProgress({ description, done: Math.round(from + (to - from) * part), total: 100 });
    },
  };
}

/** A managed cluster as two stacks, `network` and, on it, `cluster`. */
export function managedLayers(runner: StackRunner, cloud: LayeredCloud): Layered {
  const open = async (ctx: CloudContext, cluster: ManagedCluster) => {
    const request = async (layer: Layer, inputs: NetworkInputs | ManagedClusterInputs): Promise<StackRequest> => ({
      stack: { technicalID: ctx.owner.technicalID, layer },
      account: ctx.account.id,
      region: ctx.region,
      program: { provider: cloud.provider, layer },
      inputs,
      backend: ctx.state,
      // For each layer anew: a session may end while the one before is being made.
      credentials: await cloud.credentials(ctx),
      settings: cloud.settings(ctx),
      signal: ctx.signal,
      adopt: cloud.adopt(ctx),
      classify: cloud.classify,
      shortOf: ({ urn }) => (urn === undefined ? undefined : cloud.poolOf(nameOf(urn), cluster)),
      ...(ctx.onProgress && { onProgress: ctx.onProgress }),
    });
    const { region, zones, cidrs } = cluster;
    return {
      network: await request('network', { owner: ctx.owner, region, zones, cidrs }),
      cluster: (network: NetworkOutputs) => request('cluster', { ...cluster, owner: ctx.owner, network }),
    };
  };
  const madeNetwork = async (network: StackRequest) => (await runner.outputs(network)) as NetworkOutputs | undefined;

  return {
    async preview(ctx, cluster) {
      const layers = await open(ctx, cluster);
      const below = await runner.preview(layers.network);
      const network = (await madeNetwork(layers.network)) ?? cloud.unmadeNetwork(cluster.zones);
      return [...below, ...(await runner.preview(await layers.cluster(network)))];
    },

    async apply(ctx, cluster) {
      const layers = await open(ctx, cluster);
      const { refresh = false } = ctx;
      const below = { ...layers.network, ...share(ctx, 0, NETWORK_SHARE), refresh };
      const { outputs: network } = await runner.apply(below);
      const { outputs } = await runner.apply({
        ...(await layers.cluster(network as unknown as NetworkOutputs)),
        ...share(ctx, NETWORK_SHARE, 100),
        refresh,
      });
      return outputs as unknown as ManagedClusterOutputs;
    },

    async drift(ctx, cluster) {
      const layers = await open(ctx, cluster);
      const network = await madeNetwork(layers.network);
      if (!network) return [];
      return [...(await runner.drift(layers.network)), ...(await runner.drift(await layers.cluster(network)))];
    },

    async destroy(ctx, cluster) {
      const layers = await open(ctx, cluster);
      const network = (await madeNetwork(layers.network)) ?? cloud.unmadeNetwork(cluster.zones);
      const above = 100 - NETWORK_SHARE;
      await runner.destroy({ ...(await layers.cluster(network)), ...share(ctx, 0, above) });
      await runner.destroy({ ...layers.network, ...share(ctx, above, 100) });
    },
  };
}
