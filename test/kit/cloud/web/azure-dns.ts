import type { RecordSet, RecordType } from '../../../../providers/dns.ts';
import { isAt, isTaken, saveZones, withEtag, zonesOf } from '../dns.ts';
import type { Store } from '../store.ts';
import { type Asked, Refused, type Said } from './server.ts';

const LIST = /^\/subscriptions\/([^/]+)\/providers\/Microsoft\.Network\/(dnsZones|privateDnsZones)$/;
const RECORD =
  /^(\/subscriptions\/[^/]+\/resourceGroups\/[^/]+\/providers\/Microsoft\.Network\/(dnsZones|privateDnsZones)\/[^/]+)\/(A|AAAA|CNAME|TXT)\/([^/]+)$/;

const TEXTS =
  /^(\/subscriptions\/[^/]+\/resourceGroups\/[^/]+\/providers\/Microsoft\.Network\/(?:dnsZones|privateDnsZones)\/[^/]+)\/TXT$/;

/** The operation that a request to Azure DNS is, as roles name it; undefined: it is no such request. */
export function azureDNSAction(method: string, { pathname }: URL): string | undefined {
  const path = decodeURIComponent(pathname);
  const [, , kind] = LIST.exec(path) ?? [];
  if (kind !== undefined) return `Microsoft.Network/${kind}/read`;
  if (TEXTS.test(path)) return 'Microsoft.Network/dnsZones/TXT/read';
  const [, , zones, type] = RECORD.exec(path) ?? [];
  if (zones === undefined) return undefined;
  const what = { GET: 'read', PUT: 'write', DELETE: 'delete' }[method] ?? method;
  return `Microsoft.Network/${zones}/${type}/${what}`;
}

const LISTS = { A: 'ARecords', AAAA: 'AAAARecords', CNAME: 'CNAMERecord', TXT: 'TXTRecords' } as const;
/** privatedns writes them with small letters first. */
const keyOf = (type: RecordType, isPrivate: boolean): string =>
  isPrivate ? LISTS[type].replace(type, type.toLowerCase()) : LISTS[type];

/** Azure DNS' zones and record sets, public and private; undefined: the request is for another service. */
export function azureDNS({ method, url, headers, body }: Asked, account: string, store: Store): Said | undefined {
  const path = decodeURIComponent(url.pathname);
  const zones = zonesOf(store, account);
  const [, subscription, kind] = LIST.exec(path) ?? [];
  if (subscription !== undefined) {
    const value = subscription === account ? zones.filter(({ id }) => id.includes(`/${kind}/`)) : [];
    return { body: { value: value.map(({ id, domain }) => ({ id, name: domain, location: 'global' })) } };
  }
  const [, texts] = TEXTS.exec(path) ?? [];
  const of = zones.find((one) => one.id === texts);
  if (of) {
    // One a page, so that pages are met with.
    const from = Number(url.searchParams.get('$skiptoken') ?? 0);
    const all = of.records.filter(({ type }) => type === 'TXT');
    const value = all.slice(from, from + 1).map((one) => ({
      name: one.name === of.domain ? '@' : one.name.slice(0, -of.domain.length - 1),
      etag: one.etag,
      properties: shown(one, of.private),
    }));
    const next = new URL(url);
    next.searchParams.set('$skiptoken', String(from + 1));
    return { body: { value, ...(from + 1 < all.length && { nextLink: next.href }) } };
  }
  const [, id, , type, relative] = RECORD.exec(path) ?? [];
  if (id === undefined) return undefined;
  const zone = zones.find((one) => one.id === id);
  if (!zone) throw new Refused(404, 'ResourceNotFound', `The Resource '${id}' was not found.`);
  const name = relative === '@' ? zone.domain : `${relative}.${zone.domain}`;
  const at = { name, type: type as RecordType };
  const found = zone.records.find(isAt(at));
  if (method === 'GET') {
    if (!found) throw new Refused(404, 'NotFound', `The resource record '${relative}' does not exist.`);
    return { body: { id: path, name: relative, etag: found.etag, properties: shown(found, zone.private) } };
  }
  const { 'if-match': match, 'if-none-match': none } = headers;
  if ((none === '*' && found) || (match !== undefined && match !== found?.etag))
    throw new Refused(412, 'PreconditionFailed', 'The condition in the If-Match header was not met.');
  const others = zone.records.filter((one) => one !== found);
  if (method === 'DELETE') {
    zone.records = others;
    saveZones(store, account, zones);
    return { status: found ? 200 : 204, body: '' };
  }
  const { properties } = JSON.parse(body) as { properties: Record<string, unknown> };
  const record = recordIn(at, properties, zone.private);
  if (isTaken(others, record))
    throw new Refused(
      400,
      'BadRequest',
      `The record could not be created because a CNAME record exists or is in the way.`,
    );
  zone.records = [...others, withEtag(record)];
  saveZones(store, account, zones);
  return { status: found ? 200 : 201, body: { id: path, name: relative, properties } };
}

function shown({ type, ttl, values }: RecordSet, isPrivate: boolean): Record<string, unknown> {
  const records = {
    A: () => values.map((ipv4Address) => ({ ipv4Address })),
    AAAA: () => values.map((ipv6Address) => ({ ipv6Address })),
    CNAME: () => ({ cname: values[0] }),
    TXT: () => values.map((value) => ({ value: [value] })),
  }[type]();
  return { [isPrivate ? 'ttl' : 'TTL']: ttl, [keyOf(type, isPrivate)]: records };
}

function recordIn(
  at: Pick<RecordSet, 'name' | 'type'>,
  properties: Record<string, unknown>,
  isPrivate: boolean,
): RecordSet {
  const ttl = properties[isPrivate ? 'ttl' : 'TTL'];
  const records = properties[keyOf(at.type, isPrivate)];
  if (typeof ttl !== 'number' || records === undefined)
    throw new Refused(400, 'BadRequest', `The record set ${at.name} has no ttl or no records of type ${at.type}.`);
  const values = [records].flat().map((one) => {
    const { ipv4Address, ipv6Address, cname, value } = one as Record<string, unknown>;
    return String(ipv4Address ?? ipv6Address ?? cname ?? (value as string[]).join(''));
  });
  return { ...at, ttl, values };
}
