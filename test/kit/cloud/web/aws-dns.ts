import { childrenAt, type Element, parseXML, textAt } from '../../../../providers/aws/xml.ts';
import { quoted, unquoted } from '../../../../providers/dns/txt.ts';
import type { RecordType } from '../../../../providers/dns.ts';
import { type FakeRecordSet, type FakeZone, isAt, isTaken, saveZones, withEtag, zonesOf } from '../dns.ts';
import type { Store } from '../store.ts';
import { type Asked, Refused, type Said } from './server.ts';

const ZONE = /^\/2013-04-01\/hostedzone\/([^/]+)\/rrset\/?$/;

export function route53Action({ method, url }: Asked): string {
  if (!ZONE.test(url.pathname)) return 'route53:ListHostedZones';
  return `route53:${method === 'POST' ? 'ChangeResourceRecordSets' : 'ListResourceRecordSets'}`;
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');

const said = (root: string, inner: string): Said => ({
  body: `<?xml version="1.0"?>\n<${root}Response xmlns="https://route53.amazonaws.com/doc/2013-04-01/">${inner}</${root}Response>`,
  headers: { 'content-type': 'text/xml' },
});

/** Route 53's hosted zones and their record sets (service model of route53 in botocore 1.43.11). */
export function route53({ method, url, body }: Asked, account: string, store: Store): Said {
  const zones = zonesOf(store, account);
  const id = ZONE.exec(url.pathname)?.[1];
  if (id === undefined) return listZones(zones, url);
  const zone = zones.find((one) => one.id === id);
  if (!zone) throw new Refused(404, 'NoSuchHostedZone', `No hosted zone found with ID: ${id}`);
  if (method === 'GET') return listRecords(zone, url);
  zone.records = changed(zone, body);
  saveZones(store, account, zones);
  return said(
    'ChangeResourceRecordSets',
    '<ChangeInfo><Id>/change/C1</Id><Status>PENDING</Status><SubmittedAt>2026-11-21T00:00:00Z</SubmittedAt></ChangeInfo>',
  );
}

/** Two a page, so that pages are met with. */
function listZones(zones: FakeZone[], url: URL): Said {
  const start = Number(url.searchParams.get('marker') ?? 0);
  const shown = zones
    .slice(start, start + 2)
    .map(
      (zone) =>
        `<HostedZone><Id>/hostedzone/${zone.id}</Id><Name>${zone.domain}.</Name><Config><PrivateZone>${zone.private}</PrivateZone></Config></HostedZone>`,
    );
  const more = start + 2 < zones.length;
  const next = more ? `<NextMarker>${start + 2}</NextMarker>` : '';
  return said(
    'ListHostedZones',
    `<HostedZones>${shown.join('')}</HostedZones><IsTruncated>${more}</IsTruncated>${next}<MaxItems>2</MaxItems>`,
  );
}

/** More than records of one name, fewer than of a zone. */
const PAGE = 5;

/** Labels in reverse, by which Route 53 orders names. */
const rank = (name: string): string => name.split('.').reverse().join('.');

function listRecords({ records }: FakeZone, url: URL): Said {
  const from = rank((url.searchParams.get('name') ?? '').replace(/\.$/, ''));
  // A real page has 300 at most; few, so that pages are met with.
  const most = Math.min(PAGE, Number(url.searchParams.get('maxitems') ?? 300));
  const type = url.searchParams.get('type') ?? '';
  const sorted = records
    .map((record) => ({ record, place: `${rank(record.name)} ${record.type}` }))
    .filter(({ place }) => place >= `${from} ${type}`)
    .sort((a, b) => (a.place < b.place ? -1 : 1))
    .map(({ record }) => record);
  const next = sorted[most];
  const shown = sorted.slice(0, most).map(({ name, type, ttl, values, setIdentifier }) => {
    const data = values.map((value) => {
      const text = type === 'TXT' ? quoted(value) : value;
      return `<ResourceRecord><Value>${escaped(text)}</Value></ResourceRecord>`;
    });
    const identifier = setIdentifier ? `<SetIdentifier>${setIdentifier}</SetIdentifier><Weight>1</Weight>` : '';
    return `<ResourceRecordSet><Name>${name.replace('*', '\\052')}.</Name><Type>${type}</Type>${identifier}<TTL>${ttl}</TTL><ResourceRecords>${data.join('')}</ResourceRecords></ResourceRecordSet>`;
  });
  return said(
    'ListResourceRecordSets',
    `<ResourceRecordSets>${shown.join('')}</ResourceRecordSets>${next ? `<IsTruncated>true</IsTruncated><NextRecordName>${next.name}.</NextRecordName><NextRecordType>${next.type}</NextRecordType>` : '<IsTruncated>false</IsTruncated>'}<MaxItems>${most}</MaxItems>`,
  );
}

const refused = (message: string): Refused => new Refused(400, 'InvalidChangeBatch', `[${message}]`);

/** All of a batch, or nothing. */
function changed(zone: FakeZone, body: string): FakeRecordSet[] {
  let records = [...zone.records];
  const batch = parseXML(body).ChangeResourceRecordSetsRequest;
  for (const change of childrenAt(batch, 'Change', 'ChangeBatch', 'Changes')) {
    const record = recordIn((change as Record<string, Element>).ResourceRecordSet!);
    const action = textAt(change, 'Action');
    if (record.name !== zone.domain && !record.name.endsWith(`.${zone.domain}`))
      throw refused(`RRSet with DNS name ${record.name}. is not permitted in zone ${zone.domain}.`);
    if (action === 'CREATE') {
      if (isTaken(records, record)) {
        throw refused(
          `Tried to create resource record set [name='${record.name}.', type='${record.type}'] but it already exists`,
        );
      }
      records.push(withEtag(record));
    } else if (action === 'DELETE') {
      const found = records.find(isAt(record));
      const same = found?.ttl === record.ttl && found.values.join() === record.values.join() && !found.setIdentifier;
      if (!same) {
        throw refused(
          `Tried to delete resource record set [name='${record.name}.', type='${record.type}'] but the values provided do not match the current values`,
        );
      }
      records = records.filter((one) => one !== found);
    } else {
      throw refused(`the fake Route 53 does not know ${action}`);
    }
  }
  return records;
}

function recordIn(element: Element) {
  const type = textAt(element, 'Type') as RecordType;
  const values = childrenAt(element, 'ResourceRecord', 'ResourceRecords').map((one) => textAt(one, 'Value'));
  if (type === 'TXT' && values.some((value) => !/^".*"$/.test(value)))
    throw refused('Value should be enclosed in quotation marks');
  return {
    name: textAt(element, 'Name').replace(/\.$/, ''),
    type,
    ttl: Number(textAt(element, 'TTL')),
    values: values.map((value) => (type === 'TXT' ? unquoted(value) : value)),
  };
}
