import { readFile } from 'node:fs/promises';
import { CommandError, run } from './command.ts';
import type { Ranges } from './ranges.ts';

/** Names of a garden's objects in the host's network. */
export interface NetworkNames {
  namespace: string;
  /** The host's end of the link; the kernel's limit is 15 characters. */
  link: string;
}

/** The pods' bridge in the namespace. */
export const POD_BRIDGE = 'pods';
/** The seed's end of the link. */
export const SEED_LINK = 'uplink';

export const networkNames = (id: string): NetworkNames => ({ namespace: `coppice-${id}`, link: `coppice-${id}` });

/** File of a network namespace for `nsenter --net=`. */
export const namespaceFile = (names: NetworkNames): string => `/run/netns/${names.namespace}`;

/** Command prefix that enters the namespace but keeps the host's files. */
export const enterNetwork = (names: NetworkNames): string[] => ['nsenter', `--net=${namespaceFile(names)}`];

interface RouteEntry {
  dst?: string;
  dev?: string;
}
interface AddressEntry {
  ifname: string;
  addr_info: { local?: string; prefixlen?: number }[];
}

/** Addresses and ranges that the host uses, without those of the interface `except`. */
export async function occupiedRanges(except?: string): Promise<string[]> {
  const [routes, addresses] = await Promise.all([
    run(['ip', '-j', '-4', 'route', 'show', 'table', 'all']),
    run(['ip', '-j', '-4', 'address', 'show']),
  ]);
  return [
    ...parseJson<RouteEntry>(routes).flatMap(({ dst, dev }) => (dst && dev !== except ? [dst] : [])),
    ...parseJson<AddressEntry>(addresses).flatMap(({ ifname, addr_info }) =>
      ifname === except ? [] : addr_info.flatMap(({ local, prefixlen }) => (local ? [`${local}/${prefixlen}`] : [])),
    ),
  ];
}

/** `ip -j` prints nothing instead of an empty list. */
const parseJson = <T>(text: string): T[] => (text.trim() ? (JSON.parse(text) as T[]) : []);

/** Settings of the namespace. Each namespace has its own values, so the host's are unaffected. */
const SETTINGS: Record<string, string> = {
  'net/ipv4/ip_forward': '1',
  'net/ipv4/conf/all/rp_filter': '0',
  'net/ipv4/conf/default/rp_filter': '0',
  // Pods get an immediate answer for refused addresses, however often they retry.
  'net/ipv4/icmp_ratelimit': '0',
  // Service traffic between pods on one bridge must pass kube-proxy's rules.
  'net/bridge/bridge-nf-call-iptables': '1',
  // Pods have automatic IPv6 addresses, by which they would bypass NetworkPolicies.
  'net/bridge/bridge-nf-call-ip6tables': '1',
};

/** Whether the namespace and its link exist. */
export async function networkExists(names: NetworkNames): Promise<boolean> {
  const [namespaces, link] = await Promise.all([
    run(['ip', 'netns', 'list']),
    run(['ip', 'link', 'show', 'dev', names.link]).catch(() => ''),
  ]);
  return link !== '' && namespaces.split('\n').some((line) => line.split(' ')[0] === names.namespace);
}

/**
 * Creates the seed's network namespace, connected to the host by a veth pair with routes to the seed's pods and
 * Services. Egress adds outbound access. Resolves to whether it is new: partial remains are recreated from the start.
 */
export async function setUpNetwork(names: NetworkNames, ranges: Ranges): Promise<boolean> {
  if (await networkExists(names)) {
    await addRoutes(names, ranges);
    return false;
  }
  await tearDownNetwork(names);
  const inside = ['ip', '-n', names.namespace, '-batch', '-'];
  await run(['ip', 'netns', 'add', names.namespace]);
  await run(['ip', 'link', 'add', names.link, 'type', 'veth', 'peer', 'name', SEED_LINK, 'netns', names.namespace]);
  await run(inside, {
    input: [
      'link set lo up',
      `address add ${ranges.nodeAddress}/24 dev ${SEED_LINK}`,
      `link set ${SEED_LINK} up`,
      // Without a querier a snooping bridge may drop the multicast by which machines find each other.
      `link add ${POD_BRIDGE} type bridge mcast_snooping 0`,
      `link set ${POD_BRIDGE} up`,
    ].join('\n'),
  });
  await addRoutes(names, ranges);
  await run(['ip', 'netns', 'exec', names.namespace, '/bin/sh', '-ec', settingsScript()]);
  return true;
}

