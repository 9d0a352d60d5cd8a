import type { Change } from '../cloud.ts';
import type { MachineCloud } from './machine-cloud.ts';

/**
 * The changes that others made: without the sizes of groups of which we ended machines by the cloud's own API, of which no stack knows
 * until the group is made anew. Tokens and versions of templates come by runs, so that stacks know of them. Pure.
 * @param shrunk as MachinesReceipt has it
 */
export function withoutOwn(
  changes: readonly Change[],
  { type, size }: MachineCloud['group'],
  shrunk: readonly string[],
): Change[] {
  const groups = new Set(shrunk.map((pool) => `${type} pool-${pool}`));
  return changes.flatMap((change) => {
    if (!groups.has(change.resource) || !change.properties) return [change];
    const properties = change.properties.filter((property) => property !== size);
    return properties.length > 0 ? [{ ...change, properties }] : [];
  });
}

/**
 * Whether these changes can be made to what a control plane on machines is behind and on: none ends a machine, decides how many there are
 * or where, or makes another of what machines and certificates are tied to. Pure.
 */
export const harmsNoControlPlane = (
  changes: readonly Change[],
  { type, size, places = size }: MachineCloud['group'],
  remade: readonly string[],
): boolean =>
  changes.every(({ operation, properties, resource }) => {
    const kind = resource.split(' ')[0]!;
    if (operation === 'create') return remade.includes(kind);
    if (operation !== 'update') return false;
    return kind !== type || (properties !== undefined && !properties.some((one) => one === size || one === places));
  });
