import { z } from 'zod';
import { LABELS, ROLES } from '../../api/group.ts';
import type { HubSpec } from '../../api/hub.ts';
import { membershipReceiptName } from '../../api/names.ts';
import type {
  ApiServerEndpoint,
  Credential,
  ForeignEntry,
  HubStep,
  Identity,
  Place,
  Trace,
  WantedObject,
} from '../../hubs/contract.ts';
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

/** A stored credential with its identity and renewal time. */
export interface KeptCredential extends Credential {
  readonly identity: string;
  readonly side: Identity['on'];
  readonly account: Identity['account'];
  /** RFC 3339; absent: never. */
  readonly renewAt?: string;
  /** UID of the object that the token is bound to; absent: older than this field. */
  readonly boundTo?: string;
}

/**
 * Receipt of a membership: what was made on both sides, recorded before. Suffices for deletion without the Hub, the
 * cluster or the Membership.
 */
export interface MembershipReceipt {
  readonly membership: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly cluster: string;
  readonly hub: { readonly name: string; readonly identity: string; readonly spec: HubSpec };
  /** Name in the hub, UID of its kube-system, and last endpoint. */
  readonly member: { readonly name: string; readonly id: string; readonly endpoint: ApiServerEndpoint };
  readonly places: readonly (Place & Partial<Pick<Trace, 'labels'>>)[];
  readonly credentials: readonly KeptCredential[];
  /** UIDs of a foreign entry's objects to adopt; absent: none. */
  readonly takingOver?: ForeignEntry['places'];
  /** The hub has shown its capacity once: it is open for work from then on. */
  readonly opened?: true;
  /**
   * Closed for work: it falls asleep, sleeps, or wakes without new credentials and nodes yet; or it is emptied for its
   * BurstPolicy.
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
/** Schema of a stored receipt. Fields of later Coppice versions are kept. */
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

/** Why a stored receipt cannot be used; undefined: it can. Ignoring it would lose what was made. Pure. */
function whyNotUnderstood(stored: unknown): string | undefined {
  const issue = form.safeParse(stored).error?.issues[0];
  return issue && `${issue.path.join('.') || 'it'}: ${issue.message}`;
}

const MEMBERSHIP_RECEIPT_TYPE = receiptType(ROLES.membershipReceipt);
/** Selects receipt Secrets. */
export const MEMBERSHIP_RECEIPTS = `${LABELS.role}=${ROLES.membershipReceipt}`;

/** Receipts of memberships by `namespace/name`, in the operator's namespace, where tenants cannot write. */
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

/** All readable receipts with the keys of their Secrets. */
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

export const placeOfObject = ({ on, resource, object }: WantedObject): Place => ({
  on,
  resource,
  name: object.metadata.name,
  ...(resource.namespaced && { namespace: object.metadata.namespace ?? '' }),
});

/** The receipt with everything that these steps will make; the same object without changes. Pure. */
export function noteSteps(
  receipt: MembershipReceipt,
  wanted: readonly WantedObject[],
  steps: readonly HubStep[],
): MembershipReceipt {
  const made = wanted.filter(({ shared, subresource }) => !shared && !subresource).map(placeOfObject);
  const fresh: MembershipReceipt['places'][number][] = [];
  for (const place of [...made, ...steps.flatMap(({ traces = [] }) => traces)])
    if (![...receipt.places, ...fresh].some((known) => samePlace(known, place))) fresh.push(place);
  return fresh.length > 0 ? { ...receipt, places: [...receipt.places, ...fresh] } : receipt;
}
