import type { CloudProfile } from '../api/cloudprofile.ts';
import type { Seed } from '../api/seed.ts';
import type { Shoot } from '../api/shoot.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import type { KubeClient } from '../kube/client.ts';
import { KubeApiError } from '../kube/errors.ts';
import { Informer } from '../kube/informer.ts';
import type { Log } from '../kube/log.ts';
import { type KubeObject, SECRETS, SERVICECIDRS, type Secret } from '../kube/resources.ts';
import { MESH_RECEIPTS, Meshes } from './meshes.ts';
import { takenIn } from './taken.ts';

interface Caches {
  readonly clusters: Informer<WorkerCluster>;
  readonly shoots: Informer<Shoot>;
  readonly seeds: Informer<Seed>;
  readonly profiles: Informer<CloudProfile>;
}

/** Creates the Meshes of a garden, with a cache that is not started yet. */
export function openMeshes(
  garden: KubeClient,
  namespace: string,
  log: Log,
  { clusters, shoots, seeds, profiles }: Caches,
): { meshes: Meshes; meshSecrets: Informer<Secret> } {
  const meshSecrets = new Informer<Secret>(garden, SECRETS, { log, fieldSelector: MESH_RECEIPTS, namespace });
  const meshes = new Meshes(garden, namespace, meshSecrets, {
    async taken(mesh, isKnown) {
      const occupants = {
        clusters: clusters.list(),
        shoots: shoots.list(),
        seeds: seeds.list(),
        profile: (name: string) => profiles.get(name),
      };
      const { ranges, ids } = takenIn(occupants, mesh, isKnown);
      return { ranges: [...ranges, ...(await servicesOf(garden))], ids };
    },
    isThere: (key, uid) => clusters.get(key)?.metadata.uid === uid || shoots.get(key) !== undefined,
  });
  return { meshes, meshSecrets };
}

/** Ranges of the garden's own Services, as far as they can be read. */
async function servicesOf(garden: KubeClient): Promise<string[]> {
  try {
    const { items } = await garden.list<KubeObject>(SERVICECIDRS);
    return items.flatMap(({ spec }) => (spec as { cidrs?: string[] } | undefined)?.cidrs ?? []);
  } catch (error) {
    // An API server before 1.33 lacks the kind, and older roles do not permit it.
    if (error instanceof KubeApiError && (error.isNotFound || error.isForbidden)) return [];
    throw error;
  }
}
