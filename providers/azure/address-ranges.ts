import { parseRange } from '../validate.ts';

/**
 * The tenth address of the range of Services, where AKS puts the cluster's DNS by default (10.0.0.10 of 10.0.0.0/16); '' for no
 * range, as of a cluster that is only to be taken away and of which nobody knows more.
 */
export function dnsServiceIP(services: string): string {
  const range = parseRange(services);
  if (!range) return '';
  const address = range.first + 10;
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.');
}
