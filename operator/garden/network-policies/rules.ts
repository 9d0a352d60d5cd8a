import { createHash } from 'node:crypto';
import { isIPv4 } from 'node:net';
import { type AddressRange, addressText, ipv4Range } from '../../api/address-range.ts';
import { matchesLabels } from '../../api/label-selector.ts';
import type { NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '../../kube/network-policy.ts';
import { hasEnded } from '../../kube/pods.ts';
import type { KubeObject, Pod } from '../../kube/resources.ts';
import type { Ranges } from '../host/ranges.ts';

/** Rules by chain in iptables-restore form, without `-A CHAIN`. */
type Chains = ReadonlyMap<string, readonly string[]>;

/** Chain to which FORWARD and INPUT jump. */
export const ENTRY = 'COPPICE-NETPOL';
const BY_SOURCE = `${ENTRY}-EGRESS`;
const BY_DESTINATION = `${ENTRY}-INGRESS`;
/** Prefix of all policy chains. */
const PREFIX = 'COPPICE-NP';
/** TCP resets: TCP within a machine reacts to an ICMP message only after a retry, a second later. */
const REFUSED = ['-p tcp -j REJECT --reject-with tcp-reset', '-j REJECT --reject-with icmp-admin-prohibited'];
const PROTOCOLS: Readonly<Record<string, string>> = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' };

/** Objects of the seed's API server. */
interface Seen {
  readonly pods: readonly Pod[];
  readonly namespaces: readonly KubeObject[];
  readonly policies: readonly NetworkPolicy[];
}

/** A direction of connections, with iptables' options for the remote end. */
interface Direction {
  readonly type: 'Ingress' | 'Egress';
  readonly address: '-s' | '-d';
  readonly range: '--src-range' | '--dst-range';
}
const INGRESS: Direction = { type: 'Ingress', address: '-s', range: '--src-range' };
const EGRESS: Direction = { type: 'Egress', address: '-d', range: '--dst-range' };

/** Pods with an address of their own. */
const isInNetwork = ({ spec, status }: Pod): boolean =>
  !spec.hostNetwork && isIPv4(status?.podIP ?? '') && !hasEnded({ status });

/**
 * Whether a policy applies to the direction; without policyTypes it means ingress, and egress where it has egress
 * rules.
 */
const isAbout = ({ spec }: NetworkPolicy, { type }: Direction): boolean =>
  spec.policyTypes?.includes(type) ?? (type === 'Ingress' || spec.egress !== undefined);

/**
 * Rules that enforce policies on a node with these ranges. Established connections continue, the node and the host
 * reach all pods, and pods without a policy are unrestricted. Pods selected by the same policies share a chain.
 *
 * Packets without a connection are dropped, as by kube-proxy: a reject of a late packet would end a live connection.
 *
 * Connections to a Service unknown to kube-proxy are refused: otherwise the first packet would be misrouted, and
 * conntrack would misroute all that follow. An API server waited 20 s for its etcd. Pure.
 */
export function networkPolicyChains(seen: Seen, ranges: Pick<Ranges, 'pods' | 'nodes' | 'services'>): Chains {
  const pods = seen.pods.filter(isInNetwork).sort((a, b) => (a.status!.podIP! < b.status!.podIP! ? -1 : 1));
  const world: World = {
    pods: Map.groupBy(pods, ({ metadata }) => metadata.namespace ?? ''),
    namespaces: seen.namespaces,
  };
  const policies = Map.groupBy(seen.policies, ({ metadata }) => metadata.namespace ?? '');
  const chains = new Map<string, string[]>([
    [
      ENTRY,
      [
        '-m conntrack --ctstate RELATED,ESTABLISHED -j RETURN',
        '-m conntrack --ctstate INVALID -j DROP',
        ...REFUSED.map((words) => `-d ${ranges.services} ${words}`),
        `-s ${ranges.pods} -j ${BY_SOURCE}`,
        `-d ${ranges.pods} ! -s ${ranges.nodes} -j ${BY_DESTINATION}`,
      ],
    ],
    [BY_SOURCE, []],
    [BY_DESTINATION, []],
  ]);
  for (const pod of pods) {
    const own = policies.get(pod.metadata.namespace ?? '') ?? [];
    const selecting = own.filter(({ spec }) => matchesLabels(pod.metadata.labels ?? {}, spec.podSelector ?? {}));
    for (const direction of [EGRESS, INGRESS]) {
      const about = selecting.filter((policy) => isAbout(policy, direction));
      if (about.length === 0) continue;
      const rules = [...new Set(about.flatMap((policy) => rulesOf(policy, direction, pod, world))), ...REFUSED];
      const name = chainName(direction, pod.metadata.namespace ?? '', about, rules);
      chains.set(name, rules);
      if (direction === EGRESS) chains.get(BY_SOURCE)!.push(`-s ${pod.status!.podIP}/32 -j ${name}`);
      else chains.get(BY_DESTINATION)!.push(`-d ${pod.status!.podIP}/32 -j ${name}`);
    }
  }
  return chains;
}

interface World {
  readonly pods: ReadonlyMap<string, readonly Pod[]>;
  readonly namespaces: readonly KubeObject[];
}

/** At most 28 characters, the kernel's limit. Pods with equal rules share a chain. */
function chainName(
  { type }: Direction,
  namespace: string,
  policies: readonly NetworkPolicy[],
  rules: string[],
): string {
  const names = policies.map(({ metadata }) => metadata.name).sort();
  // Part of the hash: a named port resolves to different numbers on different pods, which then need chains of their own.
  const numbers = rules.filter((rule) => rule.includes('--dport')).sort();
  const hash = createHash('sha256')
    .update(JSON.stringify([namespace, names, numbers]))
    .digest('hex')
    .slice(0, 14);
  return `${PREFIX}-${type[0]}-${hash}`;
}

/** Connections that a policy permits to or from this pod. */
function rulesOf(policy: NetworkPolicy, direction: Direction, pod: Pod, world: World): string[] {
  const rules =
    direction === INGRESS
      ? (policy.spec.ingress ?? []).map(({ from, ports }) => ({ peers: from, ports }))
      : (policy.spec.egress ?? []).map(({ to, ports }) => ({ peers: to, ports }));
  return rules.flatMap(({ peers, ports }) => {
    const ends = peers?.length
      ? peers.flatMap((peer) => endsOf(peer, direction, policy.metadata.namespace ?? '', world))
      : [{ words: [] }];
    return ends.flatMap(({ words, pod: peer }) =>
      (ports?.length ? ports : [undefined])
        .map((port) => (port ? wordsOf(port, direction === INGRESS ? pod : peer) : []))
        .flatMap((numbered) => (numbered ? [[...words, ...numbered, '-j', 'RETURN'].join(' ')] : [])),
    );
  });
}

/** Remote end of a connection: its iptables options, and its pod if it is one. */
interface End {
  readonly words: readonly string[];
  readonly pod?: Pod;
}

function endsOf(peer: NetworkPolicyPeer, { address, range }: Direction, namespace: string, world: World): End[] {
  const { ipBlock, namespaceSelector, podSelector = {} } = peer;
  if (ipBlock) {
    if (!ipBlock.except?.length) return ipv4Range(ipBlock.cidr) ? [{ words: [address, ipBlock.cidr] }] : [];
    return without(ipBlock.cidr, ipBlock.except).map(({ first, last }) => ({
      words: ['-m', 'iprange', range, `${addressText(first, 4)}-${addressText(last, 4)}`],
    }));
  }
  const namespaces = namespaceSelector
    ? world.namespaces
        .filter(({ metadata }) => matchesLabels(metadata.labels ?? {}, namespaceSelector))
        .map(({ metadata }) => metadata.name)
    : [namespace];
  return namespaces
    .flatMap((name) => world.pods.get(name) ?? [])
    .filter(({ metadata }) => matchesLabels(metadata.labels ?? {}, podSelector))
    .map((pod) => ({ words: [address, `${pod.status!.podIP}/32`], pod }));
}

type Span = Pick<AddressRange, 'first' | 'last'>;

/** The range minus its exceptions; empty for IPv6. */
function without(cidr: string, except: readonly string[]): Span[] {
  const whole = ipv4Range(cidr);
  let left: Span[] = whole ? [whole] : [];
  for (const hole of except.map(ipv4Range))
    if (hole)
      left = left.flatMap(({ first, last }) =>
        [
          { first, last: last < hole.first ? last : hole.first - 1n },
          { first: first > hole.last ? first : hole.last + 1n, last },
        ].filter((part) => part.first <= part.last),
      );
  return left;
}

/** @param called the pod with the port. @returns undefined: it has no such port */
function wordsOf(
  { protocol = 'TCP', port, endPort }: NetworkPolicyPort,
  called: Pod | undefined,
): string[] | undefined {
  const name = PROTOCOLS[protocol];
  if (name === undefined) return undefined;
  if (port === undefined) return ['-p', name];
  const number = typeof port === 'number' ? port : numberOf(port, protocol, called);
  if (number === undefined) return undefined;
  return ['-p', name, '--dport', endPort === undefined ? `${number}` : `${number}:${endPort}`];
}

interface ContainerPort {
  name?: string;
  containerPort: number;
  protocol?: string;
}

function numberOf(name: string, protocol: string, pod: Pod | undefined): number | undefined {
  const ports = (pod?.spec.containers ?? []).flatMap(
    (container) => (container as { ports?: ContainerPort[] }).ports ?? [],
  );
  return ports.find((port) => port.name === name && (port.protocol ?? 'TCP') === protocol)?.containerPort;
}

/**
 * Input of iptables-restore (no flush) that changes the chains of `before` atomically; undefined: no change. `before`:
 * chains with unknown content are undefined, which equals nothing. Pure.
 */
export function restoreInput(
  before: ReadonlyMap<string, readonly string[] | undefined>,
  wanted: Chains,
): string | undefined {
  const isSame = (name: string, rules: readonly string[]) => before.get(name)?.join('\n') === rules.join('\n');
  const changed = [...wanted].filter(([name, rules]) => !isSame(name, rules));
  const stale = [...before.keys()].filter((name) => !wanted.has(name));
  if (changed.length === 0 && stale.length === 0) return undefined;
  const declared = [...changed.map(([name]) => name), ...stale];
  return [
    '*filter',
    ...declared.map((name) => `:${name} - [0:0]`),
    ...changed.flatMap(([name, rules]) => rules.map((rule) => `-A ${name} ${rule}`)),
    ...stale.map((name) => `-X ${name}`),
    'COMMIT',
    '',
  ].join('\n');
}

/** Coppice's chains in the output of `iptables -S`. */
export const chainsShown = (shown: string): string[] =>
  shown.split('\n').flatMap((line) => {
    const [, name] = /^-N (\S+)$/.exec(line) ?? [];
    return name === ENTRY || name?.startsWith(`${ENTRY}-`) || name?.startsWith(`${PREFIX}-`) ? [name!] : [];
  });
