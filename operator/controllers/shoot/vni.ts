import { createHash } from 'node:crypto';
import { GROUP } from '../../api/group.ts';
import type { KubeObject } from '../../api/meta.ts';

/** On the shoot's namespace in the seed: its VXLAN network identifier, unique in the seed. */
export const VNI_ANNOTATION = `${GROUP}/vni`;
const LARGEST = 2 ** 24 - 1;

/** Identifier of the namespace; undefined: none. */
const vniOf = (namespace: KubeObject | undefined): number | undefined =>
  Number(namespace?.metadata.annotations?.[VNI_ANNOTATION]) || undefined;

/**
 * Identifier of a namespace: the present one, or the first free one from a start derived from its name. Scans all
 * namespaces only for a cluster without one.
 */
export function allocateVNI(
  technicalID: string,
  namespaces: { get(name: string): KubeObject | undefined; list(): readonly KubeObject[] },
  reserved: ReadonlyMap<string, number>,
): number {
  const own = vniOf(namespaces.get(technicalID)) ?? reserved.get(technicalID);
  if (own !== undefined) return own;
  const taken = new Set<number | undefined>([...namespaces.list().map(vniOf), ...reserved.values()]);
  let vni = 1 + (createHash('sha256').update(technicalID).digest().readUInt32BE(0) % LARGEST);
  while (taken.has(vni)) vni = (vni % LARGEST) + 1;
  return vni;
}
