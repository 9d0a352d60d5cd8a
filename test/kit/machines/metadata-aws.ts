import { createHash } from 'node:crypto';
import type { LaunchedInstance } from '../cloud/index.ts';
import type { Metadata, MetadataAnswer } from './metadata.ts';

/** Of an instance, by path; a path that others begin with is a list. */
function metadataOf(instance: LaunchedInstance): Record<string, string> {
  const hostname = `ip-${instance.address.replaceAll('.', '-')}.${instance.region}.compute.internal`;
  return {
    'ami-id': instance.image,
    hostname,
    'instance-id': instance.id,
    'instance-type': instance.machineType,
    'local-hostname': hostname,
    'local-ipv4': instance.address,
    'placement/availability-zone': instance.zone,
    'placement/region': instance.region,
  };
}

/** What is at a path of `meta-data/`: a value, or the names below it. */
function valueAt(values: Record<string, string>, path: string): string | undefined {
  const known = values[path];
  if (known !== undefined) return known;
  const prefix = path === '' || path.endsWith('/') ? path : `${path}/`;
  const below = Object.keys(values).flatMap((key) => (key.startsWith(prefix) ? [key.slice(prefix.length)] : []));
  const names = below.map((rest) => (rest.includes('/') ? `${rest.split('/')[0]}/` : rest));
  return names.length > 0 ? [...new Set(names)].join('\n') : undefined;
}

const say = (status: number, body: string): MetadataAnswer => ({ status, body });

/**
 * EC2's instance metadata service, version 2 alone as our launch templates demand it: no word without a token (Amazon EC2 user guide,
 * "Use the Instance Metadata Service").
 */
export const ec2Metadata: Metadata = ({ method, url: { pathname }, headers }, instance) => {
  const token = createHash('sha256').update(`token of ${instance.id}`).digest('base64url');
  if (method === 'PUT' && pathname === '/latest/api/token') {
    const isAsked = headers['x-aws-ec2-metadata-token-ttl-seconds'] !== undefined;
    return isAsked ? say(200, token) : say(400, 'a token for how long?');
  }
  if (headers['x-aws-ec2-metadata-token'] !== token) return say(401, 'a token is needed');
  const [, , category = '', ...rest] = pathname.split('/');
  if (category === 'user-data') {
    const body = Buffer.from(instance.attributes['user-data'] ?? '', 'base64');
    return { status: 200, body, headers: { 'content-type': 'application/octet-stream' } };
  }
  if (category === 'dynamic') {
    if (rest.at(-1) !== 'document') return say(200, rest.length > 1 ? 'document' : 'instance-identity/');
    const { id: instanceId, region, zone: availabilityZone, address: privateIp, machineType: instanceType } = instance;
    return say(200, JSON.stringify({ instanceId, region, availabilityZone, privateIp, instanceType }));
  }
  const value = category === 'meta-data' ? valueAt(metadataOf(instance), rest.join('/')) : undefined;
  return value === undefined ? say(404, 'not found') : say(200, value);
};
