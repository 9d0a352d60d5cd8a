import type { CloudContext } from '../cloud.ts';
import type { Machine, Problem, WantedSpec } from '../contract.ts';
import type { LayeredCloud } from '../pulumi/layers.ts';

/** A machine as its cloud reports it. */
export interface CloudMachine extends Omit<Machine, 'ready' | 'outdated'> {
  /** MachinePool.hash at its creation. Absent: none. */
  hash?: string;
}

/** A stock Ubuntu 24.04. */
export interface MachineImage {
  /** See MachinePool.image. */
  image: string;
  /** See MachinePool.rootDevice. */
  rootDevice?: string;
}

/**
 * A cloud's operations on machines. Programs of the layer `machines` make groups; the cloud's own API acts on single
 * machines. Errors are CoppiceErrors.
 */
export interface MachineCloud {
  layers: LayeredCloud;
  /**
   * Type of a pool's group in programs (named `pool-<pool>`), its size property, and its place property if changing
   * that moves machines.
   */
  group: { type: string; size: string; places?: string };
  /** Problems of the wish specific to this cloud. Pure. */
  problems(wanted: WantedSpec): Problem[];
  image(ctx: CloudContext, architecture: 'amd64' | 'arm64'): Promise<MachineImage>;
  /** All machines of the owner in these pools, including ending ones while the cloud shows them. */
  machines(ctx: CloudContext, pools: readonly string[]): Promise<CloudMachine[]>;
  /** Ends exactly these existing machines, and shrinks the pool's group by their number. */
  remove(ctx: CloudContext, pool: string, machines: readonly CloudMachine[]): Promise<void>;
  /** Why the pool's group failed to make a machine last time, in the cloud's words; undefined: it did not fail. */
  failure?(ctx: CloudContext, pool: string): Promise<string | undefined>;
  /** Present: it has programs for the layers `endpoint` and `control-plane`. */
  controlPlane?: {
    /** Missing permissions for them; empty when complete or unknown. Changes nothing. */
    missing(ctx: CloudContext): Promise<string[]>;
    /**
     * Removes these ended machines from the count of the pool's group, and any that the cloud does not list, except
     * machines being created. Unknown names are fine.
     * @param listed names of all machines of the pool that `machines` reports
     */
    forget(ctx: CloudContext, pool: string, names: readonly string[], listed: readonly string[]): Promise<void>;
    /**
     * Resource types that are recreated when somebody deleted them: without an address, identity or member that
     * machines and certificates refer to.
     */
    remade: readonly string[];
  };
}
