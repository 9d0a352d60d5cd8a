import { quoteTxt, unquoteTxt } from '../../../../providers/dns/txt.ts';
import type { RecordSet, RecordType } from '../../../../providers/dns.ts';
import { isAt, isTaken, saveZones, withEtag, zonesOf } from '../dns.ts';
import type { Store } from '../store.ts';
import { type Asked, Refused, type Said } from './server.ts';

const PATH = /^\/dns\/v1\/projects\/([^/]+)\/managedZones(?:\/([^/]+)\/(rrsets|changes))?$/;

/** The permission that a request to Cloud DNS needs; undefined: it is no such request. */
export function cloudDNSAction(method: string, { pathname }: URL): string | undefined {
  const [, , , what] = PATH.exec(pathname) ?? [];
  if (!PATH.test(pathname)) return undefined;
  if (what === undefined) return 'dns.managedZones.list';
  return method === 'POST' ? 'dns.changes.create' : 'dns.resourceRecordSets.list';
}

/** Record sets of one page: few, so that pages are met with. */
const PAGE = 2;

interface Written {
  name: string;
  type: string;
  ttl: number;
  rrdatas: string[];
}

const told = ({ name, type }: RecordSet): string => `${name}. (${type})`;

/**
 * Cloud DNS' managed zones and record sets (discovery document dns/v1); undefined: the request is for another service. Refusals:
 * googleapis/google-cloud-java issue 808, kubernetes-sigs/external-dns issues 3307 and 3885, and LocalDnsHelper of google-cloud-java.
 */
export function cloudDNS({ method, url, body }: Asked, account: string, store: Store): Said | undefined {
  const [, project, id, what] = PATH.exec(url.pathname) ?? [];
  if (project === undefined) return undefined;
  if (project !== account) throw new Refused(403, 'forbidden', 'The caller does not have permission');
  const zones = zonesOf(store, account);
  if (id === undefined) {
    // One a page, so that pages are met with.
    const start = Number(url.searchParams.get('pageToken') ?? 0);
    const managedZones = zones
      .slice(start, start + 1)
      .map((zone) => ({ name: zone.id, dnsName: `${zone.domain}.`, visibility: zone.private ? 'private' : 'public' }));
    return { body: { managedZones, ...(start + 1 < zones.length && { nextPageToken: String(start + 1) }) } };
  }
  const zone = zones.find((one) => one.id === id);
  if (!zone) throw new Refused(404, 'notFound', `The 'parameters.managedZone' resource named '${id}' does not exist.`);
  if (what === 'rrsets' && method === 'GET') {
    const name = url.searchParams.get('name')?.replace(/\.$/, '');
    if (name !== undefined) return { body: { rrsets: zone.records.filter((one) => one.name === name).map(written) } };
    const from = Number(url.searchParams.get('pageToken') ?? 0);
    const rrsets = zone.records.slice(from, from + PAGE).map(written);
    return { body: { rrsets, ...(from + PAGE < zone.records.length && { nextPageToken: String(from + PAGE) }) } };
  }
  const { additions = [], deletions = [] } = JSON.parse(body) as { additions?: Written[]; deletions?: Written[] };
  let records = zone.records;
  for (const [index, deletion] of deletions.map(recordOf).entries()) {
    const found = records.find(isAt(deletion));
    const place = `'entity.change.deletions[${index}]'`;
    if (!found) throw new Refused(404, 'notFound', `The ${place} resource named '${told(deletion)}' does not exist.`);
    if (found.ttl !== deletion.ttl || found.values.join() !== deletion.values.join())
      throw new Refused(412, 'conditionNotMet', `Precondition not met for ${place}`);
    records = records.filter((one) => one !== found);
  }
  for (const [index, addition] of additions.map(recordOf).entries()) {
    const place = `'entity.change.additions[${index}]'`;
    if (records.some(isAt(addition)))
      throw new Refused(409, 'alreadyExists', `The resource ${place} named '${told(addition)}' already exists`);
    if (isTaken(records, addition))
      throw new Refused(
        400,
        'cnameResourceRecordSetConflict',
        `The resource record set ${place} is invalid because the DNS name '${addition.name}.' may have either one CNAME resource record set or resource record sets of other types, but not both.`,
      );
    records = [...records, withEtag(addition)];
  }
  zone.records = records;
  saveZones(store, account, zones);
  return { body: { kind: 'dns#change', id: '1', status: 'pending', additions, deletions } };
}

const written = ({ name, type, ttl, values }: RecordSet): Written => ({
  name: `${name}.`,
  type,
  ttl,
  rrdatas: values.map((value) => (type === 'TXT' ? quoteTxt(value) : type === 'CNAME' ? `${value}.` : value)),
});

function recordOf({ name, type, ttl, rrdatas }: Written): RecordSet {
  const isAbsolute = (text: string) => text.endsWith('.');
  if (!isAbsolute(name) || (type === 'CNAME' && !rrdatas.every(isAbsolute)))
    throw new Refused(400, 'invalid', `Invalid value for 'entity.change.additions[0].name': '${name}'`);
  return {
    name: name.slice(0, -1),
    type: type as RecordType,
    ttl,
    values: rrdatas.map((value) =>
      type === 'TXT' ? unquoteTxt(value) : type === 'CNAME' ? value.slice(0, -1) : value,
    ),
  };
}
