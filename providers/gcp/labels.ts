import type { Owner } from '../cloud.ts';
import { OWNER_TAGS, ownerOf, tagsOf } from '../tags.ts';

/**
 * Our tags as Google takes labels: values have at most 63 characters of a-z, 0-9, _ and -
 * (cloud.google.com/compute/docs/labeling-resources). Kubernetes' names may have a dot and never an underscore, a namespace no dot.
 */
export const asLabels = (tags: Readonly<Record<string, string>>): Record<string, string> =>
  mapped(tags, (value) => value.toLowerCase().replaceAll('/', '__').replaceAll('.', '_').slice(0, 63));

/** The tags that these labels stand for, as far as they are ours and were not too long. */
export const asTags = (labels: Readonly<Record<string, string>>): Record<string, string> =>
  mapped(labels, (value) => value.replaceAll('__', '/').replaceAll('_', '.'));

const mapped = (values: Readonly<Record<string, string>>, change: (value: string) => string): Record<string, string> =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(value)]));

/** The labels of everything that is made for the owner. */
export const gcpLabelsOf = (owner: Owner, more: Readonly<Record<string, string>> = {}): Record<string, string> =>
  asLabels({ ...tagsOf(owner), ...more });

/** Whose something with these labels is; undefined when none of them is ours. */
export const ownerOfLabels = (labels: Readonly<Record<string, string>>): Partial<Owner> | undefined =>
  ownerOf(asTags(labels));

/** How the description of what takes no labels begins (networks, routers, service accounts). */
export const DESCRIPTION = 'Made by Coppice:';
/** What of the owner has room there: 256 bytes at a service account. */
const DESCRIBED = ['technicalID', 'uid', 'garden'] as const;

export const descriptionOf = (owner: Owner): string =>
  [
    DESCRIPTION,
    ...DESCRIBED.flatMap((field) => (owner[field] === undefined ? [] : [`${OWNER_TAGS[field]}=${owner[field]}`])),
  ].join(' ');

/** Whose something with this description is. */
export const ownerOfDescription = (description: string): Partial<Owner> | undefined =>
  ownerOf(
    Object.fromEntries([...description.matchAll(/(coppice-[a-z-]+)=(\S+)/g)].map((match) => [match[1], match[2]])),
  );
