import type { CloudProfile } from '../operator/api/cloudprofile.ts';
import { configurationProblem } from '../operator/api/errors.ts';

/** Loopback hosts, to which plain http exposes no credentials. */
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/**
 * Service endpoints of a profile (`spec.providerConfig.endpoints`, service → URL), for private endpoints, sovereign
 * clouds or stand-ins. URLs have no final slash; other services use the cloud's default. Throws
 * ERR_CONFIGURATION_PROBLEM for an invalid map.
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

/** Refuses plain http over a network, because the account's keys are sent there. */
function safeURL(value: unknown, what: string): string {
  const url = typeof value === 'string' ? URL.parse(value) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '' || url.hash !== '')
    throw configurationProblem(`${what} is no URL of a service`, 'Write https://host[:port][/path].');
  if (url.protocol === 'http:' && !LOOPBACK.test(url.hostname))
    throw configurationProblem(`${what} is http, by which everybody on the way sees the credentials`, 'Write https.');
  return url.href.replace(/\/+$/, '');
}
