import { decimals } from '../cloud/digits.ts';
import type { LaunchedInstance } from '../cloud/index.ts';
import type { Metadata, MetadataAnswer } from './metadata.ts';

/** A folder of values, or of folders. */
interface Folder {
  [name: string]: string | Folder;
}

/** What there is below `/computeMetadata/v1/`, as far as it is said here (cloud.google.com/compute/docs/metadata/predefined-metadata-keys). */
function metadataOf(instance: LaunchedInstance, mtu: number): Folder {
  const { id, name, zone, account, attributes } = instance;
  const number = decimals(12, account);
  return {
    instance: {
      attributes: { ...attributes },
      // With zonal names, which new projects have.
      hostname: `${name}.${zone}.c.${account}.internal`,
      id,
      image: instance.image,
      'machine-type': `projects/${number}/machineTypes/${instance.machineType}`,
      name,
      'network-interfaces': { 0: { ip: instance.address, mtu: `${mtu}` } },
      zone: `projects/${number}/zones/${zone}`,
    },
    project: { attributes: {}, 'numeric-project-id': number, 'project-id': account },
  };
}

const HEADERS = { 'metadata-flavor': 'Google', server: 'Metadata Server for VM' };
const say = (status: number, body: string, headers: Record<string, string> = {}): MetadataAnswer => ({
  status,
  body,
  headers: { ...HEADERS, ...headers },
});

/**
 * Google's metadata server: no word without its header, none to who passes on what others ask, and a folder's path ends in a slash
 * (cloud.google.com/compute/docs/metadata/querying-metadata).
 * @param mtu of the network, bytes
 */
export const googleMetadata =
  (mtu: number): Metadata =>
  ({ method, url, headers }, instance) => {
    if (headers['metadata-flavor'] !== 'Google' || headers['x-forwarded-for'] !== undefined)
      return say(403, `Missing Metadata-Flavor:Google header.`);
    // Guest attributes, which nobody has asked for.
    if (method !== 'GET') return say(405, 'Method Not Allowed');
    const [, api, version, ...path] = url.pathname.split('/');
    if (api !== 'computeMetadata' || version !== 'v1') return say(404, 'Not Found');
    let found: string | Folder | undefined = metadataOf(instance, mtu);
    for (const name of path.filter((one) => one !== ''))
      found = typeof found === 'object' && Object.hasOwn(found, name) ? found[name] : undefined;
    if (found === undefined) return say(404, 'Not Found');
    if (typeof found === 'string') return say(200, found, { 'content-type': 'application/text' });
    if (path.at(-1) !== '') return say(301, '', { location: `${url.pathname}/${url.search}` });
    if (url.searchParams.get('recursive')?.toLowerCase() === 'true')
      return say(200, JSON.stringify(found), { 'content-type': 'application/json' });
    const entries = Object.entries(found);
    return say(200, entries.map(([name, one]) => `${name}${typeof one === 'string' ? '' : '/'}\n`).join(''));
  };
