import { CoppiceError, dependencyNotReady } from '../../operator/api/errors.ts';
import { plainName } from '../dns/names.ts';
import type { RecordChange, SeenRecordSet } from '../dns/plan.ts';
import type { DNSZonesClient } from '../dns/records.ts';
import { quoteTxt, unquoteTxt } from '../dns/txt.ts';
import type { DNSContext, DNSZone, RecordType } from '../dns.ts';
import { eachPage } from '../pages.ts';
import { type AwsConnection, askXml, awsCodeOf, awsMessageOf } from './api.ts';
import { childrenAt, type Element, textAt } from './xml.ts';

const VERSION = '2013-04-01';
const TYPES: readonly string[] = ['A', 'AAAA', 'CNAME', 'TXT'] satisfies RecordType[];

/** Routing policies read per name: more than anybody has. */
const MOST_AT_A_NAME = 100;

/** Route 53. A request's changes are atomic; a deleted record must equal its last observed state. */
export function route53(connect: (ctx: Omit<DNSContext, 'owner'>) => Promise<AwsConnection>): DNSZonesClient {
  return {
    async zones(ctx) {
      const aws = await connect(ctx);
      const found: DNSZone[] = [];
      await eachPage('zones of Route 53', async (marker) => {
        const query = new URLSearchParams({ maxitems: '100', ...(marker && { marker }) });
        const answer = await askXml(aws, 'ListHostedZones', { path: `/${VERSION}/hostedzone?${query}` });
        found.push(...childrenAt(answer, 'HostedZone', 'HostedZones').map(zoneIn));
        return textAt(answer, 'IsTruncated') === 'true' ? textAt(answer, 'NextMarker') : undefined;
      });
      return found;
    },

    async recordsAt(ctx, zone, names) {
      const aws = await connect(ctx);
      const found = await Promise.all(names.map((name) => setsFrom(aws, zone, name)));
      return found.flat();
    },

    async texts(ctx, zone) {
      const aws = await connect(ctx);
      const found: SeenRecordSet[] = [];
      await eachPage<Record<string, string>>(`records of zone ${zone.domain}`, async (from) => {
        const path = `/${VERSION}/hostedzone/${zone.id}/rrset?${new URLSearchParams({ maxitems: '300', ...from })}`;
        const answer = await askXml(aws, 'ListResourceRecordSets', { path });
        found.push(...setsIn(answer).filter(({ type }) => type === 'TXT'));
        return textAt(answer, 'IsTruncated') === 'true' ? nextOf(answer) : undefined;
      });
      return found;
    },

    async change(ctx, zone, changes) {
      const aws = await connect(ctx);
      try {
        await askXml(aws, 'ChangeResourceRecordSets', {
          method: 'POST',
          path: `/${VERSION}/hostedzone/${zone.id}/rrset/`,
          body: changeRequest(changes),
        });
      } catch (error) {
        throw awsCodeOf(error) === 'InvalidChangeBatch' ? refusedBatch(zone, awsMessageOf(error), error) : error;
      }
    },
  };
}

function zoneIn(zone: Element): DNSZone {
  return {
    // Format `/hostedzone/Z123`.
    id: textAt(zone, 'Id').split('/').at(-1)!,
    domain: plainName(unescaped(textAt(zone, 'Name'))),
    private: textAt(zone, 'Config', 'PrivateZone') === 'true',
  };
}

/** Route 53 lists record sets from a name on in the order of reversed labels, those of the name itself first. */
async function setsFrom(aws: AwsConnection, zone: DNSZone, name: string): Promise<SeenRecordSet[]> {
  const query = new URLSearchParams({ name: `${name}.`, maxitems: String(MOST_AT_A_NAME) });
  const path = `/${VERSION}/hostedzone/${zone.id}/rrset?${query}`;
  const answer = await askXml(aws, 'ListResourceRecordSets', { path });
  return setsIn(answer).filter((set) => set.name === name && TYPES.includes(set.type));
}

const setsIn = (answer: Element): SeenRecordSet[] =>
  childrenAt(answer, 'ResourceRecordSet', 'ResourceRecordSets').map(setIn);

/** Start of the next page. */
const nextOf = (answer: Element): Record<string, string> => {
  const identifier = textAt(answer, 'NextRecordIdentifier');
  return {
    name: textAt(answer, 'NextRecordName'),
    type: textAt(answer, 'NextRecordType'),
    ...(identifier && { identifier }),
  };
};

function setIn(set: Element): SeenRecordSet {
  const type = textAt(set, 'Type') as RecordType;
  const values = childrenAt(set, 'ResourceRecord', 'ResourceRecords').map((record) => textAt(record, 'Value'));
  return {
    name: plainName(unescaped(textAt(set, 'Name'))),
    type,
    ttl: Number(textAt(set, 'TTL')),
    values: values.map((value) => (type === 'TXT' ? unquoteTxt(value) : type === 'CNAME' ? plainName(value) : value)),
    raw: values,
    // Coppice leaves alone: aliases (no records), routing policies (SetIdentifier) and health checks (HealthCheckId).
    ...((values.length === 0 || textAt(set, 'SetIdentifier') || textAt(set, 'HealthCheckId')) && { special: true }),
  };
}

/** Decodes octal escapes: `*` is `\052` (Route 53 developer guide, "DNS domain name format"). */
const unescaped = (name: string): string =>
  name.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** Route 53's message when a record differs from its observed state: a concurrent change. */
const OVERTAKEN = /it already exists|was not found|do not match the current values/;
/** ... when another record at the name conflicts, for example with a CNAME. */
const IN_THE_WAY = /conflicts with other records|because a conflicting RRSet/;

/** Error for a batch that Route 53 refused as a whole, with a message per failed change. */
function refusedBatch({ domain }: DNSZone, said: string, cause: unknown): CoppiceError {
  if (OVERTAKEN.test(said))
    return dependencyNotReady(`records of zone ${domain} were changed by somebody else meanwhile: ${said}`, cause);
  const code = IN_THE_WAY.test(said) ? 'ERR_INFRA_DEPENDENCIES' : 'ERR_CONFIGURATION_PROBLEM';
  return new CoppiceError(code, `Route 53 refuses the records in zone ${domain}: ${said}`, { cause });
}

/** Never UPSERT, which would overwrite concurrent changes. */
const changeRequest = (changes: readonly RecordChange[]): string =>
  [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<ChangeResourceRecordSetsRequest xmlns="https://route53.amazonaws.com/doc/${VERSION}/"><ChangeBatch><Changes>`,
    ...changes.flatMap(({ before, after }) => [
      ...(before ? [changeOf('DELETE', before)] : []),
      ...(after ? [changeOf('CREATE', after)] : []),
    ]),
    '</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>',
  ].join('');

function changeOf(action: 'CREATE' | 'DELETE', { name, type, ttl, values, raw }: SeenRecordSet): string {
  const records = (raw ?? values.map((value) => (type === 'TXT' ? quoteTxt(value) : value))).map(
    (value) => `<ResourceRecord><Value>${escaped(value)}</Value></ResourceRecord>`,
  );
  return `<Change><Action>${action}</Action><ResourceRecordSet><Name>${escaped(name)}.</Name><Type>${type}</Type><TTL>${ttl}</TTL><ResourceRecords>${records.join('')}</ResourceRecords></ResourceRecordSet></Change>`;
}
