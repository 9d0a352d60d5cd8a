import type { Owner } from './cloud.ts';
import { ADOPTION_TAGS, OWNER_TAGS } from './tags.ts';

/**
 * Logical name of an adopted cluster in every provider's program `adopted`. The cluster keeps its own name and tags.
 */
export const ADOPTED = 'adopted';

/** Why the owner may not adopt a cluster with these tags; undefined: it may. Pure. */
export function ownedByOther(tags: Readonly<Record<string, string>>, owner: Owner): string | undefined {
  const made = tags[OWNER_TAGS.uid] ?? tags[OWNER_TAGS.technicalID];
  if (made !== undefined)
    return `was made for WorkerCluster ${tags[OWNER_TAGS.namespace] ?? '?'}/${tags[OWNER_TAGS.name] ?? made}`;
  const taken = tags[ADOPTION_TAGS.uid];
  if (taken === undefined || taken === owner.uid) return undefined;
  return `was taken over for WorkerCluster ${tags[ADOPTION_TAGS.name] ?? taken}`;
}

/** Major, minor and patch as far as given; without GKE's suffix (`-gke.1000`). */
const numbersOf = (version: string): number[] => (version.split('-')[0] ?? '').split('.').map(Number);

/** Clouds upgrade a control plane by one minor version at a time, and never downgrade. Pure. */
export function versionProblem(running: string, wanted: string): string | undefined {
  if (wanted === '') return undefined;
  const steps = numbersOf(wanted)[1]! - numbersOf(running)[1]!;
  if (steps === 0 || steps === 1) return undefined;
  return `it runs Kubernetes ${running}, and ${wanted} is ${steps < 0 ? 'older' : 'more than one minor version ahead'}`;
}

/**
 * Version to upgrade to, with patch; undefined when the cluster runs it or a later patch, since others may let the
 * cloud install patches. Pure.
 */
export function upgradeOf(running: string, wanted: string): string | undefined {
  if (wanted === '') return undefined;
  const [, minor = 0, patch = 0] = numbersOf(running);
  const [, wantedMinor = 0, wantedPatch = 0] = numbersOf(wanted);
  const isLater = wantedMinor > minor || (wantedMinor === minor && wantedPatch > patch);
  return isLater ? wanted : undefined;
}
