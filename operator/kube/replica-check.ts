import { errorText } from '../api/errors.ts';
import type { KubeClient } from './client.ts';
import { isNotFound, KubeApiError } from './errors.ts';
import type { Check } from './health.ts';
import { pathOf, type Resource } from './resources.ts';

interface ReplicaCheckOptions {
  client: KubeClient;
  /** Kinds that must exist and that this program must be allowed to list. */
  kinds: readonly Resource[];
  /** Problem with the Lease; undefined: none. */
  leaseProblem: () => string | undefined;
  /** Whether the work is being done here; undefined: another replica leads. */
  working: () => boolean | undefined;
}

/** How long a standby keeps a good result; a bad one is checked again sooner. */
const LOOK_AGAIN_MS = 60_000;
const LOOK_SOON_MS = 5_000;
const PATIENCE_MS = 4_000;

/**
 * Check for /readyz: whether this replica works, or could take over. A leader whose caches never fill, or a standby
 * that could not fill them, must not let a roll-out remove the last working replica.
 */
export function replicaCheck({ client, kinds, leaseProblem, working }: ReplicaCheckOptions): Check {
  let known: { problem: string | undefined; until: number } | undefined;
  const look = async () => {
    if (known && performance.now() < known.until) return known.problem;
    const problem = await whyNotListed(client, kinds);
    known = { problem, until: performance.now() + (problem ? LOOK_SOON_MS : LOOK_AGAIN_MS) };
    return problem;
  };
  return async () => {
    const works = working();
    if (works) return true;
    const problem = leaseProblem() ?? (await look());
    if (problem) return problem;
    return works === undefined || 'its caches are not complete, or a watch on the garden is broken';
  };
}

async function whyNotListed(client: KubeClient, kinds: readonly Resource[]): Promise<string | undefined> {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const problems = await Promise.all(
    kinds.map(async (kind) => {
      const { plural, group } = kind;
      const name = group ? `${plural}.${group}` : plural;
      try {
        await client.request('GET', pathOf(kind), { query: { limit: 1 }, signal, retries: 0 });
        return undefined;
      } catch (error) {
        if (isNotFound(error)) return `the garden has no ${name}: install the CRDs`;
        if (error instanceof KubeApiError && error.isForbidden)
          return `the operator may not list ${name}: grant it the ClusterRole that it comes with`;
        return `${name} cannot be listed: ${errorText(error)}`;
      }
    }),
  );
  return problems.find((problem) => problem !== undefined);
}
