import type { Owner } from './cloud.ts';

/** Tag keys (at GCP: label keys) of a resource's owner: equal in every cloud, so in GCP's narrow alphabet. */
export const OWNER_TAGS = {
  technicalID: 'coppice-technical-id',
  uid: 'coppice-uid',
  name: 'coppice-cluster',
  namespace: 'coppice-namespace',
  garden: 'coppice-garden',
} as const satisfies Record<keyof Owner, string>;

/** Tag of the pool for cost allocation; on machines, in addition to OWNER_TAGS. */
export const POOL_TAG = 'coppice-pool';

/** Tag of a machine: MachinePool.hash at its creation. On Azure user data serve this purpose. */
export const POOL_HASH_TAG = 'coppice-pool-hash';

/** Tags of everything that is made for the owner. */
export const tagsOf = (owner: Owner): Record<string, string> =>
  Object.fromEntries(
    Object.entries(OWNER_TAGS).flatMap(([field, key]) => {
      const value = owner[field as keyof Owner];
      return value === undefined ? [] : [[key, value]];
    }),
  );

/** Owner by tags; undefined: not ours. */
export function ownerOf(tags: Readonly<Record<string, string | undefined>>): Partial<Owner> | undefined {
  const known = Object.entries(OWNER_TAGS).filter(([, key]) => tags[key] !== undefined);
  if (known.length === 0) return undefined;
  return Object.fromEntries(known.map(([field, key]) => [field, tags[key]]));
}

/**
 * Tag keys of an adopted cluster. Separate from OWNER_TAGS, by which the sweep finds removable resources: foreign
 * resources never are.
 */
export const ADOPTION_TAGS = {
  /** UID of the WorkerCluster. */
  uid: 'coppice-adopted-by',
  /** `namespace/name` of the WorkerCluster. */
  name: 'coppice-adopted-as',
  garden: 'coppice-adopted-in',
  deletionPolicy: 'coppice-adopted-until',
} as const;

/** Tags of a cluster that the owner adopted. */
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
