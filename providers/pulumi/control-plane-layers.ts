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

/** A desired control plane on machines, with the inputs of its network. */
export interface WantedControlPlane {
  region: string;
  zones: string[];
  cidrs: NetworkInputs['cidrs'];
  /** Port of the API servers. */
  port: number;
  /** Absent: the bootstrap data are not known yet. */
  pool?: ControlPlanePool;
}

/** A control plane on machines as stacks `endpoint` and `control-plane`, on `network`, which worker machines share. */
interface ControlPlaneLayers {
  /** Applies network and endpoint. */
  endpoint(ctx: CloudContext, wanted: WantedControlPlane): Promise<EndpointOutputs>;
  /** Applies the machine group, on top of `endpoint`. */
  machines(
    ctx: CloudContext,
    wanted: WantedControlPlane & { pool: ControlPlanePool },
    endpoint: EndpointOutputs,
  ): Promise<void>;
  /** Drift in the cloud including the network; undefined: never made. */
  drift(
    ctx: CloudContext,
    wanted: WantedControlPlane & { pool: ControlPlanePool },
    endpoint: EndpointOutputs,
  ): Promise<Change[] | undefined>;
  /**
   * Reverts drift in these layers one by one; skips a layer whose changes are not all allowed.
   * @returns the changes that were not allowed
   */
  mend(
    ctx: CloudContext,
    wanted: WantedControlPlane & { pool: ControlPlanePool },
    endpoint: EndpointOutputs,
    part: ControlPlanePart,
    allows: (planned: readonly Change[]) => boolean,
  ): Promise<Change[]>;
  /** Deletes everything except the network. */
  destroy(ctx: CloudContext, wanted: WantedControlPlane): Promise<void>;
  destroyNetwork(ctx: CloudContext, wanted: WantedControlPlane): Promise<void>;
}

/** Placeholder for missing outputs: nothing is made with it. */
const UNMADE: EndpointOutputs = { host: 'unmade', port: 0, extra: {} };

/** Placeholder pool: a program that only deletes still declares its resources. */
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
