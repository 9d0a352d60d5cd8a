import { FINALIZER, GROUP, LABELS } from '../../operator/api/group.ts';
import { Receipts } from '../../operator/kube/receipt.ts';
import type { EndpointOutputs } from '../cloud.ts';
import type { ProviderContext } from '../contract.ts';
import type { Marks } from '../nodes.ts';
import type { WantedControlPlane } from '../pulumi/control-plane-layers.ts';
import type { WantedMachines } from '../pulumi/layers.ts';

/**
 * Receipt of a shoot's machines, in the shoot's namespace of the seed. Its existence says that resources may be in the
 * cloud: it is written before anything is made, and a finalizer keeps it when the namespace is deleted. It is no source
 * of truth about the cloud.
 */
export interface MachinesReceipt {
  /** Account of the machines: other credentials would make new ones elsewhere. */
  account: string;
  /** Last request to the cloud, finished or not. */
  wanted: WantedMachines;
  /** Hash of the last applied machines. */
  applied?: string;
  /** Hash of the last applied network. */
  network?: string;
  /** Pools whose machines were ended since: their groups are smaller than the stack knows. */
  shrunk?: string[];
  /** By pool: assumptions about machines without a hash, which were made before hashes existed. */
  unmarked?: Record<string, Unmarked>;
  /** By pool: labels and taints last applied to nodes. */
  marks?: Record<string, Marks>;
}

/** Assumption about machines without a hash. */
export interface Unmarked {
  hash: string;
  /** RFC 3339. Nothing is assumed about machines made later: replacing one would give another without a hash. */
  madeBefore: string;
}

export const RECEIPT_NAME = 'cloud-machines';

/** Receipt of the shoot's control plane machines. */
export interface ControlPlaneReceipt {
  account: string;
  wanted: WantedControlPlane;
  /** Hash of the last applied endpoint and network. */
  reached?: string;
  endpoint?: EndpointOutputs;
  /** Hash of the last applied group. */
  applied?: string;
  /** Machines were ended or lost since: only the cloud knows the group's size. */
  isStale?: boolean;
  /** Names of machines to end, until the group no longer counts them. */
  ending?: string[];
  /** RFC 3339: when `applied` was set. */
  appliedAt?: string;
}

export const CONTROL_PLANE_RECEIPT_NAME = 'cloud-control-plane';

type Place = Pick<ProviderContext, 'seed' | 'namespace' | 'shootName' | 'shootNamespace'>;

/** Receipts of one shoot, by name. */
export const machineReceipts = <Kept extends object>(ctx: Place): Receipts<Kept> =>
  new Receipts(ctx.seed, (name) => ({
    name,
    namespace: ctx.namespace,
    labels: {
      [LABELS.managedBy]: 'coppice',
      [LABELS.shoot]: ctx.shootName,
      [LABELS.shootNamespace]: ctx.shootNamespace,
    },
    // Contains the tokens that machines were last given.
    type: `${GROUP}/${name}`,
    finalizer: FINALIZER,
  }));
