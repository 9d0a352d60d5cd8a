import { isNotFound } from '../../kube/errors.ts';
import { NAMESPACES, SHOOTS } from '../../kube/resources.ts';
import type { SeedAccess } from '../seed/seed-access.ts';
import { GARDEN_ANNOTATION } from './ownership.ts';
import type { ShootWorld } from './world.ts';

/**
 * Closes the namespace of a shoot that has gone without our letting it go: a deletion that comes in the same moment as our finalizer
 * may win over it (the API server had looked for finalizers before), and nobody else would ever take away what was made meanwhile.
 *
 * To be called only for shoots that this process has worked on: a garden that was restored from an old backup lacks shoots too, and
 * their control planes are all that is left of them.
 */
export async function closeLeftOver(
  { garden, gardenID, log }: Pick<ShootWorld, 'garden' | 'gardenID' | 'log'>,
  seeds: Pick<SeedAccess, 'name' | 'client' | 'namespacesOf'>[],
  key: string,
  signal: AbortSignal,
): Promise<void> {
  const [namespace, name] = key.split('/') as [string, string];
  for (const seed of seeds) {
    for (const { metadata } of seed.namespacesOf(key)) {
      if (metadata.deletionTimestamp || metadata.annotations?.[GARDEN_ANNOTATION] !== gardenID) continue;
      // A cache may be behind, and a shoot of the same name may have come.
      if (await garden.getOrUndefined(SHOOTS, name, namespace, { signal })) return;
      log.warn({ shoot: key, seed: seed.name, namespace: metadata.name }, 'the shoot has gone: closing what it left');
      try {
        const preconditions = { ...(metadata.uid && { uid: metadata.uid }) };
        await seed.client.delete(NAMESPACES, metadata.name, undefined, { preconditions, signal });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
  }
}
