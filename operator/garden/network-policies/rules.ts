import { createHash } from 'node:crypto';
import { isIPv4 } from 'node:net';
import { type AddressRange, addressText, ipv4Range } from '../../api/address-range.ts';
import { matchesLabels } from '../../api/label-selector.ts';
import type { NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '../../kube/network-policy.ts';
import { hasEnded } from '../../kube/pods.ts';
import type { KubeObject, Pod } from '../../kube/resources.ts';
import type { Ranges } from '../host/ranges.ts';

/** Rules by chain, as iptables-restore reads them, without `-A CHAIN`. */
export type Chains = ReadonlyMap<string, readonly string[]>;

/** What FORWARD and INPUT lead to. */
export const ENTRY = 'COPPICE-NETPOL';
const BY_SOURCE = `${ENTRY}-EGRESS`;
const BY_DESTINATION = `${ENTRY}-INGRESS`;
/** First letters of every chain of ours. */
const PREFIX = 'COPPICE-NP';
/** At once: of an ICMP message alone TCP within one machine learns a second later, when it has tried again. */
const REFUSED = ['-p tcp -j REJECT --reject-with tcp-reset', '-j REJECT --reject-with icmp-admin-prohibited'];
const PROTOCOLS: Readonly<Record<string, string>> = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' };

/** What the seed's API server has. */
interface Seen {
  readonly pods: readonly Pod[];
  readonly namespaces: readonly KubeObject[];
  readonly policies: readonly NetworkPolicy[];
}

/** Either way of a connection, with the words that iptables has for its far end. */
interface Direction {
  readonly type: 'Ingress' | 'Egress';
  readonly address: '-s' | '-d';
  readonly range: '--src-range' | '--dst-range';
}
const INGRESS: Direction = { type: 'Ingress', address: '-s', range: '--src-range' };
const EGRESS: Direction = { type: 'Egress', address: '-d', range: '--dst-range' };

/** Pods that have an address of their own. */
const isInNetwork = ({ spec, status }: Pod): boolean =>
  !spec.hostNetwork && isIPv4(status?.podIP ?? '') && !hasEnded({ status });

/** A policy says what it is about; one of an older client does not, and means ingress, and egress where it has rules for that. */
const isAbout = ({ spec }: NetworkPolicy, { type }: Direction): boolean =>
  spec.policyTypes?.includes(type) ?? (type === 'Ingress' || spec.egress !== undefined);

/**
 * The rules that enforce policies on a node with these ranges. Connections that were let in go on, the node itself and the host reach
 * all pods, and a pod that no policy selects is free. Pods that the same policies select share a chain.
 *
 * What belongs to no connection is dropped, as kube-proxy does: refused, a packet that came late would end a connection that lives.
 *
 * A Service that kube-proxy does not know yet is refused. Its first packet would go astray, and the kernel would send all that follow the
 * same way. An API server waited 20 s for its etcd. Pure.
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

/** At most 28 characters, the kernel's limit. Two pods have one chain as long as it says the same. */
function chainName(
  { type }: Direction,
  namespace: string,
  policies: readonly NetworkPolicy[],
  rules: string[],
): string {
  const names = policies.map(({ metadata }) => metadata.name).sort();
  // Ports may have names, which are numbers of the pod's own.
  const numbers = rules.filter((rule) => rule.includes('--dport')).sort();
  const hash = createHash('sha256')
    .update(JSON.stringify([namespace, names, numbers]))
    .digest('hex')
    .slice(0, 14);
  return `${PREFIX}-${type[0]}-${hash}`;
}

/** What a policy lets through, to or from this pod. */
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

/** The far end of a connection: how it is matched, and which pod it is, where it is one. */
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

/** What is left of a range; nothing of one that is not IPv4. */
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

/** @param called the pod that has the port. @returns undefined: it has no such port */
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
 * What iptables-restore is told, without flushing, to make the chains of before what they are to be; undefined: they are. All of it
 * holds at once. `before`: chains with an unknown content have one that nothing equals. Pure.
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

/** Chains of ours among what `iptables -S` shows. */
export const chainsShown = (shown: string): string[] =>
  shown.split('\n').flatMap((line) => {
    const [, name] = /^-N (\S+)$/.exec(line) ?? [];
    return name === ENTRY || name?.startsWith(`${ENTRY}-`) || name?.startsWith(`${PREFIX}-`) ? [name!] : [];
  });
