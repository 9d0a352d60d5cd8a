import { childrenAt, type Element, parseXML, textAt } from '../../../../providers/aws/xml.ts';
import { quoteTxt, unquoteTxt } from '../../../../providers/dns/txt.ts';
import type { RecordSet, RecordType } from '../../../../providers/dns.ts';
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
      const text = type === 'TXT' ? quoteTxt(value) : value;
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

/** A batch that cannot be made: what Route 53 says of each change that is in the way. */
export class RefusedBatch extends Refused {
  readonly messages: readonly string[];

  constructor(messages: readonly string[]) {
    super(400, 'InvalidChangeBatch', messages.join('; '));
    this.messages = messages;
  }
}

/** As the API reference has it ("InvalidChangeBatch"): no Error, no Code, but a message for each change. */
export const saidOfBatch = ({ status, messages }: RefusedBatch): Said => ({
  status,
  body: `<?xml version="1.0" encoding="UTF-8"?>\n<InvalidChangeBatch xmlns="https://route53.amazonaws.com/doc/2013-04-01/"><Messages>${messages
    .map((message) => `<Message>${escaped(message)}</Message>`)
    .join('')}</Messages><RequestId>0</RequestId></InvalidChangeBatch>`,
  headers: { 'content-type': 'text/xml' },
});

/** Texts: aws/aws-sdk-java issue 1996, boto/boto3 issue 1475. */
const inTheWay = ({ name, type }: RecordSet, { domain }: FakeZone): string =>
  type === 'CNAME'
    ? `RRSet of type CNAME with DNS name ${name}. is not permitted as it conflicts with other records with the same DNS name in zone ${domain}.`
    : `RRSet of type ${type} with DNS name ${name}. is not permitted because a conflicting RRSet of type CNAME with the same DNS name already exists in zone ${domain}.`;

/** All of a batch, or nothing. */
function changed(zone: FakeZone, body: string): FakeRecordSet[] {
  let records = [...zone.records];
  const problems: string[] = [];
  const batch = parseXML(body).ChangeResourceRecordSetsRequest;
  for (const change of childrenAt(batch, 'Change', 'ChangeBatch', 'Changes')) {
    const record = recordIn((change as Record<string, Element>).ResourceRecordSet!, problems);
    const action = textAt(change, 'Action');
    const named = `resource record set [name='${record.name}.', type='${record.type}']`;
    if (record.name !== zone.domain && !record.name.endsWith(`.${zone.domain}`)) {
      problems.push(`RRSet with DNS name ${record.name}. is not permitted in zone ${zone.domain}.`);
    } else if (action === 'CREATE') {
      if (records.some(isAt(record))) problems.push(`Tried to create ${named} but it already exists`);
      else if (isTaken(records, record)) problems.push(inTheWay(record, zone));
      records.push(withEtag(record));
    } else if (action === 'DELETE') {
      const found = records.find(isAt(record));
      const same = found?.ttl === record.ttl && found.values.join() === record.values.join() && !found.setIdentifier;
      if (!found) problems.push(`Tried to delete ${named} but it was not found`);
      else if (!same) problems.push(`Tried to delete ${named} but the values provided do not match the current values`);
      records = records.filter((one) => one !== found);
    } else {
      problems.push(`the fake Route 53 does not know ${action}`);
    }
  }
  if (problems.length > 0) throw new RefusedBatch(problems);
  return records;
}

function recordIn(element: Element, problems: string[]) {
  const type = textAt(element, 'Type') as RecordType;
  const values = childrenAt(element, 'ResourceRecord', 'ResourceRecords').map((one) => textAt(one, 'Value'));
  if (type === 'TXT' && values.some((value) => !/^".*"$/.test(value)))
    problems.push('Invalid Resource Record: Value should be enclosed in quotation marks');
  return {
    name: textAt(element, 'Name').replace(/\.$/, ''),
    type,
    ttl: Number(textAt(element, 'TTL')),
    values: values.map((value) => (type === 'TXT' ? unquoteTxt(value) : value)),
  };
}
