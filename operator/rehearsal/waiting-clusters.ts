import type { Wait } from '../burst/clusters/warm.ts';
import type { Simulation } from './state.ts';

/** How clusters of the policy wait, by their keys; those that take work are left out. */
export function waitsOf({ rehearsed }: Simulation): ReadonlyMap<string, Wait> {
  const { policy, receipt } = rehearsed ?? {};
  const waits = (receipt?.purchases ?? []).flatMap(({ name, warm, sleeps, leaving }): [string, Wait][] =>
    warm && !leaving ? [[`${policy!.metadata.namespace}/${name}`, sleeps ? 'asleep' : 'warm']] : [],
  );
  return new Map(waits);
}
