import type { CloudPool, NetworkOutputs, Owner } from '../cloud.ts';

/** A group of machines that join a cluster which is not Google's. */
export interface MachinePool extends CloudPool {
  /** Self link of the machine image or its family, for the pool's architecture. */
  image: string;
  /** What cloud-init gets, as text. Holds no lasting secret: whoever may read the template, and every pod that reaches the metadata server, can read it. */
  userData: string;
}

/** Inputs of the layer `machines`. */
export interface MachinesInputs {
  owner: Owner;
  region: string;
  /** Of the cluster: for pools that name none. */
  zones: string[];
  network: NetworkOutputs;
  pools: MachinePool[];
  /** From where the API server calls kubelets (TCP 10250), CIDR. Empty: machines dial out, nothing is let in. */
  kubeletClients: string[];
}

/** Outputs of the layer `machines`. */
export interface MachinesOutputs {
  /** Address of the service account that the machines are. */
  serviceAccount: string;
  /** Name of the regional managed instance group by name of the pool. */
  groups: Record<string, string>;
}
