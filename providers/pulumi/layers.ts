import type { Shortage } from '../../operator/api/errors.ts';
import type {
  Change,
  CloudContext,
  ControlPlaneInputs,
  EndpointInputs,
  MachinesInputs,
  MachinesOutputs,
  ManagedClusterInputs,
  ManagedClusterOutputs,
  ManagedClusters,
  NetworkInputs,
  NetworkOutputs,
  WantedCluster,
} from '../cloud.ts';
import { type AdoptingCloud, type AdoptingCluster, adoptedLayer } from './adopted-layer.ts';
import type { Layer, ProgramRef } from './program.ts';
import type { Classify, FindExisting, StackRequest } from './request.ts';
import type { StackRunner } from './stack-runner.ts';
import { resourceNameOf } from './stack-state.ts';

/** A cloud's part in the layers of a cluster. */
export interface LayeredCloud {
  provider: ProgramRef['provider'];
  /** Environment with the plugins' credentials; may request a session from the cloud. */
  credentials(ctx: CloudContext): Promise<Record<string, string>>;
  /** Further environment of plugins, without secrets. */
  settings(ctx: CloudContext): Record<string, string>;
  findExisting(ctx: CloudContext): FindExisting;
  /** Absent: adoption is unsupported. */
  adopted?: AdoptingCloud;
  classify: Classify;
  /** Pool, and zones in clouds with a resource per zone, of the program's resource name. */
  poolOf(resource: string, cluster: WantedCluster): Shortage | undefined;
  /** Placeholder for a missing or unknown network, with ids in valid form, so that the plugin's checks pass. */
  unmadeNetwork(zones: readonly string[], ctx: Pick<CloudContext, 'account' | 'owner'>): NetworkOutputs;
}

type Layered = Pick<ManagedClusters, 'preview' | 'apply' | 'drift' | 'destroy'>;

/** Assumed share of the network in the time for a managed cluster, percent. */
const NETWORK_SHARE = 20;

/** Scales one layer's progress to its part of the whole, in percent. */
function share({ onProgress }: CloudContext, from: number, to: number): Pick<StackRequest, 'onProgress'> {
  if (!onProgress) return {};
  return {
    onProgress: ({ description, done, total }) => {
      const part = Math.min(1, done / Math.max(1, total ?? done + 10));
      onProgress({ description, done: Math.round(from + (to - from) * part), total: 100 });
    },
  };
}

/** Runner request for one layer of a cluster. */
export async function requestFor(
  cloud: LayeredCloud,
  ctx: CloudContext,
  layer: Layer,
  inputs:
    | NetworkInputs
    | ManagedClusterInputs
    | MachinesInputs
    | EndpointInputs
    | ControlPlaneInputs
    | Record<string, unknown>,
): Promise<StackRequest> {
  return {
    stack: { technicalID: ctx.owner.technicalID, layer },
    tenant: ctx.owner.namespace,
    account: ctx.account.id,
    region: ctx.region,
    program: { provider: cloud.provider, layer },
    inputs,
    backend: ctx.state,
    // Renewed per layer: a session may expire during the previous one.
    credentials: await cloud.credentials(ctx),
    settings: cloud.settings(ctx),
    signal: ctx.signal,
    findExisting: cloud.findExisting(ctx),
    classify: cloud.classify,
    ...(ctx.onProgress && { onProgress: ctx.onProgress }),
  };
}

