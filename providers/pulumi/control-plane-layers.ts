import type {
  Change,
  CloudContext,
  ControlPlaneInputs,
  ControlPlanePool,
  EndpointInputs,
  EndpointOutputs,
  NetworkInputs,
  NetworkOutputs,
} from '../cloud.ts';
import type { ControlPlanePart } from '../contract.ts';
import { type LayeredCloud, requestFor } from './layers.ts';
import type { StackRunner } from './stack-runner.ts';

/** A control plane on machines as it is wanted, with what the network under it is made from. */
export interface WantedControlPlane {
  region: string;
  zones: string[];
  cidrs: NetworkInputs['cidrs'];
  /** Of API servers. */
  port: number;
  /** Absent: it is not yet known what machines are to be told. */
  pool?: ControlPlanePool;
}

/** A control plane on machines as stacks `endpoint` and `control-plane`, on `network`, which machines for workloads share. */
export interface ControlPlaneLayers {
  /** Makes the network and where the API server is reached. */
  endpoint(ctx: CloudContext, wanted: WantedControlPlane): Promise<EndpointOutputs>;
  /** Makes the group of machines, on what `endpoint` has made. */
  machines(
    ctx: CloudContext,
    wanted: WantedControlPlane & { pool: ControlPlanePool },
    endpoint: EndpointOutputs,
  ): Promise<void>;
  /** What differs in the cloud, in the network too; undefined: that was never made. */
  drift(
    ctx: CloudContext,
    wanted: WantedControlPlane & { pool: ControlPlanePool },
    endpoint: EndpointOutputs,
  ): Promise<Change[] | undefined>;
  /**
   * Changes back what others changed in these layers, one after the other; of a layer of which not all is allowed, nothing.
   * @returns what was not allowed
   */
  mend(
    ctx: CloudContext,
    wanted: WantedControlPlane & { pool: ControlPlanePool },
    endpoint: EndpointOutputs,
    part: ControlPlanePart,
    allows: (planned: readonly Change[]) => boolean,
  ): Promise<Change[]>;
  /** Takes all but the network away. */
  destroy(ctx: CloudContext, wanted: WantedControlPlane): Promise<void>;
  destroyNetwork(ctx: CloudContext, wanted: WantedControlPlane): Promise<void>;
}

/** Stands for what there is not (any more): nothing is made with it. */
const UNMADE: EndpointOutputs = { host: 'unmade', port: 0, extra: {} };

/** A program that only takes away still declares what it would make. */
export const UNMADE_POOL: ControlPlanePool = {
  name: 'unmade',
  machineType: 'unmade',
  minimum: 0,
  maximum: 0,
  desired: 0,
  spot: false,
  gpu: 0,
  architecture: 'amd64',
  labels: {},
  taints: [],
  zones: [],
  image: 'unmade',
  userData: '',
  holdsKeys: false,
};

export function controlPlaneLayers(runner: StackRunner, cloud: LayeredCloud): ControlPlaneLayers {
  const network = (ctx: CloudContext, { region, zones, cidrs }: WantedControlPlane) =>
    requestFor(cloud, ctx, 'network', { owner: ctx.owner, region, zones, cidrs });
  const endpoint = (ctx: CloudContext, { region, zones, port }: WantedControlPlane, made: NetworkOutputs) => {
    const inputs: EndpointInputs = { owner: ctx.owner, region, zones, network: made, port };
    return requestFor(cloud, ctx, 'endpoint', inputs);
  };
  const machines = (
    ctx: CloudContext,
    { region, zones }: WantedControlPlane,
    pool: ControlPlanePool,
    made: NetworkOutputs,
    reached: EndpointOutputs,
  ) => {
    const inputs: ControlPlaneInputs = { owner: ctx.owner, region, zones, network: made, endpoint: reached, pool };
    return requestFor(cloud, ctx, 'control-plane', inputs);
  };
  const madeNetwork = async (ctx: CloudContext, wanted: WantedControlPlane): Promise<NetworkOutputs> =>
    ((await runner.outputs(await network(ctx, wanted))) as NetworkOutputs | undefined) ??
    cloud.unmadeNetwork(wanted.zones, ctx);

  return {
    async endpoint(ctx, wanted) {
      const { outputs } = await runner.apply(await network(ctx, wanted));
      const above = await endpoint(ctx, wanted, outputs as unknown as NetworkOutputs);
      return (await runner.apply(above)).outputs as unknown as EndpointOutputs;
    },

    async machines(ctx, wanted, reached) {
      const { refresh = false } = ctx;
      const request = await machines(ctx, wanted, wanted.pool, await madeNetwork(ctx, wanted), reached);
      await runner.apply({ ...request, refresh });
    },

    async drift(ctx, wanted, reached) {
      const below = await network(ctx, wanted);
      const made = (await runner.outputs(below)) as NetworkOutputs | undefined;
      if (!made) return undefined;
      return [
        ...(await runner.drift(below)),
        ...(await runner.drift(await endpoint(ctx, wanted, made))),
        ...(await runner.drift(await machines(ctx, wanted, wanted.pool, made, reached))),
      ];
    },

    async mend(ctx, wanted, reached, part, allows) {
      const made = await madeNetwork(ctx, wanted);
      const requests =
        part === 'endpoint'
          ? [() => network(ctx, wanted), () => endpoint(ctx, wanted, made)]
          : [() => machines(ctx, wanted, wanted.pool, made, reached)];
      const left: Change[] = [];
      for (const request of requests) {
        const { refused = [] } = await runner.apply({ ...(await request()), refresh: true, allows });
        left.push(...refused);
      }
      return left;
    },

    async destroy(ctx, wanted) {
      const made = await madeNetwork(ctx, wanted);
      const below = await endpoint(ctx, wanted, made);
      const reached = ((await runner.outputs(below)) as EndpointOutputs | undefined) ?? UNMADE;
      await runner.destroy(await machines(ctx, wanted, wanted.pool ?? UNMADE_POOL, made, reached));
      await runner.destroy(below);
    },

    destroyNetwork: async (ctx, wanted) => runner.destroy(await network(ctx, wanted)),
  };
}
