import { readFile } from 'node:fs/promises';
import { CommandError, run } from './command.ts';
import type { Ranges } from './ranges.ts';

/** Names of what a garden makes in the host's network. */
export interface NetworkNames {
  namespace: string;
  /** The host's end of the link; 15 characters are the kernel's limit. */
  link: string;
}

/** The bridge in the namespace that pods hang on. */
export const POD_BRIDGE = 'pods';
/** The seed's end of the link. */
export const SEED_LINK = 'uplink';

export const networkNames = (id: string): NetworkNames => ({ namespace: `coppice-${id}`, link: `coppice-${id}` });

/** A network namespace as the kernel's file, for `nsenter --net=`. */
export const namespaceFile = (names: NetworkNames): string => `/run/netns/${names.namespace}`;

/** The words before a command that is to run in it, among the host's files. */
export const enterNetwork = (names: NetworkNames): string[] => ['nsenter', `--net=${namespaceFile(names)}`];

interface RouteEntry {
  dst?: string;
  dev?: string;
}
interface AddressEntry {
  ifname: string;
  addr_info: { local?: string; prefixlen?: number }[];
}

/** Addresses and ranges that the host uses already, those of `except` (an interface) left out. */
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

/** `ip -j` says nothing at all when there is nothing to say. */
const parseJson = <T>(text: string): T[] => (text.trim() ? (JSON.parse(text) as T[]) : []);

/** Settings of the namespace. All of them exist once for each namespace: the host keeps its own. */
const SETTINGS: Record<string, string> = {
  'net/ipv4/ip_forward': '1',
  'net/ipv4/conf/all/rp_filter': '0',
  'net/ipv4/conf/default/rp_filter': '0',
  // A pod is told at once, however often it tries, that an address is closed to it.
  'net/ipv4/icmp_ratelimit': '0',
  // Service traffic between pods on one bridge must pass kube-proxy's rules.
  'net/bridge/bridge-nf-call-iptables': '1',
  // Pods have addresses of IPv6 that nobody gave them: by those they would pass NetworkPolicies.
  'net/bridge/bridge-nf-call-ip6tables': '1',
};

/** Whether both the namespace and the link to it are there. */
export async function networkExists(names: NetworkNames): Promise<boolean> {
  const [namespaces, link] = await Promise.all([
    run(['ip', 'netns', 'list']),
    run(['ip', 'link', 'show', 'dev', names.link]).catch(() => ''),
  ]);
  return link !== '' && namespaces.split('\n').some((line) => line.split(' ')[0] === names.namespace);
}

/**
 * Makes the seed's network namespace, joined to the host by a veth pair with routes to the seed's pods and Services. The way out is
 * made by Egress.
 * Resolves to whether it is new: what was left half-made is made again from the start.
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
      // Without a querier a snooping bridge may drop the multicast that machines find each other by.
      `link add ${POD_BRIDGE} type bridge mcast_snooping 0`,
      `link set ${POD_BRIDGE} up`,
    ].join('\n'),
  });
  await addRoutes(names, ranges);
  await run(['ip', 'netns', 'exec', names.namespace, '/bin/sh', '-ec', settingsScript()]);
  return true;
}

/** The script that makes the network of a rootless seed, inside of its namespace: it leads nowhere else. */
export const rootlessNetworkScript = ({ nodeAddress, services }: Ranges): string =>
  [
    'ip link set lo up',
    // The node has an address on it; its other end hangs loose.
    `ip link add ${SEED_LINK} type veth peer name ${SEED_LINK}-end`,
    `ip address add ${nodeAddress}/24 dev ${SEED_LINK}`,
    `ip link set ${SEED_LINK} up`,
    `ip link set ${SEED_LINK}-end up`,
    // The kernel asks for a route before kube-proxy's rules say where a Service is.
    `ip route add ${services} dev ${SEED_LINK}`,
    `ip link add ${POD_BRIDGE} type bridge mcast_snooping 0`,
    `ip link set ${POD_BRIDGE} up`,
    // A kernel may not leave all of them to who is not root outside as well.
    settingsScript(' || :'),
  ].join('\n');

/** A bridge netfilter module that is not loaded has no setting; then there is also nothing that needs it. */
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

/** Removes the namespace and the link, however much of them there is. */
export async function tearDownNetwork(names: NetworkNames): Promise<void> {
  await run(['ip', 'link', 'delete', names.link]).catch(ignoreAbsent);
  await run(['ip', 'netns', 'delete', names.namespace]).catch(ignoreAbsent);
}

const ABSENT = /Cannot find device|No such file or directory/;

function ignoreAbsent(error: unknown): void {
  // Without the command `ip` nothing of the kind was ever made.
  const isAbsent = error instanceof CommandError && (error.isNotInstalled || ABSENT.test(error.stderr));
  if (!isAbsent) throw error;
}

/**
 * Loads kernel modules that network and containers need, where the kernel has them as modules. One that cannot be
 * loaded may be built in, so what comes after says whether it is missed.
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

/** Gardens' network namespaces on this machine. */
export async function gardenNamespaces(): Promise<string[]> {
  const text = await run(['ip', 'netns', 'list']);
  return text
    .split('\n')
    .map((line) => line.split(' ')[0] ?? '')
    .filter((name) => name.startsWith('coppice-'));
}

/** `ip netns` keeps a mount of /run/netns on itself for ever. Removes it when there is no namespace at all. */
export async function removeEmptyNamespaceFolder(): Promise<void> {
  if ((await run(['ip', 'netns', 'list'])).trim() !== '') return;
  await run(['umount', '/run/netns']).catch(() => {});
  await run(['rmdir', '/run/netns']).catch(() => {});
}
