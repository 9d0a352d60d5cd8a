import { FINALIZER, GROUP, LABELS } from '../../operator/api/group.ts';
import { Receipts } from '../../operator/kube/receipt.ts';
import type { EndpointOutputs } from '../cloud.ts';
import type { ProviderContext } from '../contract.ts';
import type { Marks } from '../nodes.ts';
import type { WantedControlPlane } from '../pulumi/control-plane-layers.ts';
import type { WantedMachines } from '../pulumi/layers.ts';

/**
 * What is remembered of a shoot's machines across restarts, in the shoot's namespace in the seed. Nothing of it is the truth about
 * the cloud. That it is there says that something may be in the cloud: so it is written before anything is made, and a finalizer
 * keeps it when the namespace goes.
 */
export interface MachinesReceipt {
  /** The account that the machines are in: credentials of another one would make others there. */
  account: string;
  /** What the cloud was last asked for, whether or not that has ended. */
  wanted: WantedMachines;
  /** Hash of what the machines were last made to be like. */
  applied?: string;
  /** Hash of what the network was last made to be like. */
  network?: string;
  /** Pools of which machines were ended since: their groups are smaller than they were last made to be, which no stack knows. */
  shrunk?: string[];
  /** By name of the pool, what its machines are taken for that bear no hash because they were made before hashes came. */
  unmarked?: Record<string, Unmarked>;
  /** What nodes were last told, by name of the pool. */
  marks?: Record<string, Marks>;
}

/** What machines without a hash are taken for. */
export interface Unmarked {
  hash: string;
  /** RFC 3339. Of a machine made later nothing is known: to replace it would bring another one like it. */
  madeBefore: string;
}

export const RECEIPT_NAME = 'cloud-machines';

/** The same of the machines that run the shoot's control plane. */
export interface ControlPlaneReceipt {
  account: string;
  wanted: WantedControlPlane;
  /** Hash of what the endpoint was last made to be like, with the network under it. */
  reached?: string;
  endpoint?: EndpointOutputs;
  /** Hash of what the group was last made to be like. */
  applied?: string;
  /** Machines were ended or lost since: only a look at the cloud tells how many its group asks for. */
  isStale?: boolean;
  /** Machines that were to end, by name, until the group is known not to count them any more. */
  ending?: string[];
  /** RFC 3339: when `applied` was written. */
  appliedAt?: string;
}

export const CONTROL_PLANE_RECEIPT_NAME = 'cloud-control-plane';

type Place = Pick<ProviderContext, 'seed' | 'namespace' | 'shootName' | 'shootNamespace'>;

/** The receipts of one shoot, by name. */
export const machineReceipts = <Kept extends object>(ctx: Place): Receipts<Kept> =>
  new Receipts(ctx.seed, (name) => ({
    name,
    namespace: ctx.namespace,
    labels: {
      [LABELS.managedBy]: 'coppice',
      [LABELS.shoot]: ctx.shootName,
      [LABELS.shootNamespace]: ctx.shootNamespace,
    },
    // It holds the tokens that machines were last told.
    type: `${GROUP}/${name}`,
    finalizer: FINALIZER,
  }));
