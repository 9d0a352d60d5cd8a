import type { Change, CloudNode, ManagedCluster, ManagedClusterOutputs, Owner } from '../../../providers/cloud.ts';
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

/** Nodes of one pool of the cloud that are removed. Written down before the cloud is asked: whoever comes after a crash asks for these again. */
export interface Removing {
  readonly pool: string;
  readonly nodes: readonly (CloudNode & { readonly uid: string })[];
}

/**
 * What the operator remembers of a managed cluster across restarts, in its own namespace. Nothing of it is the truth about the cloud: a
 * lost receipt costs one more run, which adopts what bears the owner's tags.
 */
export interface ManagedReceipt {
  owner: Owner;
  /** Name of the CloudProfile. */
  profile: string;
  /** Which of the places that its spec allows it is in. Absent: it was made before that was written down. */
  place?: number;
  /** The account that the cluster is in: credentials of another one would make a second cluster there. */
  account: string;
  /** For whoever must find what a cluster left behind that was deleted by force. */
  credentials: CredentialsUse;
  /** What the cloud was last asked for, whether or not that has ended. */
  cluster: ManagedCluster;
  /** What the preview said of that, before it was begun. */
  planned?: Change[];
  /** Hash of the wish that the cloud was last made to be like. */
  applied?: string;
  outputs?: ManagedClusterOutputs;
  /** `outputs` come from where a tenant may write: nothing secret goes to that endpoint before the cloud has told it again. */
  unconfirmed?: true;
  /** What others had changed when it was last looked; empty: nothing. */
  drift?: Change[];
  /** RFC 3339. */
  lookedAt?: string;
  /** Nodes that the cloud was, or is about to be, asked to end. Until this is gone nobody knows whether it has. */
  removing?: Removing;
  /** Sizes that the cloud was left with when named nodes went, by pool: the state of the stack does not say so yet. */
  left?: Record<string, { size: number }>;
  /** UIDs of nodes that were removed, while they are still there. */
  removed?: string[];
}

/** More than a screen of differences helps nobody, and a Secret holds 1 MiB. */
const MOST_CHANGES = 100;

export const RECEIPT_TYPE = receiptType(ROLES.cloudReceipt);
/** Selects the Secrets with receipts. */
export const RECEIPT_SELECTOR = `${LABELS.role}=${ROLES.cloudReceipt}`;

/** Where the receipt of a cluster lies: not in its own namespace, where a tenant could write another one. */
const receiptPlace = (operatorNamespace: string, key: string): ReceiptPlace =>
  clusterReceiptPlace(operatorNamespace, managedReceiptName(key), ROLES.cloudReceipt, key);

/** The receipts of all managed clusters, by `namespace/name`. They have no owner: each must outlive a cluster that is deleted by force. */
export const managedReceipts = (
  garden: ReceiptClient,
  operatorNamespace: string,
  cache?: ReceiptCache,
): Receipts<ManagedReceipt> =>
  new Receipts<ManagedReceipt>(garden, (key) => receiptPlace(operatorNamespace, key), {
    ...(cache && { cache }),
    bounded,
    marks: ({ owner }) => ({ [LABELS.workerClusterUID]: owner.uid, [LABELS.technicalID]: owner.technicalID }),
  });

/**
 * Throws when another cluster has the names in the cloud, and the stacks, that this one would have: of a long name they end with a hash of
 * 32 bits, for which another name can be found.
 * @param secrets all that there are with receipts
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

/** `namespace/name` of the cluster that a receipt is of. */
export const clusterOfReceipt = ({ owner }: Pick<ManagedReceipt, 'owner'>): string =>
  `${owner.namespace}/${owner.name}`;

/** A receipt as it is written: with no more differences than a Secret holds. */
export const bounded = (receipt: ManagedReceipt): ManagedReceipt => ({
  ...receipt,
  ...capped('planned', receipt.planned),
  ...capped('drift', receipt.drift),
});

const capped = (field: string, changes: Change[] | undefined) =>
  changes ? { [field]: changes.slice(0, MOST_CHANGES) } : {};

/** The receipt in a Secret of the operator's namespace; undefined when it says nothing, or is of another cluster than its name says. */
export function managedReceiptIn(secret: Secret): ManagedReceipt | undefined {
  const receipt = receiptIn<ManagedReceipt>(secret);
  return receipt?.owner?.uid && managedReceiptName(clusterOfReceipt(receipt)) === secret.metadata.name
    ? receipt
    : undefined;
}
