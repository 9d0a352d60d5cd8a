import { LABELS, ROLES } from '../../api/group.ts';
import { attachedReceiptName } from '../../api/names.ts';
import {
  operatorReceiptPlace,
  type ReceiptCache,
  type ReceiptClient,
  Receipts,
  receiptIn,
  receiptType,
} from '../../kube/receipt.ts';
import type { Secret } from '../../kube/resources.ts';

/** Receipt with the identity of an attached cluster: unlike a status, it must survive a restored backup. */
export interface AttachedReceipt {
  readonly cluster: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** UID of its namespace kube-system. */
  readonly identity: string;
}

const TYPE = receiptType(ROLES.attachedReceipt);
/** Selects receipt Secrets. */
export const ATTACHED_RECEIPTS = `${LABELS.role}=${ROLES.attachedReceipt}`;

/** Receipts of attached clusters by `namespace/name`, in the operator's namespace, where tenants cannot write. */
export const attachedReceipts = (
  garden: ReceiptClient,
  operatorNamespace: string,
  cache: ReceiptCache,
): Receipts<AttachedReceipt> =>
  new Receipts<AttachedReceipt>(
    garden,
    (key) => operatorReceiptPlace(operatorNamespace, attachedReceiptName(key), ROLES.attachedReceipt),
    {
      cache,
      marks: ({ cluster }) => ({
        [LABELS.workerCluster]: cluster.name,
        [LABELS.workerClusterNamespace]: cluster.namespace,
      }),
    },
  );

export const clusterOfAttachedReceipt = ({ cluster }: AttachedReceipt): string =>
  `${cluster.namespace}/${cluster.name}`;

/** Receipt in a Secret of the operator's namespace; undefined: invalid, or its name belongs to another cluster. */
export function attachedReceiptIn(secret: Secret): AttachedReceipt | undefined {
  const receipt = secret.type === TYPE ? receiptIn<AttachedReceipt>(secret) : undefined;
  return receipt?.cluster?.uid && attachedReceiptName(clusterOfAttachedReceipt(receipt)) === secret.metadata.name
    ? receipt
    : undefined;
}
