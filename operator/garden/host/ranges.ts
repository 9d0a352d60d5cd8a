import { createHash } from 'node:crypto';
import { addressRange, addressRangesOverlap, nthAddress, rangeOrAddress } from '../../api/address-range.ts';

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
interface EgressRange {
  range: string;
  /** The next hop of all that leaves. */
  gateway: string;
  /** Where slirp4netns would serve DNS, and lets any port of this machine's resolver be asked. */
  resolver: string;
}

/** A range beside that of the nodes. Pure: gardens from before there was a way out have it, too. */
export function egressRange({ nodeAddress }: Pick<Ranges, 'nodeAddress'>): EgressRange {
  // The /24 after that of the node.
  const range = `${nthAddress(`${nodeAddress}/23`, 256)}/24`;
  return { range, gateway: nthAddress(range, 2), resolver: nthAddress(range, 3) };
}

/** What gardens take their ranges from. */
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

/** Those of `occupied` (addresses or ranges of the host) that a garden's ranges overlap. */
export function rangeConflicts({ pods, nodes, services }: Ranges, occupied: readonly string[]): string[] {
  const own = [pods, nodes, services].map(addressRange);
  return occupied.filter((text) => {
    const range = rangeOrAddress(text);
    return range !== undefined && own.some((one) => addressRangesOverlap(one, range));
  });
}

/**
 * Ranges from 10.160.0.0/11 that overlap nothing of `occupied`. The search begins at a place given by `id`, so that
 * gardens which do not run at the same time hardly ever get the same. Undefined when nothing is free.
 */
export function chooseRanges(id: string, occupied: readonly string[]): Ranges | undefined {
  const start = createHash('sha256').update(id).digest()[0]! % BLOCKS;
  for (let i = 0; i < BLOCKS; i++) {
    const ranges = block((start + i) % BLOCKS);
    if (rangeConflicts(ranges, occupied).length === 0) return ranges;
  }
  return undefined;
}
