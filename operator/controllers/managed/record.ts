import type { Change, ManagedCluster, ManagedClusterOutputs, Owner } from '../../../providers/cloud.ts';
import type { CredentialsUse } from '../../accounts/credentials.ts';
import { GROUP, LABELS, ROLES } from '../../api/group.ts';
import type { Secret } from '../../kube/resources.ts';

/**
 * What the operator remembers of a managed cluster across restarts. Nothing of it is the truth about the cloud: a lost
 * record costs one more run, which adopts what bears the owner's tags.
 */
export interface ManagedRecord {
  owner: Owner;
  /** Name of the CloudProfile. */
  profile: string;
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
  /** What others had changed when it was last looked; empty: nothing. */
  drift?: Change[];
  /** RFC 3339. */
  lookedAt?: string;
}

const SUFFIX = '-cloud';
const KEY = 'record';
/** More than a screen of differences helps nobody, and a Secret holds 1 MiB. */
const MOST_CHANGES = 100;

/** Name of the Secret with the record of a cluster. It has no owner: it must outlive a cluster that is deleted by force. */
export const recordSecretName = (cluster: string): string => `${cluster}${SUFFIX}`;

/** `namespace/name` of the cluster that a record's Secret belongs to. */
export const clusterOfRecord = ({ metadata: { namespace, name } }: Secret): string =>
  `${namespace}/${name.slice(0, -SUFFIX.length)}`;

/** Selects the Secrets with records. */
export const RECORD_SELECTOR = `${LABELS.role}=${ROLES.cloudRecord}`;

/** The Secret with this record. */
export function recordSecret(record: ManagedRecord): Secret {
  const { name, namespace } = record.owner;
  const kept = { ...record, ...capped('planned', record.planned), ...capped('drift', record.drift) };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: recordSecretName(name),
      namespace,
      labels: {
        [LABELS.managedBy]: 'coppice',
        [LABELS.role]: ROLES.cloudRecord,
        [LABELS.workerCluster]: name,
      },
    },
    type: `${GROUP}/${ROLES.cloudRecord}`,
    data: { [KEY]: Buffer.from(JSON.stringify(kept)).toString('base64') },
  };
}

const capped = (field: string, changes: Change[] | undefined) =>
  changes ? { [field]: changes.slice(0, MOST_CHANGES) } : {};

/** The record in a Secret; undefined when there is none that can be read. */
export function recordOf(secret: Secret | undefined): ManagedRecord | undefined {
  const text = secret?.data?.[KEY];
  if (!text) return undefined;
  try {
    const record = JSON.parse(Buffer.from(text, 'base64').toString()) as ManagedRecord;
    return record.owner?.uid ? record : undefined;
  } catch {
    return undefined;
  }
}
