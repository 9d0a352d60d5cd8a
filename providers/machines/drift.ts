import type { Change } from '../cloud.ts';
import type { MachineCloud } from './machine-cloud.ts';

/**
 * Drift without our own changes: sizes of groups whose machines we ended by the cloud's API, which stacks do not know
 * until the next run. Tokens and template versions are set by runs. Pure.
 * @param shrunk see MachinesReceipt
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
 * Whether these changes are safe for a control plane on machines: none ends a machine, sets number or place of
 * machines, or replaces something that machines and certificates refer to. Pure.
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
