import type { Owner } from '../cloud.ts';
import { OWNER_TAGS, ownerOf, tagsOf } from '../tags.ts';

/**
 * Our tags as Google takes labels: values have at most 63 characters of a-z, 0-9, _ and -
 * (cloud.google.com/compute/docs/labeling-resources). Kubernetes' names may have a dot and never an underscore.
 */
export function labelsOf(owner: Owner, more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries({ ...tagsOf(owner), ...more }).map(([key, value]) => [key, value.replaceAll('.', '_').slice(0, 63)]),
  );
}

/** Whose something with these labels is; undefined when none of them is ours. */
export const ownerOfLabels = (labels: Readonly<Record<string, string>>): Partial<Owner> | undefined =>
  ownerOf(Object.fromEntries(Object.entries(labels).map(([key, value]) => [key, value.replaceAll('_', '.')])));

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
