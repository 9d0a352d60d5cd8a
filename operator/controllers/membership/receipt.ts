import { z } from 'zod';
import { LABELS, ROLES } from '../../api/group.ts';
import type { HubSpec } from '../../api/hub.ts';
import { membershipReceiptName } from '../../api/names.ts';
import type { Credential, Endpoint, ForeignEntry, Identity, Place, Step, Trace, Wanted } from '../../hubs/contract.ts';
import type { KubeClient } from '../../kube/client.ts';
import {
  operatorReceiptPlace,
  type ReceiptCache,
  type ReceiptClient,
  Receipts,
  receiptIn,
  receiptType,
} from '../../kube/receipt.ts';
import { keyOf, SECRETS, type Secret } from '../../kube/resources.ts';

/** A credential as it is kept: whose it is, and when it is replaced. */
export interface KeptCredential extends Credential {
  readonly identity: string;
  readonly side: Identity['on'];
  readonly account: Identity['account'];
  /** RFC 3339; absent: never. */
  readonly renewAt?: string;
  /** UID of what the token lives and dies with; absent: written before this was known. */
  readonly boundTo?: string;
}

/**
 * What was made for a membership, on both sides, written down before it is made. It says all that is needed to take it away again, also when
 * the Hub, the cluster or the Membership are gone.
 */
export interface MembershipReceipt {
  readonly membership: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly cluster: string;
  readonly hub: { readonly name: string; readonly identity: string; readonly spec: HubSpec };
  /** Name in the hub, UID of its namespace kube-system, and where it was reached last. */
  readonly member: { readonly name: string; readonly id: string; readonly endpoint: Endpoint };
  readonly places: readonly (Place & Partial<Pick<Trace, 'labels'>>)[];
  readonly credentials: readonly KeptCredential[];
  /** What somebody else made and is ours from now on, by UID; absent: nothing is being taken over. */
  readonly takingOver?: ForeignEntry['places'];
  /** The hub has shown its capacity once: from then on it is open for work. */
  readonly opened?: true;
  /**
   * Work is moved away before it sleeps, it sleeps, or it wakes and has not got new credentials and nodes yet; or work is moved away because its
   * BurstPolicy may give it back: it is closed for as long.
   */
  readonly parked?: 'FallingAsleep' | 'Asleep' | 'Waking' | 'Emptying';
}

const text = z.string().min(1);
const place = z.looseObject({
  on: z.enum(['hub', 'member']),
  resource: z.looseObject({ group: z.string(), version: text, plural: text }),
  name: text,
  namespace: z.string().optional(),
});
/** The form of a receipt of a Membership. A later Coppice may add fields: they are kept as they are. */
const form = z.looseObject({
  membership: z.looseObject({ namespace: text, name: text, uid: z.string() }),
  cluster: text,
  hub: z.looseObject({ name: text, identity: z.string(), spec: z.looseObject({ type: text }) }),
  member: z.looseObject({ name: text, id: z.string(), endpoint: z.looseObject({ server: z.string() }) }),
  places: z.array(place),
  credentials: z.array(z.looseObject({ identity: text, side: z.enum(['hub', 'member']), token: z.string() })),
  takingOver: z.array(place).optional(),
  opened: z.literal(true).optional(),
  parked: z.enum(['FallingAsleep', 'Asleep', 'Waking', 'Emptying']).optional(),
});

/**
 * Why what is stored as the receipt of a Membership cannot be acted on; undefined: it can. What it says was made would otherwise be taken for
 * nothing. Pure.
 */
function whyNotUnderstood(stored: unknown): string | undefined {
  const issue = form.safeParse(stored).error?.issues[0];
  return issue && `${issue.path.join('.') || 'it'}: ${issue.message}`;
}

const MEMBERSHIP_RECEIPT_TYPE = receiptType(ROLES.membershipReceipt);
/** Selects the Secrets with receipts. */
export const MEMBERSHIP_RECEIPTS = `${LABELS.role}=${ROLES.membershipReceipt}`;

/** The receipts of all memberships, by `namespace/name`, in the operator's namespace: a tenant writes none of them. */
export const membershipReceipts = (
  garden: ReceiptClient,
  operatorNamespace: string,
  cache: ReceiptCache,
): Receipts<MembershipReceipt> =>
  new Receipts<MembershipReceipt>(
    garden,
    (key) => operatorReceiptPlace(operatorNamespace, membershipReceiptName(key), ROLES.membershipReceipt),
    {
      cache,
      whyNotUnderstood,
      marks: ({ membership, cluster }) => ({
        [LABELS.workerCluster]: cluster,
        [LABELS.workerClusterNamespace]: membership.namespace,
      }),
    },
  );

/** Every receipt that there is, with the key of its Secret; one that cannot be read is left out. */
export async function receiptsIn(
  garden: Pick<KubeClient, 'list'>,
  operatorNamespace: string,
  signal: AbortSignal,
): Promise<{ key: string; receipt: MembershipReceipt }[]> {
  const options = { namespace: operatorNamespace, labelSelector: MEMBERSHIP_RECEIPTS, signal };
  const { items } = await garden.list<Secret>(SECRETS, options);
  return items.flatMap((secret) => {
    const receipt = secret.type === MEMBERSHIP_RECEIPT_TYPE ? receiptIn<MembershipReceipt>(secret) : undefined;
    return receipt ? [{ key: keyOf(secret), receipt }] : [];
  });
}

export const samePlace = (a: Place, b: Place): boolean =>
  a.on === b.on &&
  a.name === b.name &&
  (a.namespace ?? '') === (b.namespace ?? '') &&
  a.resource.plural === b.resource.plural &&
  a.resource.group === b.resource.group;

export const placeOf = ({ on, resource, object }: Wanted): Place => ({
  on,
  resource,
  name: object.metadata.name,
  ...(resource.namespaced && { namespace: object.metadata.namespace ?? '' }),
});

/** The receipt with everything in it that these steps are about to make; the same object where that is no news. Pure. */
export function noting(
  receipt: MembershipReceipt,
  wanted: readonly Wanted[],
  steps: readonly Step[],
): MembershipReceipt {
  const made = wanted.filter(({ shared, subresource }) => !shared && !subresource).map(placeOf);
  const fresh: MembershipReceipt['places'][number][] = [];
  for (const place of [...made, ...steps.flatMap(({ traces = [] }) => traces)])
    if (![...receipt.places, ...fresh].some((known) => samePlace(known, place))) fresh.push(place);
  return fresh.length > 0 ? { ...receipt, places: [...receipt.places, ...fresh] } : receipt;
}