/** Script for the network of a rootless seed, inside its namespace: it has no outside connection. */
export const rootlessNetworkScript = ({ nodeAddress, services }: Ranges): string =>
  [
    'ip link set lo up',
    // Carries the node's address; its other end is unconnected.
    `ip link add ${SEED_LINK} type veth peer name ${SEED_LINK}-end`,
    `ip address add ${nodeAddress}/24 dev ${SEED_LINK}`,
    `ip link set ${SEED_LINK} up`,
    `ip link set ${SEED_LINK}-end up`,
    // The kernel needs a route before kube-proxy's rules translate a Service address.
    `ip route add ${services} dev ${SEED_LINK}`,
    `ip link add ${POD_BRIDGE} type bridge mcast_snooping 0`,
    `ip link set ${POD_BRIDGE} up`,
    // A kernel may deny some of them to users who are not root on the host.
    settingsScript(' || :'),
  ].join('\n');

/** Without the bridge netfilter module its settings do not exist, and nothing needs them. */
const settingsScript = (orElse = ''): string =>
  Object.entries(SETTINGS)
    .map(([name, value]) => `if [ -e /proc/sys/${name} ]; then echo ${value} >/proc/sys/${name}${orElse}; fi`)
    .join('\n');

async function addRoutes(names: NetworkNames, ranges: Ranges): Promise<void> {
  await run(['ip', '-batch', '-'], {
    input: [
      `address replace ${ranges.hostAddress}/24 dev ${names.link}`,
      `link set ${names.link} up`,
      `route replace ${ranges.pods} via ${ranges.nodeAddress} dev ${names.link}`,
      `route replace ${ranges.services} via ${ranges.nodeAddress} dev ${names.link}`,
    ].join('\n'),
  });
}

/** Removes the namespace and the link, complete or partial. */
export async function tearDownNetwork(names: NetworkNames): Promise<void> {
  await run(['ip', 'link', 'delete', names.link]).catch(ignoreAbsent);
  await run(['ip', 'netns', 'delete', names.namespace]).catch(ignoreAbsent);
}

const ABSENT = /Cannot find device|No such file or directory/;

function ignoreAbsent(error: unknown): void {
  // Without the command `ip` none of this was ever created.
  const isAbsent = error instanceof CommandError && (error.isNotInstalled || ABSENT.test(error.stderr));
  if (!isAbsent) throw error;
}

/**
 * Loads kernel modules for network and containers. A module that fails to load may be built in; later steps fail if it
 * is missing.
 */
export async function loadModules(): Promise<void> {
  const loaded = (await readFile('/proc/modules', 'utf8').catch(() => ''))
    .split('\n')
    .map((line) => line.split(' ')[0]);
  const wanted = ['br_netfilter', 'overlay', 'vxlan', 'nf_conntrack', 'veth', 'tun'].filter(
    (name) => !loaded.includes(name),
  );
  for (const name of wanted) await run(['modprobe', '-q', name]).catch(() => {});
}

/** Network namespaces of gardens on this machine. */
export async function gardenNamespaces(): Promise<string[]> {
  const text = await run(['ip', 'netns', 'list']);
  return text
    .split('\n')
    .map((line) => line.split(' ')[0] ?? '')
    .filter((name) => name.startsWith('coppice-'));
}

/** `ip netns` leaves /run/netns mounted on itself. Removed when no namespace is left. */
export async function removeEmptyNamespaceFolder(): Promise<void> {
  if ((await run(['ip', 'netns', 'list'])).trim() !== '') return;
  await run(['umount', '/run/netns']).catch(() => {});
  await run(['rmdir', '/run/netns']).catch(() => {});
}
