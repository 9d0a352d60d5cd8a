import { createHash } from 'node:crypto';
import { addressRange, addressRangesOverlap, nthAddress, rangeOrAddress } from '../../api/address-range.ts';

/** Address ranges of a garden's local seed, and the two ends of the link between host and seed. */
export interface Ranges {
  pods: string;
  nodes: string;
  services: string;
  /** The host's end of the link. */
  hostAddress: string;
  /** The seed's end: its node's address. */
  nodeAddress: string;
  /** First address of the service range: the Service `kubernetes`. */
  apiserverAddress: string;
}

/** Addresses of outbound access, visible in the seed's namespace only. */
interface EgressRange {
  range: string;
  /** Next hop of outbound traffic. */
  gateway: string;
  /** Address of slirp4netns' DNS server, which would expose every port of this machine's resolver. */
  resolver: string;
}

/** The range next to the nodes'. Pure: gardens created before outbound access have it too. */
export function egressRange({ nodeAddress }: Pick<Ranges, 'nodeAddress'>): EgressRange {
  // The /24 after the node's.
  const range = `${nthAddress(`${nodeAddress}/23`, 256)}/24`;
  return { range, gateway: nthAddress(range, 2), resolver: nthAddress(range, 3) };
}

/** Range from which gardens take theirs. */
export const ALL_GARDENS = '10.160.0.0/11';
const BLOCKS = 16;
const FIRST_OCTET = 160;

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

/** The `occupied` addresses or ranges that overlap with a garden's ranges. */
export function rangeConflicts({ pods, nodes, services }: Ranges, occupied: readonly string[]): string[] {
  const own = [pods, nodes, services].map(addressRange);
  return occupied.filter((text) => {
    const range = rangeOrAddress(text);
    return range !== undefined && own.some((one) => addressRangesOverlap(one, range));
  });
}

/**
 * Ranges from 10.160.0.0/11 without overlap with `occupied`. `id` sets the start of the search, so that gardens rarely
 * get the same. Undefined when none is free.
 */
export function chooseRanges(id: string, occupied: readonly string[]): Ranges | undefined {
  const start = createHash('sha256').update(id).digest()[0]! % BLOCKS;
  for (let i = 0; i < BLOCKS; i++) {
    const ranges = block((start + i) % BLOCKS);
    if (rangeConflicts(ranges, occupied).length === 0) return ranges;
  }
  return undefined;
}
