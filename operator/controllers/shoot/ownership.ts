import { GROUP } from '../../api/group.ts';
import type { KubeObject } from '../../api/meta.ts';

/**
 * On the shoot's namespace in the seed: the garden that it belongs to, by the UID of that garden's namespace kube-system. Two
 * gardens may share a seed, and equal names of theirs would otherwise be taken for one cluster: the later garden would give
 * its own keys to the earlier one's etcd, and its deletion would take that away.
 */
export const GARDEN_ANNOTATION = `${GROUP}/garden`;

/** The garden that a namespace belongs to, if that is another one than `garden`. */
export function otherOwner(namespace: KubeObject | undefined, garden: string): string | undefined {
  const owner = namespace?.metadata.annotations?.[GARDEN_ANNOTATION];
  return owner !== undefined && owner !== garden ? owner : undefined;
}
