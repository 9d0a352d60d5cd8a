import { lookup as systemLookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { type AddressList, addressList, rangeOrAddress, rangeText } from '../../api/address-range.ts';
import { configurationProblem } from '../../api/errors.ts';

/** Throws a CoppiceError when an address must not be connected to. */
export type Admit = (address: string) => void;

/**
 * Addresses of the platform or leading to it: this host, private networks, link-local ones with clouds' metadata
 * services, and IPv6 addresses that wrap IPv4. Metadata services and agents elsewhere are listed one by one.
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
 * Guard for addresses that a tenant names: without it the operator would be a proxy into the platform's network.
 * @param allowed ranges that administrators allow nevertheless
 * @param own addresses and ranges of the platform, refused even in allowed ranges
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
 * Resolves a name to the address that the proxy shall connect to: the proxy would resolve again and may get another
 * answer. Throws as `admit` does.
 */
export async function admittedAddress(host: string, admit: Admit): Promise<string> {
  const found = await systemLookup(host, { all: true, order: 'ipv4first' });
  for (const { address } of found) admit(address);
  return found[0]!.address;
}

/** Addresses of the hosts of these URLs; hosts that do not resolve are left out. */
export async function addressesOf(urls: readonly string[]): Promise<string[]> {
  const hosts = urls.filter((url) => URL.canParse(url)).map((url) => hostOf(new URL(url)));
  const found = await Promise.all([...new Set(hosts)].map((host) => systemLookup(host, { all: true }).catch(() => [])));
  return found.flat().map(({ address }) => address);
}

/**
 * Addresses of the platform's API servers for outsideOnly, for a connection to `server`. A platform address on loopback
 * blocks all of loopback, unless `server` names another port there: other clusters may run on this machine.
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

/** Whether a host (name or address) is the local machine. */
export const isLoopback = (host: string): boolean =>
  isIP(host) === 0 ? host === 'localhost' || host.endsWith('.localhost') : loopback.has(host);

/**
 * Lookup for a connection that checks each resolved address. The connection uses the checked addresses, so a later DNS
 * answer cannot differ.
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
