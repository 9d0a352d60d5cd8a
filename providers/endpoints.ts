import type { CloudProfile } from '../operator/api/cloudprofile.ts';
import { configurationProblem } from '../operator/api/errors.ts';

/** Hosts of this machine, to which a request without TLS shows its credentials to nobody. */
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/**
 * Where the profile says that services of its cloud are (`spec.providerConfig.endpoints`, service → URL): private endpoints, a
 * sovereign cloud, or something that stands in for the cloud. URLs come without a slash at the end; services that are not
 * named are where the cloud has them. Throws ERR_CONFIGURATION_PROBLEM for what is no such map.
 */
export function endpointsOf<Service extends string>(
  { metadata, spec }: CloudProfile,
  services: readonly Service[],
): Partial<Record<Service, string>> {
  const given = spec?.providerConfig?.endpoints;
  if (given === undefined) return {};
  const where = `spec.providerConfig.endpoints of CloudProfile ${metadata.name}`;
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw configurationProblem(`${where} is no map`, `Write service: URL, for any of ${services.join(', ')}.`);
  const endpoints: Partial<Record<Service, string>> = {};
  for (const [name, url] of Object.entries(given)) {
    const service = services.find((known) => known === name);
    if (service === undefined)
      throw configurationProblem(`${where} names ${name}`, `The services are ${services.join(', ')}.`);
    endpoints[service] = safeURL(url, `${where}: ${name}`);
  }
  return endpoints;
}

/** The account's keys go there: never in the clear over a network. */
function safeURL(value: unknown, what: string): string {
  const url = typeof value === 'string' ? URL.parse(value) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '' || url.hash !== '')
    throw configurationProblem(`${what} is no URL of a service`, 'Write https://host[:port][/path].');
  if (url.protocol === 'http:' && !LOOPBACK.test(url.hostname))
    throw configurationProblem(`${what} is http, by which everybody on the way sees the credentials`, 'Write https.');
  return url.href.replace(/\/+$/, '');
}
