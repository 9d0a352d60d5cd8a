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

/** Tag of a machine: MachinePool.hash when it was made. Of Azure's machines the user data are that. */
export const POOL_HASH_TAG = 'coppice-pool-hash';

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

/**
 * Tag keys by which a cluster that others made says that it was taken over. Not OWNER_TAGS: by those the sweep finds what may be
 * removed, and what we did not make never may.
 */
export const ADOPTION_TAGS = {
  /** UID of the WorkerCluster. */
  uid: 'coppice-adopted-by',
  /** Its namespace and name. */
  name: 'coppice-adopted-as',
  garden: 'coppice-adopted-in',
  deletionPolicy: 'coppice-adopted-until',
} as const;

/** The tags of a cluster that the owner has taken over. */
export const adoptionTags = (
  { uid, namespace, name, garden }: Owner,
  deletionPolicy: string,
): Record<string, string> => ({
  [ADOPTION_TAGS.uid]: uid,
  [ADOPTION_TAGS.name]: `${namespace}/${name}`,
  ...(garden !== undefined && { [ADOPTION_TAGS.garden]: garden }),
  [ADOPTION_TAGS.deletionPolicy]: deletionPolicy,
});

/** Tags without those of an adoption. */
export const withoutAdoption = (tags: Readonly<Record<string, string>>): Record<string, string> => {
  const ours: readonly string[] = Object.values(ADOPTION_TAGS);
  return Object.fromEntries(Object.entries(tags).filter(([key]) => !ours.includes(key)));
};
