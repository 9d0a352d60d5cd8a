import { quoted, unquoted } from '../../../../providers/dns/txt.ts';
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

/** Cloud DNS' managed zones and record sets (discovery document dns/v1); undefined: the request is for another service. */
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
  for (const deletion of deletions.map(recordOf)) {
    const found = records.find(isAt(deletion));
    if (found?.ttl !== deletion.ttl || found.values.join() !== deletion.values.join()) {
      const message = `Precondition not met for 'entity.change.deletions[0]'`;
      throw new Refused(412, 'conditionNotMet', message);
    }
    records = records.filter((one) => one !== found);
  }
  for (const addition of additions.map(recordOf)) {
    if (isTaken(records, addition)) {
      const named = `${addition.name}. (${addition.type})`;
      throw new Refused(409, 'alreadyExists', `The resource 'entity.change.additions[${named}]' already exists`);
    }
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
  rrdatas: values.map((value) => (type === 'TXT' ? quoted(value) : type === 'CNAME' ? `${value}.` : value)),
});

function recordOf({ name, type, ttl, rrdatas }: Written): RecordSet {
  const isAbsolute = (text: string) => text.endsWith('.');
  if (!isAbsolute(name) || (type === 'CNAME' && !rrdatas.every(isAbsolute)))
    throw new Refused(400, 'invalid', `Invalid value for 'entity.change.additions[0].name': '${name}'`);
  return {
    name: name.slice(0, -1),
    type: type as RecordType,
    ttl,
    values: rrdatas.map((value) => (type === 'TXT' ? unquoted(value) : type === 'CNAME' ? value.slice(0, -1) : value)),
  };
}
