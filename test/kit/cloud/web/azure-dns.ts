import type { RecordSet, RecordType } from '../../../../providers/dns.ts';
import { isAt, isTaken, saveZones, withEtag, zonesOf } from '../dns.ts';
import type { Store } from '../store.ts';
import { type Asked, FlatRefusal, Refused, type Said } from './server.ts';

const LIST = /^\/subscriptions\/([^/]+)\/providers\/Microsoft\.Network\/(dnsZones|privateDnsZones)$/i;
const RECORD =
  /^(\/subscriptions\/[^/]+\/resourceGroups\/[^/]+\/providers\/Microsoft\.Network\/(dnsZones|privateDnsZones)\/[^/]+)\/(A|AAAA|CNAME|TXT)\/([^/]+)$/i;

const TEXTS =
  /^(\/subscriptions\/[^/]+\/resourceGroups\/[^/]+\/providers\/Microsoft\.Network\/(?:dnsZones|privateDnsZones)\/[^/]+)\/TXT$/i;

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

/** One a page, so that pages are met with. */
function page<T>(url: URL, all: readonly T[]): Said {
  const from = Number(url.searchParams.get('$skipToken') ?? 0);
  const next = new URL(url);
  next.searchParams.set('$skipToken', String(from + 1));
  return { body: { value: all.slice(from, from + 1), ...(from + 1 < all.length && { nextLink: next.href }) } };
}

const isSame = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

/**
 * Azure DNS' zones and record sets, public and private; undefined: the request is for another service. Texts and statuses of conflicts:
 * kubernetes-sigs/external-dns issue 5358, rcl-letsencrypt-auto-ssl/Lets-Encrypt-Auto issue 26.
 */
export function azureDNS({ method, url, headers, body }: Asked, account: string, store: Store): Said | undefined {
  const path = decodeURIComponent(url.pathname);
  const zones = zonesOf(store, account);
  const [, subscription, kind] = LIST.exec(path) ?? [];
  if (subscription !== undefined) {
    const of = subscription === account ? zones.filter(({ id }) => isSame(id.split('/').at(-2)!, kind!)) : [];
    return page(
      url,
      of.map(({ id, domain }) => ({ id, name: domain, location: 'global' })),
    );
  }
  const [, texts = ''] = TEXTS.exec(path) ?? [];
  const of = zones.find(({ id }) => isSame(id, texts));
  if (of) {
    const value = of.records
      .filter(({ type }) => type === 'TXT')
      .map((one) => ({
        name: one.name === of.domain ? '@' : one.name.slice(0, -of.domain.length - 1),
        etag: one.etag,
        properties: shown(one, of.private),
      }));
    return page(url, value);
  }
  const [, id, , type, relative] = RECORD.exec(path) ?? [];
  if (id === undefined) return undefined;
  const zone = zones.find((one) => isSame(one.id, id));
  // What is above is Resource Manager's to say.
  if (!zone) throw new Refused(404, 'ParentResourceNotFound', `Parent resource '${id}' not found.`);
  const name = relative === '@' ? zone.domain : `${relative}.${zone.domain}`;
  const at = { name, type: type!.toUpperCase() as RecordType };
  const found = zone.records.find(isAt(at));
  if (method === 'GET') {
    if (!found) throw new FlatRefusal(404, 'NotFound', `The resource record '${relative}' does not exist.`);
    return { body: { id: path, name: relative, etag: found.etag, properties: shown(found, zone.private) } };
  }
  const { 'if-match': match, 'if-none-match': none } = headers;
  if ((none === '*' && found) || (match !== undefined && match !== found?.etag))
    throw new FlatRefusal(412, 'PreconditionFailed', 'The condition in the If-Match header was not satisfied.');
  const others = zone.records.filter((one) => one !== found);
  if (method === 'DELETE') {
    zone.records = others;
    saveZones(store, account, zones);
    return { status: found ? 200 : 204, body: '' };
  }
  const { properties } = JSON.parse(body) as { properties: Record<string, unknown> };
  const record = recordIn(at, properties, zone.private);
  if (isTaken(others, record))
    throw new FlatRefusal(
      409,
      'Conflict',
      record.type === 'CNAME'
        ? 'The CNAME record could not be created because another record with the same name already exists in this zone.'
        : 'The record could not be created because a CNAME record with the same name already exists in this zone.',
    );
  const made = withEtag(record);
  zone.records = [...others, made];
  saveZones(store, account, zones);
  return { status: found ? 200 : 201, body: { id: path, name: relative, etag: made.etag, properties } };
}

/** Of a text, no longer than DNS has them (RFC 1035, 3.3). */
const PIECE = /.{1,255}/gs;

function shown({ type, ttl, values }: RecordSet, isPrivate: boolean): Record<string, unknown> {
  const records = {
    A: () => values.map((ipv4Address) => ({ ipv4Address })),
    AAAA: () => values.map((ipv6Address) => ({ ipv6Address })),
    CNAME: () => ({ cname: values[0] }),
    TXT: () => values.map((value) => ({ value: value.match(PIECE) ?? [''] })),
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
    throw new FlatRefusal(400, 'BadRequest', `The record set ${at.name} has no ttl or no records of type ${at.type}.`);
  const values = [records].flat().map((one) => {
    const { ipv4Address, ipv6Address, cname, value } = one as Record<string, unknown>;
    const pieces = (value ?? []) as string[];
    if (pieces.some((piece) => piece.length > 255))
      throw new FlatRefusal(400, 'BadRequest', `The record set ${at.name} has a text longer than 255 characters.`);
    return String(ipv4Address ?? ipv6Address ?? cname ?? pieces.join(''));
  });
  return { ...at, ttl, values };
}
