import { plainName } from '../dns/names.ts';
import type { RecordChange, SeenRecordSet } from '../dns/plan.ts';
import type { DNSZonesClient } from '../dns/records.ts';
import type { DNSContext, DNSZone, RecordSet, RecordType } from '../dns.ts';
import { allPages, callAzure, type Endpoints } from './arm.ts';
import { credentialsOf } from './credentials.ts';
import { endpointsAt } from './endpoints.ts';
import { entraToken, managementScope } from './token.ts';

/**
 * Record Sets - Create Or Update: dns 2018-05-01, privatedns 2020-06-01. The latter's property names begin with a
 * lower-case letter.
 */
const KINDS = [
  { type: 'dnsZones', version: '2018-05-01', private: false },
  { type: 'privateDnsZones', version: '2020-06-01', private: true },
] as const;
const TYPES: readonly RecordType[] = ['A', 'AAAA', 'CNAME', 'TXT'];

interface AzureZone {
  id: string;
  name: string;
}
interface AzureRecordSet {
  /** Relative to the zone; in lists. */
  name?: string;
  etag?: string;
  properties?: Record<string, unknown>;
}

const kindOf = (zone: DNSZone) => KINDS.find((kind) => kind.private === zone.private)!;

/** Azure DNS and Azure Private DNS. Record sets are changed one by one, each only from its last observed state. */
export function azureDNS(endpoints: Endpoints): DNSZonesClient {
  const open = async (ctx: Omit<DNSContext, 'owner'>) => {
    const azure = endpointsAt(ctx.profile, endpoints);
    const { token } = await entraToken(ctx, azure, managementScope(azure));
    return { azure, token, signal: ctx.signal };
  };
  const urlOf = (azure: Endpoints, zone: DNSZone, type: string, name: string) => {
    const relative = name === zone.domain ? '@' : name.slice(0, -zone.domain.length - 1);
    return `${azure.management}${zone.id}/${type}/${encodeURIComponent(relative)}?api-version=${kindOf(zone).version}`;
  };
  return {
    async zones(ctx) {
      const { azure, token, signal } = await open(ctx);
      const { subscriptionID } = credentialsOf(ctx.account);
      const found = await Promise.all(
        KINDS.map(async ({ type, version, private: isPrivate }) => {
          const base = `${azure.management}/subscriptions/${subscriptionID}/providers/Microsoft.Network/${type}`;
          const what = `DNS zones of subscription ${subscriptionID} cannot be listed`;
          const zones = await allPages<AzureZone>(`${base}?api-version=${version}`, what, azure, (url) =>
            callAzure({ url, token, what, signal }),
          );
          return zones.map((zone) => zoneOf(zone, isPrivate));
        }),
      );
      return found.flat();
    },

    async recordsAt(ctx, zone, names) {
      const { azure, token, signal } = await open(ctx);
      const asked = names.flatMap((name) => TYPES.map((type) => ({ name, type })));
      const found = await Promise.all(
        asked.map(async ({ name, type }) => {
          const what = `records of zone ${zone.domain} cannot be read`;
          const set = await callAzure<AzureRecordSet>(
            { url: urlOf(azure, zone, type, name), token, what, signal },
            { absent: true },
          );
          return set ? [seen(set, name, type)] : [];
        }),
      );
      return found.flat();
    },

    async texts(ctx, zone) {
      const { azure, token, signal } = await open(ctx);
      const first = `${azure.management}${zone.id}/TXT?api-version=${kindOf(zone).version}`;
      const what = `records of zone ${zone.domain} cannot be listed`;
      const sets = await allPages<AzureRecordSet>(first, what, azure, (url) => callAzure({ url, token, what, signal }));
      return sets.map((set) => {
        const name = set.name === '@' ? zone.domain : `${set.name}.${zone.domain}`;
        return seen(set, plainName(name), 'TXT');
      });
    },

    async change(ctx, zone, changes) {
      const { azure, token, signal } = await open(ctx);
      for (const change of changes) {
        const { name, type } = (change.after ?? change.before)!;
        const request = { url: urlOf(azure, zone, type, name), token, signal };
        await callAzure({
          ...request,
          ...asked(change, zone),
          what: `records of zone ${zone.domain} cannot be changed`,
        });
      }
    },
  };
}

function asked({ before, after }: RecordChange, zone: DNSZone) {
  const condition: Record<string, string> = before ? { 'if-match': before.etag ?? '' } : { 'if-none-match': '*' };
  if (!after) return { method: 'DELETE', headers: condition } as const;
  const body = JSON.stringify({ properties: written(after, zone.private) });
  return { method: 'PUT', headers: { ...condition, 'content-type': 'application/json' }, body } as const;
}

const zoneOf = ({ id, name }: AzureZone, isPrivate: boolean): DNSZone => {
  const group = /\/resourceGroups\/([^/]+)\//i.exec(id)?.[1] ?? '';
  // Gardener's zone names include the resource group.
  return { id, alsoKnownAs: [`${group}/${name}`], domain: plainName(name), private: isPrivate };
};

const KEYS = { A: 'ARecords', AAAA: 'AAAARecords', CNAME: 'CNAMERecord', TXT: 'TXTRecords' } as const;
/** `ARecords` in private DNS: aRecords, aaaaRecords, cnameRecord, txtRecords. */
const smallKey = (type: RecordType): string => KEYS[type].replace(type, type.toLowerCase());

function written({ type, ttl, values }: RecordSet, isPrivate: boolean): Record<string, unknown> {
  const records = {
    A: () => values.map((ipv4Address) => ({ ipv4Address })),
    AAAA: () => values.map((ipv6Address) => ({ ipv6Address })),
    CNAME: () => ({ cname: values[0] }),
    // Strings of at most 255 characters form one text.
    TXT: () => values.map((value) => ({ value: value.match(/.{1,255}/gs) ?? [''] })),
  }[type]();
  return isPrivate ? { ttl, [smallKey(type)]: records } : { TTL: ttl, [KEYS[type]]: records };
}

function seen({ etag, properties = {} }: AzureRecordSet, name: string, type: RecordType): SeenRecordSet {
  const records = properties[KEYS[type]] ?? properties[smallKey(type)];
  const list = (Array.isArray(records) ? records : records ? [records] : []) as Record<string, unknown>[];
  const values = list.map((record) => {
    if (type === 'TXT') return (record.value as string[]).join('');
    const value = String(record.ipv4Address ?? record.ipv6Address ?? record.cname ?? '');
    return type === 'CNAME' ? plainName(value) : value;
  });
  const alias = (properties.targetResource as { id?: string } | undefined)?.id;
  return {
    name,
    type,
    ttl: Number(properties.TTL ?? properties.ttl ?? 0),
    values,
    ...(etag !== undefined && { etag }),
    ...((alias || values.length === 0) && { special: true }),
  };
}
