import { GROUP } from '../../../api/group.ts';
import type { KubeObject, Secret } from '../../../kube/resources.ts';
import type { ControlPlane } from '../../../shoot/values.ts';
import { controlPlaneLabels } from '../../../shoot/values.ts';

/** Secret in the shoot's namespace of the seed: bootstrap token of each pool, `<pool>` and `<pool>.expires`. */
export const TOKENS_SECRET = 'bootstrap-tokens';

/** Lifetime of a token: long enough for a slow machine, short enough to limit a leak. */
export const TOKEN_LIFE_MS = 60 * 60_000;
/** Remaining validity that a starting machine needs. */
const MARGIN_MS = 15 * 60_000;

interface PoolToken {
  readonly text: string;
  readonly expires: Date;
}

export function tokenOf(secret: Secret | undefined, pool: string): PoolToken | undefined {
  const text = decode(secret?.data?.[pool]);
  const expires = decode(secret?.data?.[`${pool}.expires`]);
  return text && expires ? { text, expires: new Date(expires) } : undefined;
}

/**
 * Whether the pool needs a new token. An idle cluster has no valid token: tokens are made while machines have yet to
 * join.
 */
export function needsToken(token: PoolToken | undefined, wanted: number, joined: number, now: Date): boolean {
  if (!token) return true;
  return joined < wanted && +token.expires - +now < MARGIN_MS;
}

/** The Secret with one pool's token added. */
export function tokensSecret(
  values: ControlPlane,
  existing: Secret | undefined,
  pools: readonly string[],
  made: ReadonlyMap<string, PoolToken>,
): KubeObject {
  const data: Record<string, string> = {};
  for (const pool of pools) {
    const token = made.get(pool) ?? tokenOf(existing, pool);
    if (!token) continue;
    data[pool] = Buffer.from(token.text).toString('base64');
    data[`${pool}.expires`] = Buffer.from(token.expires.toISOString()).toString('base64');
  }
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: TOKENS_SECRET, namespace: values.namespace, labels: controlPlaneLabels(values) },
    type: `${GROUP}/bootstrap-tokens`,
    data,
  };
}

const decode = (value: string | undefined): string | undefined =>
  value ? Buffer.from(value, 'base64').toString() : undefined;
