import { parseRange } from '../validate.ts';

/** The tenth address of the range of Services, where AKS puts the cluster's DNS by default (10.0.0.10 of 10.0.0.0/16). */
export function dnsServiceIP(services: string): string {
  const range = parseRange(services);
  if (!range) throw new Error(`${services} is no IPv4 range such as 10.0.0.0/16`);
  const address = range.first + 10;
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.');
}
