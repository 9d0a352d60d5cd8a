import type { Owner, TaggedResource } from '../../providers/cloud.ts';
import type { CloudProfile } from '../api/cloudprofile.ts';
import { technicalID } from '../api/names.ts';
import { formatMoney } from '../cost/money.ts';
import { machinePrice } from '../cost/price.ts';

/** A cluster that may own resources in a cloud. */
export interface KnownOwner {
  uid: string;
  name: string;
  namespace: string;
}

/** A tagged cloud resource whose owner no longer exists in this garden. */
export interface Orphan extends TaggedResource {
  /** Milliseconds since its creation, where the cloud reports it. */
  ageMs?: number;
  /** Hourly price where known: a decimal with its currency. */
  price?: { hourly: string; currency: string };
}

/**
 * Tagged resources that belong to no existing object. Pure. Resources of another garden, or without a garden tag, are
 * left out. `known` must be listed after `tagged`, so that resources made meanwhile for a new cluster find their owner.
 * @param garden UID of the garden's namespace kube-system
 */
export function listOrphans(
  tagged: readonly TaggedResource[],
  known: readonly KnownOwner[],
  garden: string,
  now: Date,
  profile?: CloudProfile,
): Orphan[] {
  // Some clouds allow few tags on some resources: these are matched by another resource of the same owner.
  const ours = new Set(tagged.filter(({ owner }) => owner.garden === garden).map(({ owner }) => identity(owner)));
  const uids = new Set(known.map(({ uid }) => uid));
  const names = new Set(known.map(({ namespace, name }) => technicalID(namespace, name)));
  const isOurs = ({ owner }: TaggedResource): boolean =>
    owner.garden === garden || (owner.garden === undefined && ours.has(identity(owner)));
  // Resources of an earlier cluster of the same name are adopted by the present one: physical names are derived from
  // the cluster's name.
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

/** Identifies an owner as far as the tags allow. */
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
 * Orphans grouped by their former owner, the unit of removal. Orphans without a UID are left out. Name and namespace
 * are empty where tags have no room for them: at Google Cloud only machines take labels.
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

/** Name of the owner's cluster for messages. */
export const calledOwner = ({ namespace, name, technicalID: id }: Owner): string =>
  name ? `${namespace}/${name}` : id;
