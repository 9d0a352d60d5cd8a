import { plainName } from '../dns/names.ts';
import type { SeenRecordSet } from '../dns/plan.ts';
import type { DNSZonesClient } from '../dns/records.ts';
import { quoteTxt, unquoteTxt } from '../dns/txt.ts';
import type { DNSContext, DNSZone, RecordType } from '../dns.ts';
import { posted } from '../json-api.ts';
import { eachPage } from '../pages.ts';
import { credentialsOf } from './credentials.ts';
import { endpointsAt } from './endpoints.ts';
import { callGoogle, type Endpoints } from './google-api.ts';
import { accessToken } from './token.ts';

/** The fields of dns/v1's ManagedZone and ResourceRecordSet that are read. */
interface ManagedZone {
  name: string;
  dnsName: string;
  visibility?: 'public' | 'private';
}
interface GoogleRecordSet {
  name: string;
  type: string;
  ttl?: number;
  rrdatas?: string[];
}

const TYPES: readonly string[] = ['A', 'AAAA', 'CNAME', 'TXT'] satisfies RecordType[];

/** Cloud DNS. A request's changes are atomic; a deleted record must equal its last observed state. */
export function cloudDNS(endpoints: Endpoints): DNSZonesClient {
  const open = async (ctx: Omit<DNSContext, 'owner'>) => {
    const google = endpointsAt(ctx.profile, endpoints);
    const { project } = credentialsOf(ctx.account, ctx.profile);
    const { token } = await accessToken(ctx, google);
    return { project, token, zones: `${google.dns}/dns/v1/projects/${project}/managedZones` };
  };
  return {
    async zones(ctx) {
      const { project, token, zones } = await open(ctx);
      const found: DNSZone[] = [];
      const what = `DNS zones of project ${project} cannot be listed`;
      await eachPage(what, async (page) => {
        const answer = await callGoogle<{ managedZones?: ManagedZone[]; nextPageToken?: string }>({
          url: page === undefined ? zones : `${zones}?${new URLSearchParams({ pageToken: page })}`,
          token,
          what,
          signal: ctx.signal,
        });
        for (const { name, dnsName, visibility } of answer?.managedZones ?? []) {
          // Gardener's zone names include the project.
          const alsoKnownAs = [`${project}/${name}`];
          found.push({ id: name, alsoKnownAs, domain: plainName(dnsName), private: visibility === 'private' });
        }
        return answer?.nextPageToken;
      });
      return found;
    },

    async recordsAt(ctx, zone, names) {
      const { token, zones } = await open(ctx);
      const found = await Promise.all(
        names.map(async (name) => {
          const answer = await callGoogle<{ rrsets?: GoogleRecordSet[] }>({
            url: `${zones}/${zone.id}/rrsets?${new URLSearchParams({ name: `${name}.` })}`,
            token,
            what: `records of zone ${zone.id} cannot be listed`,
            signal: ctx.signal,
          });
          return (answer?.rrsets ?? []).filter(({ type }) => TYPES.includes(type)).map(seen);
        }),
      );
      return found.flat();
    },

    async texts(ctx, zone) {
      const { token, zones } = await open(ctx);
      const found: SeenRecordSet[] = [];
      const what = `records of zone ${zone.id} cannot be listed`;
      await eachPage(what, async (page) => {
        const answer = await callGoogle<{ rrsets?: GoogleRecordSet[]; nextPageToken?: string }>({
          url: `${zones}/${zone.id}/rrsets${page === undefined ? '' : `?${new URLSearchParams({ pageToken: page })}`}`,
          token,
          what,
          signal: ctx.signal,
        });
        found.push(...(answer?.rrsets ?? []).filter(({ type }) => type === 'TXT').map(seen));
        return answer?.nextPageToken;
      });
      return found;
    },

    async change(ctx, zone, changes) {
      const { token, zones } = await open(ctx);
      const additions = changes.flatMap(({ after }) => (after ? [written(after)] : []));
      const deletions = changes.flatMap(({ before }) => (before ? [written(before)] : []));
      await callGoogle({
        url: `${zones}/${zone.id}/changes`,
        token,
        ...posted({ additions, deletions }),
        what: `records of zone ${zone.id} cannot be changed`,
        signal: ctx.signal,
      });
    },
  };
}

function seen({ name, type, ttl = 0, rrdatas = [] }: GoogleRecordSet): SeenRecordSet {
  const values = rrdatas.map((value) =>
    type === 'TXT' ? unquoteTxt(value) : type === 'CNAME' ? plainName(value) : value,
  );
  return {
    name: plainName(name),
    type: type as RecordType,
    ttl,
    values,
    raw: rrdatas,
    // Routing policies store their data elsewhere.
    ...(values.length === 0 && { special: true }),
  };
}

const written = ({ name, type, ttl, values, raw }: SeenRecordSet): GoogleRecordSet => ({
  name: `${name}.`,
  type,
  ttl,
  rrdatas: raw ?? values.map((value) => (type === 'TXT' ? quoteTxt(value) : type === 'CNAME' ? `${value}.` : value)),
});
