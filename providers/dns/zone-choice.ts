import { configurationProblem } from '../../operator/api/errors.ts';
import type { DNSZone, ZoneChoice } from '../dns.ts';

const isCalled = (zone: DNSZone, names: readonly string[]): boolean =>
  names.some((name) => [zone.id, ...(zone.alsoKnownAs ?? [])].some((own) => own.toLowerCase() === name.toLowerCase()));

/**
 * Selects the zone for a domain: pure. The longest matching suffix, as resolvers do; the public one of a public and a
 * private zone of one domain. Throws ERR_CONFIGURATION_PROBLEM when several remain.
 */
export function chooseZone(
  zones: readonly DNSZone[],
  domain: string,
  { visibility, include = [], exclude = [] }: ZoneChoice = {},
): DNSZone | undefined {
  const fitting = zones
    .filter((zone) => domain === zone.domain || domain.endsWith(`.${zone.domain}`))
    .filter((zone) => visibility === undefined || zone.private === (visibility === 'Private'))
    .filter((zone) => include.length === 0 || isCalled(zone, include))
    .filter((zone) => !isCalled(zone, exclude))
    .sort((a, b) => b.domain.length - a.domain.length || Number(a.private) - Number(b.private));
  const [first, ...rest] = fitting;
  const equals = rest.filter((zone) => zone.domain === first!.domain && zone.private === first!.private);
  if (equals.length === 0) return first;
  throw configurationProblem(
    `several ${first!.private ? 'private' : 'public'} zones have the domain ${first!.domain}: ${[first!, ...equals].map(({ id }) => id).join(', ')}`,
    'Name the right one in zones.include of the DNS provider.',
  );
}
