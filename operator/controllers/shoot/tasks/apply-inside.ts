import { createHash } from 'node:crypto';
import { errorText } from '../../../api/errors.ts';
import { hasServed } from '../../../api/shoot.ts';
import type { ClusterConnection } from '../../../clusters/cluster-connection.ts';
import { type KubeObject, keyOf } from '../../../kube/resources.ts';
import { refusedByAdmission } from '../../../shoot/readiness.ts';
import type { Operation } from '../operation.ts';

/** The open connection to the API server of the shoot. Throws when there is none. */
export function inside({ state }: Operation): ClusterConnection {
  if (!state.connection) throw new Error('there is no connection to the API server of the shoot');
  return state.connection;
}

/** Fingerprint of what is applied inside of the cluster, by which the same is not applied again. */
export const printOf = (objects: readonly KubeObject[]): string =>
  createHash('sha256').update(JSON.stringify(objects)).digest('hex');

/**
 * Applies objects inside of the cluster. In one that has served, a refusal by its own admission policy keeps no machine from being made: the
 * rest is applied.
 * @returns what was refused, and why
 */
export async function applyAdmitted(
  op: Operation,
  objects: KubeObject[],
  signal: AbortSignal,
): Promise<ReadonlyMap<KubeObject, string>> {
  const refused = new Map<KubeObject, string>();
  try {
    await inside(op).applyAll(objects, signal);
    return refused;
  } catch (error) {
    if (!hasServed(op.shoot) || !refusedByAdmission(error)) throw error;
  }
  for (const object of objects) {
    await inside(op)
      .applyAll([object], signal)
      .catch((error: unknown) => {
        if (!refusedByAdmission(error)) throw error;
        refused.set(object, `${object.kind} ${keyOf(object)}: ${errorText(error)}`);
      });
  }
  return refused;
}

/** The same. @returns the first refusal; undefined: there was none */
export async function applySystem(
  op: Operation,
  objects: KubeObject[],
  signal: AbortSignal,
): Promise<string | undefined> {
  return firstOf(await applyAdmitted(op, objects, signal));
}

export const firstOf = (refused: ReadonlyMap<KubeObject, string>): string | undefined => [...refused.values()][0];
