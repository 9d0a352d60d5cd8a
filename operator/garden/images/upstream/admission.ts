import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { addressList } from '../../../api/address-range.ts';
import { hostOf } from '../../../kube/http/address-guard.ts';
import { isOwnAddress } from '../../host/own-addresses.ts';
import { PullError } from './errors.ts';

/**
 * Addresses that are never registries: this host itself, multicast, and cloud metadata services that reveal secrets.
 */
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
 * Checks an address before the mirror connects to it. Clients of the mirror, for example pods, choose the address, and
 * the mirror is in the host's network: otherwise a pod could reach the host's loopback and the garden's own ports.
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

/** Resolves a name to addresses; rejects where there are none. */
type Lookup = (host: string) => Promise<readonly { address: string }[]>;

export const lookupHere: Lookup = (host) => lookup(host, { all: true });

/** Timeout of a look-up, after which a name counts as unknown here. */
const LOOKUP_MS = 2_000;
const UNKNOWN_FOR_MS = 10 * 60_000;
const UNKNOWN_KEPT = 1000;

/**
 * Checks names that a proxy will resolve: a proxy on this machine would connect to its loopback for a name that
 * resolves to it. Behind many proxies internet names do not resolve; the proxy then decides.
 */
export class ProxiedNames {
  readonly #admit: (address: string) => void;
  readonly #lookup: Lookup;
  /** Until when names are not looked up again, since each look-up may take long. */
  readonly #unknown = new Map<string, number>();

  constructor(admit: (address: string) => void, find: Lookup) {
    this.#admit = admit;
    this.#lookup = find;
  }

  /** Throws PullError when an address of the name is refused. */
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

/** Checks a URL's host where it is an address; names are checked when resolved. Throws PullError. */
export function admitLiteral(url: URL, admit: (address: string) => void): void {
  const host = hostOf(url);
  if (isIP(host) !== 0) admit(host);
  else if (/^localhost\.?$|\.localhost\.?$/i.test(host)) admit('127.0.0.1');
}
