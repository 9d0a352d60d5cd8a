import { createHash } from 'node:crypto';
import { GROUP } from '../../api/group.ts';
import type { KubeObject } from '../../api/meta.ts';

/** On the shoot's namespace in the seed: its VXLAN network identifier, which no other shoot of the seed may have. */
export const VNI_ANNOTATION = `${GROUP}/vni`;
const LARGEST = 2 ** 24 - 1;

/** The identifier of a namespace: the one it has, or the first free one from a start that depends on its name. */
export function allocateVNI(
  technicalID: string,
  namespaces: readonly KubeObject[],
  reserved: ReadonlyMap<string, number>,
): number {
  const taken = new Set<number>();
  for (const namespace of namespaces) {
    const vni = Number(namespace.metadata.annotations?.[VNI_ANNOTATION]);
    if (!vni) continue;
    if (namespace.metadata.name === technicalID) return vni;
    taken.add(vni);
  }
  const own = reserved.get(technicalID);
  if (own !== undefined) return own;
  for (const vni of reserved.values()) taken.add(vni);
  let vni = 1 + (createHash('sha256').update(technicalID).digest().readUInt32BE(0) % LARGEST);
  while (taken.has(vni)) vni = (vni % LARGEST) + 1;
  return vni;
}
