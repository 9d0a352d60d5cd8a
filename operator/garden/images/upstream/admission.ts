import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { addressList } from '../../../api/address-range.ts';
import { hostOf } from '../../../kube/address-guard.ts';
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
export function admission(own: readonly string[]): (address: string) => void {
  const garden = addressList(own);
  return (address) => {
    const plain = address.replace(/%.*$/, '').replace(/^::ffff:(?=\d+\.)/i, '');
    const isOwn = () => Object.values(networkInterfaces()).some((list) => list?.some((one) => one.address === plain));
    if (isIP(plain) !== 0 && !NEVER.has(plain) && !garden.has(plain) && !isOwn()) return;
    const what = `address ${plain} belongs to this machine, and pods may not reach it`;
    throw new PullError(403, `${what}; if it is a registry, allow it with "coppice up --registry HOST:PORT"`);
  };
}

/** Judges a URL's host where it is an address; names are judged when they are looked up. Throws PullError. */
export function admitLiteral(url: URL, admit: (address: string) => void): void {
  const host = hostOf(url);
  if (isIP(host) !== 0) admit(host);
  else if (/^localhost\.?$|\.localhost\.?$/i.test(host)) admit('127.0.0.1');
}
