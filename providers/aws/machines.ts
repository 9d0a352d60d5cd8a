import type { CloudPool, NetworkOutputs, Owner } from '../cloud.ts';

/** A group of machines that join a cluster which is not AWS'. */
export interface MachinePool extends CloudPool {
  /** Id of the machine image (ami-...), in the region. */
  image: string;
  /** Device name of the image's root volume, for example /dev/xvda: another would become a second volume. */
  rootDevice: string;
  /** What cloud-init gets, as text; 16 KiB at most. Holds no lasting secret: whoever may describe the template can read it. */
  userData: string;
}

/** Inputs of the layer `machines`. */
export interface MachinesInputs {
  owner: Owner;
  region: string;
  network: NetworkOutputs;
  pools: MachinePool[];
  /** From where the API server calls kubelets (TCP 10250), CIDR. Empty: machines dial out, nothing is let in. */
  kubeletClients: string[];
}

/** Outputs of the layer `machines`. */
export interface MachinesOutputs {
  securityGroup: string;
  /** Name of the Auto Scaling group by name of the pool. */
  groups: Record<string, string>;
}

/** Longest user data, in bytes before base64. Source: Amazon EC2 user guide, "Run commands at launch with instance user data". */
export const LONGEST_USER_DATA = 16 * 1024;