/** A managed cluster as two stacks: `network` and, on top, `cluster`. */
export function managedLayers(runner: StackRunner, cloud: LayeredCloud): Layered {
  const open = async (ctx: CloudContext, cluster: WantedCluster) => {
    const { region, zones, cidrs } = cluster;
    const below: NetworkInputs = { owner: ctx.owner, region, zones, cidrs };
    const above = (network: NetworkOutputs): ManagedClusterInputs => ({ ...cluster, owner: ctx.owner, network });
    return {
      network: await requestFor(cloud, ctx, 'network', below),
      cluster: async (network: NetworkOutputs): Promise<StackRequest> => ({
        ...(await requestFor(cloud, ctx, 'cluster', above(network))),
        shortOf: ({ urn }) => (urn === undefined ? undefined : cloud.poolOf(resourceNameOf(urn), cluster)),
      }),
    };
  };
  const madeNetwork = async (network: StackRequest) => (await runner.outputs(network)) as NetworkOutputs | undefined;

  const made: Layered = {
    async preview(ctx, cluster) {
      const layers = await open(ctx, cluster);
      const below = await runner.preview(layers.network);
      const network = (await madeNetwork(layers.network)) ?? cloud.unmadeNetwork(cluster.zones, ctx);
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
      const network = (await madeNetwork(layers.network)) ?? cloud.unmadeNetwork(cluster.zones, ctx);
      const above = 100 - NETWORK_SHARE;
      await runner.destroy({ ...(await layers.cluster(network)), ...share(ctx, 0, above) });
      await runner.destroy({ ...layers.network, ...share(ctx, above, 100) });
    },
  };
  if (!cloud.adopted) return made;
  const taken = adoptedLayer(runner, cloud.adopted, (ctx, inputs) => requestFor(cloud, ctx, 'adopted', inputs));
  return {
    preview: (ctx, cluster) => (isAdopting(cluster) ? taken.preview(ctx, cluster) : made.preview(ctx, cluster)),
    apply: (ctx, cluster) => (isAdopting(cluster) ? taken.apply(ctx, cluster) : made.apply(ctx, cluster)),
    drift: (ctx, cluster) => (isAdopting(cluster) ? taken.drift(ctx, cluster) : made.drift(ctx, cluster)),
    destroy: (ctx, cluster) => (isAdopting(cluster) ? taken.destroy(ctx, cluster) : made.destroy(ctx, cluster)),
  };
}

const isAdopting = (cluster: WantedCluster): cluster is AdoptingCluster => cluster.adopt !== undefined;

/** Desired machines, with the inputs of their network. */
export interface WantedMachines extends Omit<MachinesInputs, 'network' | 'owner'> {
  cidrs: NetworkInputs['cidrs'];
}

/** Machines for a control plane of ours as two stacks: `network` and, on top, `machines`. */
interface MachineLayers {
  /**
   * @param network `kept`: do not apply the network, which changes rarely; `made`: apply without refresh; `mended`:
   * apply with refresh
   */
  apply(ctx: CloudContext, wanted: WantedMachines, network: 'kept' | 'made' | 'mended'): Promise<MachinesOutputs>;
  /** Drift in the cloud; undefined: the network was never made. @param withNetwork whether to compare it too */
  drift(ctx: CloudContext, wanted: WantedMachines, withNetwork: boolean): Promise<Change[] | undefined>;
  /** @param between runs after the machines and before the network are deleted */
  destroy(ctx: CloudContext, wanted: WantedMachines, between?: () => Promise<void>): Promise<void>;
}

export function machineLayers(runner: StackRunner, cloud: LayeredCloud): MachineLayers {
  const network = (ctx: CloudContext, { region, zones, cidrs }: WantedMachines) =>
    requestFor(cloud, ctx, 'network', { owner: ctx.owner, region, zones, cidrs });
  const machines = (ctx: CloudContext, wanted: WantedMachines, made: NetworkOutputs) => {
    const { cidrs: _, ...rest } = wanted;
    const inputs: MachinesInputs = { ...rest, owner: ctx.owner, network: made };
    return requestFor(cloud, ctx, 'machines', inputs);
  };
  return {
    async apply(ctx, wanted, how) {
      const { refresh = false } = ctx;
      const below = await network(ctx, wanted);
      const made = how === 'kept' ? await runner.outputs(below) : undefined;
      const outputs = made ?? (await runner.apply({ ...below, refresh: how === 'mended' })).outputs;
      const above = await machines(ctx, wanted, outputs as unknown as NetworkOutputs);
      return (await runner.apply({ ...above, refresh })).outputs as unknown as MachinesOutputs;
    },

    async drift(ctx, wanted, withNetwork) {
      const below = await network(ctx, wanted);
      const made = (await runner.outputs(below)) as NetworkOutputs | undefined;
      if (!made) return undefined;
      const under = withNetwork ? await runner.drift(below) : [];
      return [...under, ...(await runner.drift(await machines(ctx, wanted, made)))];
    },

    async destroy(ctx, wanted, between) {
      const below = await network(ctx, wanted);
      const made = (await runner.outputs(below)) as NetworkOutputs | undefined;
      await runner.destroy(await machines(ctx, wanted, made ?? cloud.unmadeNetwork(wanted.zones, ctx)));
      await between?.();
      await runner.destroy(await network(ctx, wanted));
    },
  };
}
