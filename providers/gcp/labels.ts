import type { Owner } from '../cloud.ts';
import { OWNER_TAGS, ownerOf, tagsOf } from '../tags.ts';

/**
 * Coppice's tags as Google labels: values have at most 63 characters of a-z, 0-9, _ and -
 * (cloud.google.com/compute/docs/labeling-resources). Kubernetes names may contain a dot and never an underscore, a
 * namespace no dot.
 */
export const asLabels = (tags: Readonly<Record<string, string>>): Record<string, string> =>
  mapped(tags, (value) => value.toLowerCase().replaceAll('/', '__').replaceAll('.', '_').slice(0, 63));

/** The tags of these labels, as far as they are Coppice's and were not truncated. */
export const asTags = (labels: Readonly<Record<string, string>>): Record<string, string> =>
  mapped(labels, (value) => value.replaceAll('__', '/').replaceAll('_', '.'));

const mapped = (values: Readonly<Record<string, string>>, change: (value: string) => string): Record<string, string> =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(value)]));

/** Labels of all resources of the owner. */
export const gcpLabelsOf = (owner: Owner, more: Readonly<Record<string, string>> = {}): Record<string, string> =>
  asLabels({ ...tagsOf(owner), ...more });

/** Owner in these labels; undefined when none is Coppice's. */
export const ownerOfLabels = (labels: Readonly<Record<string, string>>): Partial<Owner> | undefined =>
  ownerOf(asTags(labels));

/** Beginning of the description of resources without labels (networks, routers, service accounts). */
export const DESCRIPTION = 'Made by Coppice:';
/** Owner fields that fit: a service account's description has 256 bytes. */
const DESCRIBED = ['technicalID', 'uid', 'garden'] as const;

export const descriptionOf = (owner: Owner): string =>
  [
    DESCRIPTION,
    ...DESCRIBED.flatMap((field) => (owner[field] === undefined ? [] : [`${OWNER_TAGS[field]}=${owner[field]}`])),
  ].join(' ');

/** Owner in a description. */
export const ownerOfDescription = (description: string): Partial<Owner> | undefined =>
  ownerOf(
    Object.fromEntries([...description.matchAll(/(coppice-[a-z-]+)=(\S+)/g)].map((match) => [match[1], match[2]])),
  );
