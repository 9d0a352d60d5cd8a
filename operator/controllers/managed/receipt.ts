import type { Change, CloudNode, ManagedClusterOutputs, Owner, WantedCluster } from '../../../providers/cloud.ts';
import type { CredentialsUse } from '../../accounts/credentials.ts';
import { configurationProblem } from '../../api/errors.ts';
import { LABELS, ROLES } from '../../api/group.ts';
import { managedReceiptName } from '../../api/names.ts';
import {
  clusterReceiptPlace,
  type ReceiptCache,
  type ReceiptClient,
  type ReceiptPlace,
  Receipts,
  receiptIn,
  receiptType,
} from '../../kube/receipt.ts';
import type { Secret } from '../../kube/resources.ts';

/**
 * Nodes being removed from one pool. Recorded before the cloud is asked, so that after a crash the same ones are
 * requested.
 */
export interface Removing {
  readonly pool: string;
  readonly nodes: readonly (CloudNode & { readonly uid: string })[];
}

/**
 * Receipt of a managed cluster in the operator's namespace. It is no source of truth about the cloud: a lost one costs
 * one more run, which takes over resources with the owner's tags.
 */
export interface ManagedReceipt {
  owner: Owner;
  /** Name of the CloudProfile. */
  profile: string;
  /** Number of its place in the spec. Absent: older than this field. */
  place?: number;
  /** Account of the cluster: other credentials would make a second cluster elsewhere. */
  account: string;
  /** Credentials for finding leftovers of a force-deleted cluster. */
  credentials: CredentialsUse;
  /** Last request to the cloud, finished or not. */
  cluster: WantedCluster;
  /** Preview of that request. */
  planned?: Change[];
  /** Hash of the last applied wish. */
  applied?: string;
  outputs?: ManagedClusterOutputs;
  /**
   * `outputs` come from a place where tenants can write: no secrets are sent to that endpoint before the cloud confirms
   * it.
   */
  unconfirmed?: true;
  /** Drift at the last check; empty: none. */
  drift?: Change[];
  /** RFC 3339. */
  lookedAt?: string;
  /** Nodes that the cloud was, or is about to be, asked to end. Until removed, the result is unknown. */
  removing?: Removing;
  /** Sizes after removals of named nodes, by pool, which the stack's state lacks. */
  left?: Record<string, { size: number }>;
  /** UIDs of removed nodes that still exist. */
  removed?: string[];
}

/** Most stored changes: a Secret holds 1 MiB. */
const MOST_CHANGES = 100;

export const RECEIPT_TYPE = receiptType(ROLES.cloudReceipt);
/** Selects receipt Secrets. */
export const RECEIPT_SELECTOR = `${LABELS.role}=${ROLES.cloudReceipt}`;

/** Place of a cluster's receipt: outside of its namespace, where a tenant could forge one. */
const receiptPlace = (operatorNamespace: string, key: string): ReceiptPlace =>
  clusterReceiptPlace(operatorNamespace, managedReceiptName(key), ROLES.cloudReceipt, key);

/**
 * Receipts of managed clusters by `namespace/name`, without owner references, because each must outlive a force-deleted
 * cluster.
 */
export const managedReceipts = (
  garden: ReceiptClient,
  operatorNamespace: string,
  cache?: ReceiptCache,
): Receipts<ManagedReceipt> =>
  new Receipts<ManagedReceipt>(garden, (key) => receiptPlace(operatorNamespace, key), {
    ...(cache && { cache }),
    bounded: boundReceipt,
    marks: ({ owner }) => ({ [LABELS.workerClusterUID]: owner.uid, [LABELS.technicalID]: owner.technicalID }),
  });

/**
 * Throws when another cluster has the same names in the cloud and of stacks: long names end with a 32-bit hash, for
 * which collisions can be found.
 * @param secrets all receipt Secrets
 */
export function assertOwnNames({ owner }: ManagedReceipt, secrets: readonly Secret[]): void {
  const other = secrets.find(
    ({ metadata: { name, labels } }) =>
      labels?.[LABELS.technicalID] === owner.technicalID && name !== managedReceiptName(clusterOfReceipt({ owner })),
  );
  if (!other) return;
  const { [LABELS.workerClusterNamespace]: namespace, [LABELS.workerCluster]: name } = other.metadata.labels ?? {};
  throw configurationProblem(
    `WorkerCluster ${namespace}/${name} has the name ${owner.technicalID} in the cloud already`,
    'Give this cluster another name.',
  );
}

/** `namespace/name` of a receipt's cluster. */
export const clusterOfReceipt = ({ owner }: Pick<ManagedReceipt, 'owner'>): string =>
  `${owner.namespace}/${owner.name}`;

/** The receipt to store, with a limited number of changes. */
export const boundReceipt = (receipt: ManagedReceipt): ManagedReceipt => ({
  ...receipt,
  ...capped('planned', receipt.planned),
  ...capped('drift', receipt.drift),
});

const capped = (field: string, changes: Change[] | undefined) =>
  changes ? { [field]: changes.slice(0, MOST_CHANGES) } : {};

/** Receipt in a Secret of the operator's namespace; undefined: invalid, or its name belongs to another cluster. */
export function managedReceiptIn(secret: Secret): ManagedReceipt | undefined {
  const receipt = receiptIn<ManagedReceipt>(secret);
  return receipt?.owner?.uid && managedReceiptName(clusterOfReceipt(receipt)) === secret.metadata.name
    ? receipt
    : undefined;
}
