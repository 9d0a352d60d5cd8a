import { lookup as systemLookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { type AddressList, addressList, rangeOrAddress, rangeText } from '../../api/address-range.ts';
import { configurationProblem } from '../../api/errors.ts';

/** Says whether an address may be connected to: throws a CoppiceError where not. */
export type Admit = (address: string) => void;

/**
 * Addresses that are the platform's own or lead to it: this host, private networks, link-local ones with the clouds' metadata, and those that
 * wrap an IPv4 address in one of IPv6. Clouds' metadata and agents that lie elsewhere are named one by one.
 */
const INTERNAL = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '::/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/32',
  '2002::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
];

const internal = addressList(INTERNAL);

/**
 * Whom an operator may be sent to by somebody who is no administrator: by an address of the platform it would be made a proxy into the
 * platform's network.
 * @param allowed ranges that administrators allow all the same
 * @param own addresses and ranges of the platform itself, which are refused in every range
 */
export function outsideOnly(allowed: AddressList, own: readonly string[] = []): Admit {
  const platform = addressList(own.flatMap((address) => rangeOrAddress(address) ?? []).map(rangeText));
  return (address) => {
    const plain = address.replace(/%.*$/, '');
    if (platform.has(plain))
      throw configurationProblem(
        `address ${address} is that of the garden's or a seed's API server, and refused`,
        'Give the address of another cluster; administrators attach the garden and seeds from the namespace of the operator.',
      );
    if (allowed.has(plain)) return;
    if (isIP(plain) !== 0 && !internal.has(plain)) return;
    throw configurationProblem(
      `address ${address} is internal to the platform, and refused`,
      'Give an address on the internet; or ask an administrator to allow the network (attached.allowedNetworks of the chart).',
    );
  };
}

/**
 * The address that a proxy is asked to connect to in place of a name: the proxy would look the name up again, and may get another answer.
 * Throws as `admit` does.
 */
export async function admittedAddress(host: string, admit: Admit): Promise<string> {
  const found = await systemLookup(host, { all: true, order: 'ipv4first' });
  for (const { address } of found) admit(address);
  return found[0]!.address;
}

/** Addresses of the hosts of these URLs, as they are found now; those that are not found have none. */
export async function addressesOf(urls: readonly string[]): Promise<string[]> {
  const hosts = urls.filter((url) => URL.canParse(url)).map((url) => hostOf(new URL(url)));
  const found = await Promise.all([...new Set(hosts)].map((host) => systemLookup(host, { all: true }).catch(() => [])));
  return found.flat().map(({ address }) => address);
}

/**
 * What outsideOnly takes as the platform's own when somebody wants a connection to `server`: addresses of the platform's API servers. One on
 * loopback counts at its own port alone, where it has all of loopback: other clusters of this machine are there, too.
 */
export async function platformAddresses(platform: readonly string[], server: string): Promise<string[]> {
  const found = await Promise.all(
    platform.map(async (url) => {
      const addresses = await addressesOf([url]);
      const near = addresses.some(isLoopback) ? LOOPBACK.filter(() => portOf(url) === portOf(server)) : [];
      return [...addresses.filter((address) => !isLoopback(address)), ...near];
    }),
  );
  return [...new Set(found.flat())];
}

function portOf(url: string): number {
  const { port, protocol } = new URL(url);
  return Number(port || (protocol === 'http:' ? 80 : 443));
}

export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '');

const LOOPBACK = ['127.0.0.0/8', '::1/128'];
const loopback = addressList(LOOPBACK);

/** Whether a host, a name or an address, is whatever machine asks for it. */
export const isLoopback = (host: string): boolean =>
  isIP(host) === 0 ? host === 'localhost' || host.endsWith('.localhost') : loopback.has(host);

/**
 * Looks a name up for a connection, and has each of its addresses judged. The connection goes to what was judged, and to no other answer of
 * a name server that changes its mind.
 */
export const guardedLookup =
  (admit: Admit): LookupFunction =>
  (host, options, callback) => {
    systemLookup(host, { ...options, all: true }).then(
      (found) => {
        try {
          for (const { address } of found) admit(address);
        } catch (error) {
          return callback(error as NodeJS.ErrnoException, '', 0);
        }
        const [first] = found;
        if (options.all) return callback(null, found);
        return callback(null, first?.address ?? '', first?.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, '', 0),
    );
  };
