import { z } from 'zod';
import type { WantedCluster } from '../../../providers/cloud.ts';
import type { CredentialsUse } from '../../accounts/credentials.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { LABELS, ROLES } from '../../api/group.ts';
import { technicalID } from '../../api/names.ts';
import { isRegion } from '../../api/region.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { profileNamesOf } from '../../capacity/places.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Log } from '../../kube/log.ts';
import { isReceipt, receiptIn } from '../../kube/receipt.ts';
import { SECRETS, type Secret, splitKey } from '../../kube/resources.ts';
import type { ManagedDependencies } from './dependencies.ts';
import { clusterOfReceipt, type ManagedReceipt, RECEIPT_SELECTOR, RECEIPT_TYPE } from './receipt.ts';
import { adoptionOf, cloudOwnerOf, clusterIn } from './wish.ts';

/** Former place of receipts: in the cluster's namespace, where tenants can write. */
const SUFFIX = '-cloud';

interface EarlierReceiptsDependencies extends Pick<ManagedDependencies, 'garden' | 'receipts' | 'recordEvent'> {
  readonly client: Pick<KubeClient, 'list' | 'delete'>;
  /** Present namespace of receipts. */
  readonly namespace: string;
  readonly log: Log;
  cluster(key: string): WorkerCluster | undefined;
  profile(name: string): CloudProfile | undefined;
}

/**
 * Moves receipts to the operator's namespace. Call this before any cluster is reconciled; later ones in the old place
 * are ignored. A receipt that does not match its cluster stays and is reported.
 */
export async function moveEarlierReceipts(deps: EarlierReceiptsDependencies, signal: AbortSignal): Promise<void> {
  const { items } = await deps.client.list<Secret>(SECRETS, { labelSelector: RECEIPT_SELECTOR, signal });
  for (const secret of items) {
    const { name, namespace = '', uid } = secret.metadata;
    const labels = { [LABELS.managedBy]: 'coppice', [LABELS.role]: ROLES.cloudReceipt };
    if (!isReceipt(secret, { labels, type: RECEIPT_TYPE }) || !name.endsWith(SUFFIX)) continue;
    const found = earlierReceipt(deps, `${namespace}/${name.slice(0, -SUFFIX.length)}`, receiptIn(secret));
    if (typeof found === 'string') {
      const message = `this receipt of a managed cluster was rejected: ${found}; the operator ignores it. If it is not yours, delete it`;
      deps.log.warn({ secret: `${namespace}/${name}` }, message);
      deps.recordEvent(secret, 'Warning', 'ReceiptRejected', message);
      continue;
    }
    // A receipt in its place already is newer.
    if (!deps.receipts.get(clusterOfReceipt(found))) await deps.receipts.save(found, undefined, signal);
    await deps.client.delete(SECRETS, name, namespace, { signal, preconditions: { ...(uid && { uid }) } });
  }
}

const name = z.string().min(1).max(253);
const changes = z
  .array(z.object({ operation: z.string(), resource: z.string(), properties: z.array(z.string()).exactOptional() }))
  .optional()
  .catch(undefined);
/** Validated part of a pool: the place of its machines; the next run restores the rest. */
const pools = z
  .array(z.looseObject({ name, machineType: name, zones: z.array(z.string().refine(isRegion)) }))
  .catch([]);
const written = z.object({
  owner: z.object({ uid: z.string().regex(/^[\w-]{1,64}$/) }),
  profile: name,
  account: z.string().max(1024),
  credentials: z.union([
    z.object({ namespace: name, secret: name, binding: name.exactOptional() }),
    z.object({ namespace: name, identity: name, type: name.exactOptional(), binding: name.exactOptional() }),
  ]),
  cluster: z.object({ region: z.string(), kubernetesVersion: z.string().max(64), pools }),
  planned: changes,
  applied: z.string().max(64).optional().catch(undefined),
  outputs: z
    .object({
      name: z.string(),
      endpoint: z.string(),
      certificateAuthority: z.string(),
      version: z.string(),
      extra: z.record(z.string(), z.string()).exactOptional(),
    })
    .optional()
    .catch(undefined),
  drift: changes,
  lookedAt: z.iso.datetime().optional().catch(undefined),
});

/**
 * Returns the trusted fields of a receipt in the old place, or the reason (a clause) why there are none. Tenants cannot
 * choose place and UID of a receipt, so both identify the cluster. The cloud must confirm the endpoint. Pure.
 * @param key `namespace/name` of the cluster beside it
 */
function earlierReceipt(
  {
    garden,
    cluster: clusterAt,
    profile: profileAt,
  }: Pick<EarlierReceiptsDependencies, 'garden' | 'cluster' | 'profile'>,
  key: string,
  content: unknown,
): ManagedReceipt | string {
  const { namespace, name: clusterName } = splitKey(key);
  const parsed = written.safeParse(content);
  if (!parsed.success) return 'it is not of the form that receipts have';
  const { owner, profile: profileName, account, credentials, cluster: asked, planned, ...seen } = parsed.data;
  if (credentials.namespace !== namespace) return `it names credentials of namespace ${credentials.namespace}`;
  const profile = profileAt(profileName);
  if (!profile) return `there is no CloudProfile ${profileName}`;
  const live = clusterAt(key);
  if (live && live.metadata.uid !== owner.uid) return `it is of another cluster than the present ${key}`;
  if (live && !profileNamesOf(live).includes(profileName)) return `${key} does not name CloudProfile ${profileName}`;
  const adopt = live && adoptionOf(live.spec);
  const offers = profile.spec.regions.some((region) => region.name === asked.region);
  if (!isRegion(asked.region) || !(offers || (adopt && live?.spec.region === asked.region)))
    return `CloudProfile ${profileName} has no region ${asked.region.slice(0, 80)}`;
  const cluster: WantedCluster = {
    ...clusterIn(asked.region, profile),
    kubernetesVersion: asked.kubernetesVersion,
    pools: asked.pools as unknown as WantedCluster['pools'],
    ...(adopt && { adopt }),
  };
  const { applied, outputs, drift, lookedAt } = seen;
  return {
    owner: live
      ? cloudOwnerOf(live, garden)
      : { technicalID: technicalID(namespace, clusterName), uid: owner.uid, name: clusterName, namespace, garden },
    profile: profileName,
    account,
    credentials: credentials as CredentialsUse,
    cluster,
    ...(planned && { planned }),
    ...(applied !== undefined && { applied }),
    ...(outputs && { outputs, unconfirmed: true }),
    ...(drift && { drift }),
    ...(lookedAt !== undefined && { lookedAt }),
  };
}
