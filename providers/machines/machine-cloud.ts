import type { CloudContext } from '../cloud.ts';
import type { Machine, Problem, Wanted } from '../contract.ts';
import type { LayeredCloud } from '../pulumi/layers.ts';

/** A machine as its cloud tells of it. */
export interface CloudMachine extends Omit<Machine, 'ready'> {
  zone?: string;
}

/** A stock Ubuntu 24.04. */
export interface MachineImage {
  /** As MachinePool.image has it. */
  image: string;
  /** As MachinePool.rootDevice has it. */
  rootDevice?: string;
}

/**
 * What a cloud has to offer for machines of hosted control planes. Groups of machines are made by the program of the layer
 * `machines`; what is done to single machines, by the cloud's own API. Errors are CoppiceErrors.
 */
export interface MachineCloud {
  layers: LayeredCloud;
  /** What the cloud cannot give of this, besides what no provider can. Pure. */
  problems(wanted: Wanted): Problem[];
  image(ctx: CloudContext, architecture: 'amd64' | 'arm64'): Promise<MachineImage>;
  /** All machines of the owner in these pools, those on their way out included as long as the cloud tells of them. */
  machines(ctx: CloudContext, pools: readonly string[]): Promise<CloudMachine[]>;
  /** Ends exactly these machines, each of which is there, and makes the pool's group smaller by as many. */
  remove(ctx: CloudContext, pool: string, machines: readonly CloudMachine[]): Promise<void>;
  /** Why the pool's group could not make a machine when it last tried, in the cloud's words; undefined: it could. */
  failure?(ctx: CloudContext, pool: string): Promise<string | undefined>;
}
