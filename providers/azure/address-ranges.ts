import { ipv4Range, nthAddress } from '../../operator/api/address-range.ts';

/**
 * The tenth address of the range of Services, where AKS puts the cluster's DNS by default (10.0.0.10 of 10.0.0.0/16); '' for no
 * range, as of a cluster that is only to be taken away and of which nobody knows more.
 */
export function dnsServiceIP(services: string): string {
  return ipv4Range(services) ? nthAddress(services, 10) : '';
}
