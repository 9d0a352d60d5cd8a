import { claimsOf } from '../../../operator/pki/token-claims.ts';
import type { Account } from './model.ts';
import type { Store } from './store.ts';

type TokenClaims = NonNullable<ReturnType<typeof claimsOf>>;

/** Whose tokens an account takes: what its owner would set up in the cloud. */
export interface Trusted {
  /** Id of the account. */
  account: string;
  issuer: string;
  subject: string;
  audience: string;
}

/** What of a token an account does not trust. */
export type Distrust = 'form' | 'issuer' | 'audience' | 'subject' | 'expiry';

const FILE = 'trust.json';

/** From now on the account trusts exactly this; undefined: nobody any more. */
export function setTrust(store: Store, account: Account, trusted: Omit<Trusted, 'account'> | undefined): void {
  const others = trustIn(store).filter((one) => one.account !== account.id);
  store.writeJSON([...others, ...(trusted ? [{ ...trusted, account: account.id }] : [])], FILE);
}

const trustIn = (store: Store): Trusted[] => store.readJSON<Trusted[]>(FILE) ?? [];

/** What is wrong with a token, most telling first, and what it says; nothing: it is trusted. Signatures are not looked at. */
export function judgeToken(
  store: Store,
  account: Account | undefined,
  token: string,
  now = Date.now(),
): { distrust?: Distrust; claims?: TokenClaims } {
  const claims = claimsOf(token);
  if (!claims) return { distrust: 'form' };
  const known = trustIn(store).filter((one) => one.account === account?.id && one.issuer === claims.issuer);
  const [trusted] = known;
  if (!trusted) return { distrust: 'issuer', claims };
  if (!claims.audiences.includes(trusted.audience)) return { distrust: 'audience', claims };
  if (claims.expiresAt * 1000 <= now) return { distrust: 'expiry', claims };
  if (claims.subject !== trusted.subject) return { distrust: 'subject', claims };
  return { claims };
}
