import { GROUP, LABELS, ROLES } from '../../api/group.ts';
import { attachedRecordName } from '../../api/names.ts';
import { type ReceiptCache, type ReceiptClient, Receipts, receiptIn } from '../../kube/receipt.ts';
import type { Secret } from '../../kube/resources.ts';

/** Which cluster an attached one was first seen to be: a status may be lost with a backup, and this must not. */
export interface AttachedRecord {
  readonly cluster: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** UID of its namespace kube-system. */
  readonly identity: string;
}

const TYPE = `${GROUP}/${ROLES.attachedRecord}`;
/** Selects the Secrets with records. */
export const ATTACHED_RECORDS = `${LABELS.role}=${ROLES.attachedRecord}`;

/** The records of all attached clusters, by `namespace/name`, in the operator's namespace: a tenant writes none of them. */
export const attachedRecords = (
  garden: ReceiptClient,
  operatorNamespace: string,
  cache: ReceiptCache,
): Receipts<AttachedRecord> =>
  new Receipts<AttachedRecord>(
    garden,
    (key) => ({
      name: attachedRecordName(key),
      namespace: operatorNamespace,
      labels: { [LABELS.managedBy]: 'coppice', [LABELS.role]: ROLES.attachedRecord },
      type: TYPE,
    }),
    {
      cache,
      marks: ({ cluster }) => ({
        [LABELS.workerCluster]: cluster.name,
        [LABELS.workerClusterNamespace]: cluster.namespace,
      }),
    },
  );

export const clusterOfRecord = ({ cluster }: AttachedRecord): string => `${cluster.namespace}/${cluster.name}`;

/** The record in a Secret of the operator's namespace; undefined when it says nothing, or is of another cluster than its name says. */
export function attachedRecordIn(secret: Secret): AttachedRecord | undefined {
  const record = secret.type === TYPE ? receiptIn<AttachedRecord>(secret) : undefined;
  return record?.cluster?.uid && attachedRecordName(clusterOfRecord(record)) === secret.metadata.name
    ? record
    : undefined;
}
