import { createHash } from 'node:crypto';
import { errorText } from '../../../api/errors.ts';
import { hasServed } from '../../../api/shoot.ts';
import type { ClusterConnection } from '../../../clusters/cluster-connection.ts';
import { type KubeObject, keyOf } from '../../../kube/resources.ts';
import { refusedByAdmission } from '../../../shoot/readiness.ts';
import type { Operation } from '../operation.ts';

/** The open connection to the shoot's API server. Throws without one. */
export function shootConnection({ state }: Operation): ClusterConnection {
  if (!state.connection) throw new Error('there is no connection to the API server of the shoot');
  return state.connection;
}

/** Fingerprint of applied objects, to skip equal ones. */
export const printOf = (objects: readonly KubeObject[]): string =>
  createHash('sha256').update(JSON.stringify(objects)).digest('hex');

/**
 * Applies objects inside of the cluster. In a cluster that served, refusals by its admission policies are skipped, so
 * that machines can still be made.
 * @returns refused objects with reasons
 */
export async function applyAdmitted(
  op: Operation,
  objects: KubeObject[],
  signal: AbortSignal,
): Promise<ReadonlyMap<KubeObject, string>> {
  const refused = new Map<KubeObject, string>();
  try {
    await shootConnection(op).applyAll(objects, signal);
    return refused;
  } catch (error) {
    if (!hasServed(op.shoot) || !refusedByAdmission(error)) throw error;
  }
  for (const object of objects) {
    await shootConnection(op)
      .applyAll([object], signal)
      .catch((error: unknown) => {
        if (!refusedByAdmission(error)) throw error;
        refused.set(object, `${object.kind} ${keyOf(object)}: ${errorText(error)}`);
      });
  }
  return refused;
}

/** Like applyAdmitted. @returns the first refusal; undefined: none */
export async function applySystem(
  op: Operation,
  objects: KubeObject[],
  signal: AbortSignal,
): Promise<string | undefined> {
  return firstOf(await applyAdmitted(op, objects, signal));
}

export const firstOf = (refused: ReadonlyMap<KubeObject, string>): string | undefined => [...refused.values()][0];
