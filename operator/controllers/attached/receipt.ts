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

/** Which cluster an attached one was first seen to be: a status may be lost with a backup, and this must not. */
export interface AttachedReceipt {
  readonly cluster: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** UID of its namespace kube-system. */
  readonly identity: string;
}

const TYPE = receiptType(ROLES.attachedReceipt);
/** Selects the Secrets with receipts. */
export const ATTACHED_RECEIPTS = `${LABELS.role}=${ROLES.attachedReceipt}`;

/** The receipts of all attached clusters, by `namespace/name`, in the operator's namespace: a tenant writes none of them. */
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

export const clusterOfReceipt = ({ cluster }: AttachedReceipt): string => `${cluster.namespace}/${cluster.name}`;

/** The receipt in a Secret of the operator's namespace; undefined when it says nothing, or is of another cluster than its name says. */
export function attachedReceiptIn(secret: Secret): AttachedReceipt | undefined {
  const receipt = secret.type === TYPE ? receiptIn<AttachedReceipt>(secret) : undefined;
  return receipt?.cluster?.uid && attachedReceiptName(clusterOfReceipt(receipt)) === secret.metadata.name
    ? receipt
    : undefined;
}
