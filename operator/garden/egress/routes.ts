import { readFile } from 'node:fs/promises';
import { addressList } from '../../api/address-range.ts';
import { SEED_LINK } from '../host/network.ts';
import { parseLocalAddresses } from '../host/own-addresses.ts';
import { ALL_GARDENS, egressRange, type Ranges } from '../host/ranges.ts';
import type { EgressPolicy } from './policy.ts';

/** Marks routes of ours among those of a seed's namespace. Any number will do that nobody has in /etc/iproute2/rt_protos. */
const PROTOCOL = '86';

/** Nobody's; where clouds tell a machine's secrets to whoever asks from it; other gardens of this machine. */
const NEVER = ['0.0.0.0/8', '169.254.0.0/16', '168.63.129.16', '100.100.100.200', '192.0.0.0/24', ALL_GARDENS];
const PRIVATE = ['10.0.0.0/8', '100.64.0.0/10', '172.16.0.0/12', '192.168.0.0/16', '240.0.0.0/4'];
const notThisMachine = addressList([
  '127.0.0.0/8',
  ...NEVER.map((range) => (range.includes('/') ? range : `${range}/32`)),
]);
const addressOf = (range: string): string => range.split('/')[0]!;

/** `link`: to this machine itself, through its firewall. */
type Way = 'link' | 'unreachable';

/** IPv4 addresses and ranges of this machine that pods may ask for: no loopback, none of a garden. Rejects where nobody can tell. */
export const hostAddresses = async (): Promise<string[]> =>
  reachableAddresses(parseLocalAddresses(await readFile('/proc/net/fib_trie', 'utf8')));

/** Of a machine's own addresses and ranges those that pods may ask for. Pure. */
export const reachableAddresses = (local: readonly string[]): string[] =>
  local.filter((range) => !notThisMachine.has(addressOf(range))).sort();

/** What is excepted from the way out, by destination. The kernel takes the longest that fits, so pods and nodes have theirs. Pure. */
export function routeExceptions(policy: EgressPolicy, ranges: Ranges, hosts: readonly string[]): Map<string, Way> {
  const refused = [...NEVER, egressRange(ranges).resolver, ...(policy === 'all' ? [] : PRIVATE)];
  return new Map<string, Way>([
    ...refused.map((range): [string, Way] => [range, 'unreachable']),
    // By the way out, this machine would take them for its own: past its firewall.
    ...hosts.map((host): [string, Way] => [host, policy === 'all' ? 'link' : 'unreachable']),
    // A process of the node that asks for a Service needs a route before kube-proxy's rules see its packet.
    [ranges.services, 'link'],
  ]);
}

interface RouteEntry {
  type?: string;
  dst: string;
  protocol?: string;
  dev?: string;
  gateway?: string;
}

/** Commands for `ip -batch` that make routes, as `ip -j route` shows them, what they should be; none when they are. Pure. */
export function routeCommands(
  shown: readonly RouteEntry[],
  wanted: ReadonlyMap<string, Way>,
  ranges: Ranges,
): string[] {
  const way = ({ type }: RouteEntry): Way => (type === 'unreachable' ? 'unreachable' : 'link');
  const ours = new Map(shown.filter(({ protocol }) => protocol === PROTOCOL).map((route) => [route.dst, way(route)]));
  const link = `via ${ranges.hostAddress} dev ${SEED_LINK}`;
  // A garden of an older Coppice had all else go to this machine, which forwards it where it is a router.
  const isOld = shown.some(({ dst, dev }) => dst === 'default' && dev === SEED_LINK);
  return [
    ...[...wanted]
      .filter(([dst, to]) => ours.get(dst) !== to)
      .map(([dst, to]) =>
        to === 'link'
          ? `route replace ${dst} ${link} proto ${PROTOCOL}`
          : `route replace unreachable ${dst} proto ${PROTOCOL}`,
      ),
    ...[...ours]
      .filter(([dst]) => !wanted.has(dst))
      .map(([dst, to]) => `route del ${to === 'link' ? dst : `unreachable ${dst}`} proto ${PROTOCOL}`),
    ...(isOld ? [`route del default ${link}`] : []),
  ];
}
