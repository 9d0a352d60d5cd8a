import type { Owner, TaggedResource } from '../../providers/cloud.ts';
import type { CloudProfile } from '../api/cloudprofile.ts';
import { technicalID } from '../api/names.ts';
import { formatMoney } from '../cost/money.ts';
import { machinePrice } from '../cost/price.ts';

/** What of a cluster may be in a cloud. */
export interface KnownOwner {
  uid: string;
  name: string;
  namespace: string;
}

/** Something in a cloud that nobody here knows any more. */
export interface Orphan extends TaggedResource {
  /** Milliseconds since it was made, where the cloud tells. */
  ageMs?: number;
  /** Price of an hour where it is known: decimal, with its currency. */
  price?: { hourly: string; currency: string };
}

/**
 * Of what bears our tags, that which belongs to no object: pure. What another garden made, or what does not say which garden
 * made it, is not ours to judge. `known` must have been listed after `tagged`: then what was made for a new cluster meanwhile
 * finds its owner.
 * @param garden UID of the garden's namespace kube-system
 */
export function orphans(
  tagged: readonly TaggedResource[],
  known: readonly KnownOwner[],
  garden: string,
  now: Date,
  profile?: CloudProfile,
): Orphan[] {
  // Some clouds leave room for few tags on some resources: those are told by a sibling of the same owner.
  const ours = new Set(tagged.filter(({ owner }) => owner.garden === garden).map(({ owner }) => identity(owner)));
  const uids = new Set(known.map(({ uid }) => uid));
  const names = new Set(known.map(({ namespace, name }) => technicalID(namespace, name)));
  const isOurs = ({ owner }: TaggedResource): boolean =>
    owner.garden === garden || (owner.garden === undefined && ours.has(identity(owner)));
  // What an earlier cluster of a name left behind is taken over by the present one: physical names are made of the name.
  const hasOwner = ({ owner }: TaggedResource): boolean =>
    (owner.uid !== undefined && uids.has(owner.uid)) || names.has(nameOf(owner) ?? '');
  return tagged
    .filter((resource) => identity(resource.owner) !== undefined && isOurs(resource) && !hasOwner(resource))
    .map((resource) => ({ ...resource, ...ageOf(resource, now), ...priceOf(resource, profile) }))
    .sort((a, b) => compare(identity(a.owner) ?? '', identity(b.owner) ?? '') || compare(a.id, b.id));
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const nameOf = ({ technicalID: id, namespace, name }: Partial<Owner>): string | undefined =>
  id ?? (namespace !== undefined && name !== undefined ? technicalID(namespace, name) : undefined);

/** What tells one owner from another, as far as the tags say. */
const identity = (owner: Partial<Owner>): string | undefined => owner.uid ?? nameOf(owner);

function ageOf({ createdAt }: TaggedResource, now: Date): Pick<Orphan, 'ageMs'> {
  const made = Date.parse(createdAt ?? '');
  return Number.isNaN(made) ? {} : { ageMs: Math.max(0, +now - made) };
}

function priceOf({ machineType, region }: TaggedResource, profile: CloudProfile | undefined): Pick<Orphan, 'price'> {
  const type = profile?.spec.machineTypes.find((known) => known.name === machineType);
  const hourly = type && machinePrice(type, region, false);
  return hourly === undefined ? {} : { price: { hourly: formatMoney(hourly), currency: type!.price!.currency } };
}

/**
 * Orphans by the owner that they had: what can be taken away together. Those of which no UID is told are not in it. Name and namespace are
 * empty where nothing has room for them: what a cluster at Google has but machines takes no labels.
 */
export function orphanedOwners(found: readonly Orphan[]): Owner[] {
  const owners = new Map<string, Partial<Owner>>();
  for (const { owner } of found) {
    const key = identity(owner)!;
    owners.set(key, { ...owners.get(key), ...owner });
  }
  return [...owners.values()].flatMap(({ uid, technicalID: id, name = '', namespace = '', ...rest }) =>
    uid !== undefined && id !== undefined ? [{ ...rest, uid, technicalID: id, name, namespace }] : [],
  );
}

/** What its cluster is, or was, called. */
export const calledOwner = ({ namespace, name, technicalID: id }: Owner): string =>
  name ? `${namespace}/${name}` : id;
