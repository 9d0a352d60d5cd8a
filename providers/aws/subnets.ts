import { configurationProblem } from '../../operator/api/errors.ts';
import { formatRange, parseRange, partOf, type Range } from './ranges.ts';

/** Address ranges of one zone. */
export interface ZoneRanges {
  zone: string;
  /** Nodes, internal load balancers and the control plane's interfaces. */
  private: string;
  /** NAT gateway and public load balancers. */
  public: string;
  pods: string;
}

/** Zones a to h: as many as a range is cut into, whether they are used or not. */
export const ZONE_LETTERS = 'abcdefgh';
const BITS = 3;

/** A VPC takes ranges from /16 to /28. Source: Amazon VPC user guide, "VPC CIDR blocks". */
export const LARGEST_VPC_RANGE = 16;
export const SMALLEST_SUBNET = 28;
/** So that a zone's halves are still subnets: 2^3 zones, two halves each. */
export const SMALLEST_NODES_RANGE = SMALLEST_SUBNET - BITS - 1;
export const SMALLEST_PODS_RANGE = SMALLEST_SUBNET - BITS;

/** The part of the pods' range that the VPC can take: all of it, or its first /16. */
export function vpcPodsRange(pods: Range): Range {
  return pods.bits < LARGEST_VPC_RANGE ? { first: pods.first, bits: LARGEST_VPC_RANGE } : pods;
}

/**
 * Cuts the ranges into subnets, by the letter of a zone and not by its place in the list: adding a zone must not move the
 * subnets of another, which would mean new nodes everywhere. Throws a configuration problem on what cannot be cut.
 */
export function zoneRanges(cidrs: { nodes: string; pods: string }, zones: readonly string[]): ZoneRanges[] {
  const nodes = parseRange(cidrs.nodes);
  const pods = parseRange(cidrs.pods);
  if (!nodes || nodes.bits < LARGEST_VPC_RANGE || nodes.bits > SMALLEST_NODES_RANGE) {
    throw configurationProblem(
      `${cidrs.nodes} is no range for nodes at AWS`,
      `Choose one from /${LARGEST_VPC_RANGE} to /${SMALLEST_NODES_RANGE}.`,
    );
  }
  if (!pods || pods.bits > SMALLEST_PODS_RANGE) {
    throw configurationProblem(
      `${cidrs.pods} is no range for pods at AWS`,
      `Choose one not smaller than /${SMALLEST_PODS_RANGE}.`,
    );
  }
  return [...zones].sort().map((zone) => {
    const index = ZONE_LETTERS.indexOf(zone.at(-1) ?? '?');
    if (index < 0)
      throw configurationProblem(`${zone} is no availability zone`, 'Their names end in a letter, a to h.');
    const slot = partOf(nodes, BITS, index);
    return {
      zone,
      private: formatRange(partOf(slot, 1, 0)),
      public: formatRange(partOf(slot, 1, 1)),
      pods: formatRange(partOf(vpcPodsRange(pods), BITS, index)),
    };
  });
}
