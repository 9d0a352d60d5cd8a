import type { Owner } from './cloud.ts';

/** Tag (at GCP: label) keys by which a cloud resource says whose it is: as they are in every cloud, so in GCP's narrow alphabet. */
export const OWNER_TAGS = {
  technicalID: 'coppice-technical-id',
  uid: 'coppice-uid',
  name: 'coppice-cluster',
  namespace: 'coppice-namespace',
  garden: 'coppice-garden',
} as const satisfies Record<keyof Owner, string>;

/** Tag by which cost is told apart by pool; on machines, besides OWNER_TAGS. */
export const POOL_TAG = 'coppice-pool';

/** The tags of everything that is made for the owner. */
export const tagsOf = (owner: Owner): Record<string, string> =>
  Object.fromEntries(
    Object.entries(OWNER_TAGS).flatMap(([field, key]) => {
      const value = owner[field as keyof Owner];
      return value === undefined ? [] : [[key, value]];
    }),
  );

/** Whose a resource with these tags is; undefined when none of them is ours. */
export function ownerOf(tags: Readonly<Record<string, string | undefined>>): Partial<Owner> | undefined {
  const known = Object.entries(OWNER_TAGS).filter(([, key]) => tags[key] !== undefined);
  if (known.length === 0) return undefined;
  return Object.fromEntries(known.map(([field, key]) => [field, tags[key]]));
}
