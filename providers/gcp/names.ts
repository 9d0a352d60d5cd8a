import { fitName, shortHash } from '../../operator/api/names.ts';
import type { Owner } from '../cloud.ts';

/**
 * Longest names, in characters. Sources: @pulumi/gcp (NetworkArgs.name, AccountArgs.accountId), google.container.v1 Cluster.name and
 * NodePool.name, google.cloud.kms.v1 (CreateKeyRing: [a-zA-Z0-9_-]{1,63}).
 */
export const LONGEST = { compute: 63, cluster: 40, nodePool: 40, serviceAccount: 30, keyRing: 63 } as const;

/** Names of the subnet's secondary ranges, used by later layers. */
export const SECONDARY_RANGES = { podsRange: 'pods', servicesRange: 'services' } as const;

/** Google's names begin with a letter; a technical ID may begin with a digit. */
const base = ({ technicalID }: Pick<Owner, 'technicalID'>): string =>
  /^[a-z]/.test(technicalID) ? technicalID : `c-${technicalID}`;

/** Name of an owner's network, router, template, ...: `<technical ID>-<part>`. */
export function computeName(owner: Pick<Owner, 'technicalID'>, part?: string): string {
  if (part === undefined) return fitName(base(owner), LONGEST.compute);
  return `${fitName(base(owner), LONGEST.compute - part.length - 1)}-${part}`;
}

/**
 * Base name of machines, to which Google appends `-` and four characters
 * (RegionInstanceGroupManagerArgs.baseInstanceName).
 */
export const instanceBaseName = (owner: Owner, pool: string): string =>
  `${fitName(base(owner), LONGEST.compute - '-xxxx'.length - pool.length - 1)}-${pool}`;

export const clusterName = (owner: Owner): string => fitName(base(owner), LONGEST.cluster);

/**
 * Resources that outlive their deletion at Google contain the owner's UID in their name, so that a later cluster of the
 * same name gets its own.
 */
const ofThisOwner = (owner: Owner, max: number): string => `${fitName(base(owner), max - 9)}-${shortHash(owner.uid)}`;

/** Key rings cannot be deleted, and an empty one costs nothing (google_kms_key_ring). */
export const keyRingName = (owner: Owner): string => ofThisOwner(owner, LONGEST.keyRing);

/** Key in the ring for the encryption of Secrets. */
export const SECRETS_KEY = 'secrets';

/**
 * A role granted to a deleted account does not apply to a new one of the same name (IAM: "deleted:serviceAccount:").
 */
export const serviceAccountName = (owner: Owner): string => ofThisOwner(owner, LONGEST.serviceAccount);

/** The service account as a member in grants. */
export const serviceAccountMember = (owner: Owner, project: string): string =>
  `serviceAccount:${serviceAccountName(owner)}@${project}.iam.gserviceaccount.com`;
