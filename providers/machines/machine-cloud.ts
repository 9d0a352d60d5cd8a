import type { CloudContext } from '../cloud.ts';
import type { Machine, Problem, Wanted } from '../contract.ts';
import type { LayeredCloud } from '../pulumi/layers.ts';

/** A machine as its cloud tells of it. */
export interface CloudMachine extends Omit<Machine, 'ready' | 'outdated'> {
  /** MachinePool.hash when it was made. Absent: it had none. */
  hash?: string;
}

/** A stock Ubuntu 24.04. */
export interface MachineImage {
  /** As MachinePool.image has it. */
  image: string;
  /** As MachinePool.rootDevice has it. */
  rootDevice?: string;
}

/**
 * What a cloud has to offer for machines of clusters. Groups of machines are made by the program of the layer
 * `machines`; what is done to single machines, by the cloud's own API. Errors are CoppiceErrors.
 */
export interface MachineCloud {
  layers: LayeredCloud;
  /**
   * Type of pools' groups in programs (their names are `pool-<pool>`), and the properties that say how many machines one has, and where
   * they are, if a cloud moves machines when that is changed.
   */
  group: { type: string; size: string; places?: string };
  /** What the cloud cannot give of this, besides what no provider can. Pure. */
  problems(wanted: Wanted): Problem[];
  image(ctx: CloudContext, architecture: 'amd64' | 'arm64'): Promise<MachineImage>;
  /** All machines of the owner in these pools, those on their way out included as long as the cloud tells of them. */
  machines(ctx: CloudContext, pools: readonly string[]): Promise<CloudMachine[]>;
  /** Ends exactly these machines, each of which is there, and makes the pool's group smaller by as many. */
  remove(ctx: CloudContext, pool: string, machines: readonly CloudMachine[]): Promise<void>;
  /** Why the pool's group could not make a machine when it last tried, in the cloud's words; undefined: it could. */
  failure?(ctx: CloudContext, pool: string): Promise<string | undefined>;
  /** Present: it has programs for the layers `endpoint` and `control-plane`. */
  controlPlane?: {
    /** Permissions that these need and the credentials lack; empty when all are there or it cannot be told. Makes nothing. */
    missing(ctx: CloudContext): Promise<string[]>;
    /**
     * Has the pool's group no longer count these machines, which are gone or going, nor any that the cloud does not list, but for those
     * that it is only just making. Names that the group does not know are fine.
     * @param listed names of all machines of the pool that `machines` tells of
     */
    forget(ctx: CloudContext, pool: string, names: readonly string[], listed: readonly string[]): Promise<void>;
    /**
     * Types, as programs have them, of which one that others took away is made anew when it is mended: it has no address, identity or
     * member that machines and certificates of before would go on naming.
     */
    remade: readonly string[];
  };
}
