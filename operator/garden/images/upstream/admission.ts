import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { addressList } from '../../../api/address-range.ts';
import { hostOf } from '../../../kube/http/address-guard.ts';
import { isOwnAddress } from '../../host/own-addresses.ts';
import { PullError } from './errors.ts';

/** Never a registry: this host by itself, multicast, and where clouds tell secrets to who asks. */
const NEVER = addressList([
  '0.0.0.0/8',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '::/96',
  '64:ff9b::/96',
  'fe80::/10',
  'ff00::/8',
]);

/**
 * Judges an address that the mirror is to connect to. Whoever can reach the mirror chooses it, a pod for example, and the mirror is in the
 * host's network: without this a pod could ask what listens on the host's loopback, and the garden's own ports.
 * @param own ranges of the garden. Throws PullError.
 */
export function judgeAddress(own: readonly string[], isOwn = isOwnAddress): (address: string) => void {
  const garden = addressList(own);
  return (address) => {
    const plain = address.replace(/%.*$/, '').replace(/^::ffff:(?=\d+\.)/i, '');
    if (isIP(plain) !== 0 && !NEVER.has(plain) && !garden.has(plain) && !isOwn(plain)) return;
    const what = `address ${plain} belongs to this machine, and pods may not reach it`;
    throw new PullError(403, `${what}; if it is a registry, allow it with "coppice up --registry HOST:PORT"`);
  };
}

/** Finds the addresses of a name; rejects where there are none. */
type Lookup = (host: string) => Promise<readonly { address: string }[]>;

export const lookupHere: Lookup = (host) => lookup(host, { all: true });

/** How long a name may take to be found before it counts as one that is unknown here. */
const LOOKUP_MS = 2_000;
const UNKNOWN_FOR_MS = 10 * 60_000;
const UNKNOWN_KEPT = 1000;

/**
 * Judges names that a proxy is to connect to, which looks them up itself: one on this machine would go to its loopback for whoever names a
 * host of theirs so. Behind many proxies names of the internet are not known: what is not found here is the proxy's to judge.
 */
export class ProxiedNames {
  readonly #admit: (address: string) => void;
  readonly #lookup: Lookup;
  /** Until when names are not looked up again, as each look may take long. */
  readonly #unknown = new Map<string, number>();

  constructor(admit: (address: string) => void, find: Lookup) {
    this.#admit = admit;
    this.#lookup = find;
  }

  /** Throws PullError when one of the addresses is refused. */
  async judge(url: URL): Promise<void> {
    const host = hostOf(url);
    if (isIP(host) !== 0 || (this.#unknown.get(host) ?? 0) > Date.now()) return;
    const late = sleep(LOOKUP_MS, [], { ref: false });
    const found = await Promise.race([this.#lookup(host), late]).catch(() => []);
    for (const { address } of found) this.#admit(address);
    if (found.length > 0) return;
    if (this.#unknown.size >= UNKNOWN_KEPT) this.#unknown.clear();
    this.#unknown.set(host, Date.now() + UNKNOWN_FOR_MS);
  }
}

/** Judges a URL's host where it is an address; names are judged when they are looked up. Throws PullError. */
export function admitLiteral(url: URL, admit: (address: string) => void): void {
  const host = hostOf(url);
  if (isIP(host) !== 0) admit(host);
  else if (/^localhost\.?$|\.localhost\.?$/i.test(host)) admit('127.0.0.1');
}
