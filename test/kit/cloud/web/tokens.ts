import { createHash, timingSafeEqual } from 'node:crypto';
import type { Account, CloudName } from '../model.ts';
import { azureWeb } from './azure.ts';
import { googleWeb } from './google.ts';
import { presigned } from './signature.ts';

/** From when it was signed a token of EKS is good for so long (kubernetes-sigs/aws-iam-authenticator, pkg/token/token.go). */
const LIFE_MS = 15 * 60_000;
const PREFIX = 'k8s-aws-v1.';

/** Whom a bearer token is from that is shown to the API server of a managed cluster; undefined: nobody that the cloud knows. */
export function holderOf(
  cloud: CloudName,
  token: string,
  cluster: string,
  accounts: readonly Account[],
  now: number,
): Account | undefined {
  if (cloud === 'aws') return accounts.find((account) => isEksToken(token, cluster, account, now));
  const web = cloud === 'gcp' ? googleWeb : azureWeb;
  const headers = { authorization: `Bearer ${token}` };
  return web.caller(
    { method: 'GET', url: new URL('https://kubernetes/'), headers, body: '', bytes: Buffer.alloc(0) },
    accounts,
  );
}

/** What EKS' authenticator does: has STS say whose the presigned request in the token is, and looks at which cluster it was made for. */
function isEksToken(token: string, cluster: string, account: Account, now: number): boolean {
  if (!token.startsWith(PREFIX)) return false;
  const text = Buffer.from(token.slice(PREFIX.length), 'base64url').toString();
  const url = URL.parse(text);
  const [key, , region, service] = (url?.searchParams.get('X-Amz-Credential') ?? '').split('/');
  const stamp = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(url?.searchParams.get('X-Amz-Date') ?? '');
  if (!url || !stamp || !region || service !== 'sts' || key !== account.key) return false;
  // Anybody could answer for another host.
  if (url.host !== `sts.${region}.amazonaws.com` || url.searchParams.get('Action') !== 'GetCallerIdentity')
    return false;
  const [, year, month, day, hour, minute, second] = stamp;
  const signedAt = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  if (Math.abs(now - +signedAt) > LIFE_MS) return false;
  const again = presigned(
    {
      method: 'GET',
      url: new URL(`${url.origin}/?Action=GetCallerIdentity&Version=2011-06-15`),
      headers: { 'x-k8s-aws-id': cluster },
    },
    { accessKeyID: account.key, secretAccessKey: account.secret },
    { service: 'sts', region, now: signedAt, expiresSeconds: Number(url.searchParams.get('X-Amz-Expires')) },
  );
  return isEqual(inOrder(again), inOrder(text));
}

/** Parameters may come in any order: it is not what is signed. */
function inOrder(text: string): string {
  const url = new URL(text);
  url.searchParams.sort();
  return url.href;
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
const isEqual = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b));
