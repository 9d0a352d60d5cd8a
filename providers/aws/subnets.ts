import { type AddressRange, ipv4Range, nthAddress, partOf, rangeText } from '../../operator/api/address-range.ts';
import { configurationProblem } from '../../operator/api/errors.ts';

/** Address ranges of one zone, CIDR. */
export interface ZoneRanges {
  zone: string;
  /** Nodes, internal load balancers and the control plane's interfaces. */
  private: string;
  /** NAT gateway and public load balancers. */
  public: string;
  pods: string;
}

/** Zone letters: the number of parts of a range, used or not. */
export const ZONE_LETTERS = 'abcdefgh';

/**
 * Permitted prefix lengths of a VPC and its subnets. Source: Amazon VPC user guide, "VPC CIDR blocks", "Subnet CIDR
 * blocks".
 */
const LARGEST = 16;
const SMALLEST = 28;
const BITS_OF_ZONES = 3;
/** Prefix lengths of a divisible node range: by zone, then in two. */
export const NODES_BITS = { from: LARGEST, to: SMALLEST - BITS_OF_ZONES - 1 };
/** Permitted prefix lengths of a pod range. Only the first part of a range that is too large for AWS is used. */
export const PODS_BITS = { from: 0, to: SMALLEST - BITS_OF_ZONES };

const FITS = { nodes: NODES_BITS, pods: PODS_BITS };

function read(what: keyof typeof FITS, text: string): AddressRange {
  const range = ipv4Range(text);
  const { from, to } = FITS[what];
  if (range && range.prefix >= from && range.prefix <= to && rangeText(range) === text) return range;
  const advice = `Choose one from /${from} to /${to}.`;
  throw configurationProblem(`"${text}" is no range for ${what} at AWS`, advice);
}

/** The pod range of the VPC: all of it, or its first /16. */
export function vpcPodsRange(pods: string): string {
  const range = read('pods', pods);
  return `${nthAddress(pods, 0)}/${Math.max(range.prefix, LARGEST)}`;
}

/**
 * Divides the ranges into subnets by zone letter, not by position: adding a zone must not move other zones' subnets,
 * which would replace all nodes. Throws a configuration problem for an indivisible range.
 */
export function zoneRanges(cidrs: { nodes: string; pods: string }, zones: readonly string[]): ZoneRanges[] {
  const nodes = read('nodes', cidrs.nodes);
  const pods = read('pods', vpcPodsRange(cidrs.pods));
  return [...zones].sort().map((zone) => {
    const index = ZONE_LETTERS.indexOf(zone.at(-1) ?? '?');
    if (index < 0)
      throw configurationProblem(`${zone} is no availability zone`, 'Their names end in a letter, a to h.');
    const slot = partOf(nodes, BITS_OF_ZONES, index);
    return {
      zone,
      private: rangeText(partOf(slot, 1, 0)),
      public: rangeText(partOf(slot, 1, 1)),
      pods: rangeText(partOf(pods, BITS_OF_ZONES, index)),
    };
  });
}
