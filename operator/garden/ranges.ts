import { createHash } from 'node:crypto';

/** The address ranges of a garden's local seed, and the two ends of the link between host and seed. */
export interface Ranges {
  pods: string;
  nodes: string;
  services: string;
  /** The host's end of the link. */
  hostAddress: string;
  /** The seed's end: the address of its node. */
  nodeAddress: string;
  /** First address of the service range: the Service `kubernetes`. */
  apiserverAddress: string;
}

/** Addresses of the way out, which are seen in the seed's namespace alone. */
export interface EgressRange {
  range: string;
  /** The next hop of all that leaves. */
  gateway: string;
  /** Where slirp4netns would serve DNS, and lets any port of this machine's resolver be asked. */
  resolver: string;
}

/** A range beside that of the nodes. Pure: gardens from before there was a way out have it, too. */
export function egressRange({ nodeAddress }: Pick<Ranges, 'nodeAddress'>): EgressRange {
  const [a, b, c] = nodeAddress.split('.');
  const base = `${a}.${b}.${Number(c) + 1}`;
  return { range: `${base}.0/24`, gateway: `${base}.2`, resolver: `${base}.3` };
}

export interface Span {
  first: number;
  last: number;
}

/** What gardens take their ranges from. */
export const ALL_GARDENS = '10.160.0.0/11';
const BLOCKS = 16;
const FIRST_OCTET = 160;

/** An IPv4 address or range in CIDR notation as numbers. Undefined for anything else (`default`, IPv6). */
export function parseRange(text: string): Span | undefined {
  const match = /^(\d+)\.(\d+)\.(\d+)\.(\d+)(?:\/(\d+))?$/.exec(text);
  if (!match) return undefined;
  const octets = match.slice(1, 5).map(Number);
  const bits = match[5] === undefined ? 32 : Number(match[5]);
  if (octets.some((octet) => octet > 255) || bits > 32) return undefined;
  const address = octets.reduce((sum, octet) => sum * 256 + octet, 0);
  const size = 2 ** (32 - bits);
  const first = Math.floor(address / size) * size;
  return { first, last: first + size - 1 };
}

export const overlaps = (a: Span, b: Span): boolean => a.first <= b.last && b.first <= a.last;

const block = (index: number): Ranges => {
  const octet = FIRST_OCTET + 2 * index;
  return {
    pods: `10.${octet}.0.0/17`,
    nodes: `10.${octet}.128.0/24`,
    services: `10.${octet + 1}.0.0/16`,
    hostAddress: `10.${octet}.128.1`,
    nodeAddress: `10.${octet}.128.2`,
    apiserverAddress: `10.${octet + 1}.0.1`,
  };
};

const spansOf = (ranges: Ranges): Span[] =>
  [ranges.pods, ranges.nodes, ranges.services].map((range) => parseRange(range)!);

/** Those of `occupied` (addresses or ranges of the host) that a garden's ranges overlap. */
export const conflicts = (ranges: Ranges, occupied: readonly string[]): string[] =>
  occupied.filter((text) => {
    const span = parseRange(text);
    return span !== undefined && spansOf(ranges).some((mine) => overlaps(mine, span));
  });

/**
 * Ranges from 10.160.0.0/11 that overlap nothing of `occupied`. The search begins at a place given by `id`, so that
 * gardens which do not run at the same time hardly ever get the same. Undefined when nothing is free.
 */
export function chooseRanges(id: string, occupied: readonly string[]): Ranges | undefined {
  const start = createHash('sha256').update(id).digest()[0]! % BLOCKS;
  for (let i = 0; i < BLOCKS; i++) {
    const ranges = block((start + i) % BLOCKS);
    if (conflicts(ranges, occupied).length === 0) return ranges;
  }
  return undefined;
}
