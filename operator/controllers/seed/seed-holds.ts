import { kubeconfigSecretName } from '../../api/names.ts';
import { type Seed, seedKubeconfigRef } from '../../api/seed.ts';
import type { HoldsOf } from '../../clusters/deletion-gate.ts';

/** `namespace/name` of the cluster whose kubeconfig Secret a Seed uses, existing or not; undefined: none. */
export function clusterOfSeed(seed: Seed): string | undefined {
  const ref = seedKubeconfigRef(seed);
  const suffix = kubeconfigSecretName('');
  if (!ref?.name.endsWith(suffix)) return undefined;
  return `${ref.namespace}/${ref.name.slice(0, -suffix.length)}`;
}

/** Holds of seeds on their cluster, which hosts control planes. */
export const seedHolds =
  (seeds: { list(): Seed[] }): HoldsOf =>
  (namespace, name) =>
    seeds
      .list()
      .filter((seed) => clusterOfSeed(seed) === `${namespace}/${name}`)
      .map(({ metadata }) => ({
        by: `Seed ${metadata.name}`,
        advice: `move its control planes away, then delete Seed ${metadata.name}`,
      }));
