import { readFile } from 'node:fs/promises';
import { addressList } from '../../api/address-range.ts';
import { SEED_LINK } from '../host/network.ts';
import { parseLocalAddresses } from '../host/own-addresses.ts';
import { ALL_GARDENS, egressRange, type Ranges } from '../host/ranges.ts';
import type { EgressPolicy } from './policy.ts';

/** Protocol number of Coppice's routes in a seed's namespace. Arbitrary, but unused in /etc/iproute2/rt_protos. */
const PROTOCOL = '86';

/** Unassigned addresses, cloud metadata services that reveal a machine's secrets, and other gardens on this machine. */
const NEVER = ['0.0.0.0/8', '169.254.0.0/16', '168.63.129.16', '100.100.100.200', '192.0.0.0/24', ALL_GARDENS];
const PRIVATE = ['10.0.0.0/8', '100.64.0.0/10', '172.16.0.0/12', '192.168.0.0/16', '240.0.0.0/4'];
const notThisMachine = addressList([
  '127.0.0.0/8',
  ...NEVER.map((range) => (range.includes('/') ? range : `${range}/32`)),
]);
const addressOf = (range: string): string => range.split('/')[0]!;

/** `link`: to this machine itself, through its firewall. */
type Way = 'link' | 'unreachable';

/**
 * IPv4 addresses and ranges of this machine that pods may reach: without loopback and gardens. Rejects where they
 * cannot be read.
 */
export const hostAddresses = async (): Promise<string[]> =>
  reachableAddresses(parseLocalAddresses(await readFile('/proc/net/fib_trie', 'utf8')));

/** The machine's own addresses and ranges that pods may reach. Pure. */
export const reachableAddresses = (local: readonly string[]): string[] =>
  local.filter((range) => !notThisMachine.has(addressOf(range))).sort();

/**
 * Exceptions from outbound access, by destination. The kernel uses the longest prefix, so pods and nodes keep their
 * routes. Pure.
 */
export function routeExceptions(policy: EgressPolicy, ranges: Ranges, hosts: readonly string[]): Map<string, Way> {
  const refused = [...NEVER, egressRange(ranges).resolver, ...(policy === 'all' ? [] : PRIVATE)];
  return new Map<string, Way>([
    ...refused.map((range): [string, Way] => [range, 'unreachable']),
    // Through outbound access these would reach this machine as its own, past its firewall.
    ...hosts.map((host): [string, Way] => [host, policy === 'all' ? 'link' : 'unreachable']),
    // A process on the node needs a route to a Service before kube-proxy's rules apply.
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

/** Commands for `ip -batch` that correct the routes listed by `ip -j route`; none when they are correct. Pure. */
export function routeCommands(
  shown: readonly RouteEntry[],
  wanted: ReadonlyMap<string, Way>,
  ranges: Ranges,
): string[] {
  const way = ({ type }: RouteEntry): Way => (type === 'unreachable' ? 'unreachable' : 'link');
  const ours = new Map(shown.filter(({ protocol }) => protocol === PROTOCOL).map((route) => [route.dst, way(route)]));
  const link = `via ${ranges.hostAddress} dev ${SEED_LINK}`;
  // Gardens of an older Coppice routed all other traffic to this machine, which forwards it where it is a router.
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
