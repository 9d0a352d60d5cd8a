import { rfc3339 } from '../../api/conditions.ts';
import { requestToken } from '../../clusters/service-account-token.ts';
import type { Identity } from '../../hubs/contract.ts';
import { decodeSecret, SECRETS, SERVICEACCOUNTS, type Secret } from '../../kube/resources.ts';
import { tokenSecretName } from './identity-objects.ts';
import type { KeptCredential } from './receipt.ts';
import type { TwoSides } from './two-sides.ts';

/** Share of a token's life after which it is replaced; the old one stays valid meanwhile. */
const RENEW_AFTER = 0.8;

/**
 * Identities without a credential, or with one that is due. Pure.
 * @param boundTo UID of the object that a token is bound to; undefined: unknown
 */
export const dueIdentities = (
  identities: readonly Identity[],
  kept: readonly KeptCredential[],
  now: Date,
  boundTo: (identity: Identity) => string | undefined,
): Identity[] =>
  identities.filter((identity) => {
    const known = kept.find((one) => isOf(one, identity));
    if (!known || (known.renewAt !== undefined && Date.parse(known.renewAt) <= +now)) return true;
    // A recreated ServiceAccount invalidates old tokens.
    const bound = boundTo(identity);
    return bound !== undefined && known.boundTo !== undefined && known.boundTo !== bound;
  });

/** UID of the object that the identity's token is bound to, once applied. */
export const boundTo = (sides: TwoSides, identity: Identity): string | undefined => {
  const { on, account, life } = identity;
  return life === 'forever'
    ? sides.uidOf({ on, resource: SECRETS, namespace: account.namespace, name: tokenSecretName(identity) })
    : sides.uidOf({ on, resource: SERVICEACCOUNTS, ...account });
};

const isOf = (kept: KeptCredential, { name, on, account }: Identity): boolean =>
  kept.identity === name &&
  kept.side === on &&
  kept.account.name === account.name &&
  kept.account.namespace === account.namespace;

/** New credentials for these identities. Skips one whose Secret has no token yet. */
export async function renewCredentials(
  sides: TwoSides,
  identities: readonly Identity[],
  kept: readonly KeptCredential[],
  now: Date,
  signal: AbortSignal,
): Promise<KeptCredential[]> {
  const next = [...kept];
  for (const identity of identities) {
    const credential = await obtain(sides, identity, now, signal);
    if (!credential) continue;
    const at = next.findIndex(({ identity: name }) => name === identity.name);
    next.splice(at < 0 ? next.length : at, at < 0 ? 0 : 1, credential);
  }
  return next;
}

async function obtain(
  sides: TwoSides,
  identity: Identity,
  now: Date,
  signal: AbortSignal,
): Promise<KeptCredential | undefined> {
  const { name, on, account, life } = identity;
  const client = sides.client(on);
  const bound = boundTo(sides, identity);
  const whose = { identity: name, side: on, account, ...(bound && { boundTo: bound }) };
  if (life === 'forever') {
    const secret = await client.getOrUndefined<Secret>(SECRETS, tokenSecretName(identity), account.namespace, {
      signal,
    });
    const { token } = decodeSecret(secret?.data);
    return token ? { ...whose, token } : undefined;
  }
  const { token, expiresAt } = await requestToken(client, account, life, signal);
  const renewAt = rfc3339(new Date(+now + (Date.parse(expiresAt) - +now) * RENEW_AFTER));
  return { ...whose, token, expiresAt, renewAt };
}
