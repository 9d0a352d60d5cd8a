import { LABELS } from '../../../operator/api/group.ts';
import { profileManifests } from '../../../operator/api/profiles.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { silent } from '../../../operator/kube/log.ts';
import { CONFIGMAPS, type ConfigMap } from '../../../operator/kube/resources.ts';
import { awsDNS } from '../../../providers/aws/index.ts';
import { openAzureDNS } from '../../../providers/azure/index.ts';
import type { ProviderDNS, RecordSet, RecordType } from '../../../providers/dns.ts';
import { gcpDNS } from '../../../providers/gcp/index.ts';
import { simulated } from '../../../providers/simulated/index.ts';
import { type CloudName, fakeCloud, type WebEndpoints } from '../cloud/index.ts';
import type { DNSTestbed } from './dns.ts';

/** What differs between the clouds' DNS in a test. */
const FACES: Record<
  'aws' | 'gcp' | 'azure',
  { cloud: CloudName; open(web: WebEndpoints): ProviderDNS; secret: string; write: RegExp; denied: string[] }
> = {
  aws: {
    cloud: 'aws',
    open: (web) => awsDNS(web.aws),
    secret: 'secretAccessKey',
    write: /^route53:Change/,
    denied: ['route53:ChangeResourceRecordSets'],
  },
  gcp: {
    cloud: 'gcp',
    open: (web) => gcpDNS(web.gcp),
    secret: 'serviceaccount.json',
    write: /^dns\.changes\.create$/,
    denied: ['dns.changes.create'],
  },
  azure: {
    cloud: 'azure-native',
    open: (web) => openAzureDNS(web.azure),
    secret: 'clientSecret',
    write: /^Microsoft\.Network\/.*\/(write|delete)$/,
    denied: ['Microsoft.Network/dnsZones/A/write', 'Microsoft.Network/dnsZones/TXT/write'],
  },
};

/** The clouds' own APIs, by our own requests, over fake zones. */
export async function fakeDNSTestbed(name: keyof typeof FACES): Promise<DNSTestbed> {
  const face = FACES[name];
  const cloud = await fakeCloud();
  const account = cloud.account(face.cloud);
  const profile = (await profileManifests()).find(({ metadata }) => metadata.name === name)!;
  const zones = cloud.dns(account);
  return {
    dns: face.open(await cloud.web()),
    context: (owner) => ({
      owner,
      objects: { client: undefined as unknown as KubeClient, namespace: owner.namespace },
      account,
      profile,
      region: profile.spec.defaults!.region!,
      log: silent,
      signal: new AbortController().signal,
      now: () => new Date(),
    }),
    secrets: [account.credentials[face.secret]!],
    makeZone: (domain, options) => zones.makeZone(domain, options),
    removeZone: (id) => zones.removeZone(id),
    put: (zone, record) => zones.put(zone, record),
    records: async (id) => zones.zones().find((zone) => zone.id === id)?.records ?? [],
    writes: () => cloud.requests().filter(({ type }) => face.write.test(type)).length,
    troubles: [
      {
        what: 'revoked credentials',
        code: 'ERR_INFRA_UNAUTHENTICATED',
        begin: () => cloud.faults.set({ revoked: [account.key] }),
      },
      {
        what: 'a permission that is missing',
        code: 'ERR_INFRA_UNAUTHORIZED',
        begin: () => cloud.faults.set({ denied: face.denied }),
      },
      {
        what: 'too many requests',
        code: 'ERR_INFRA_RATE_LIMITS_EXCEEDED',
        begin: () => cloud.faults.set({ throttle: { perSecond: 0 } }),
      },
    ],
    heal: () => cloud.faults.clear(),
    close: () => cloud.close(),
  };
}

/** The simulated provider's zones: ConfigMaps of an API server that is asked for real. */
export function simulatedDNSTestbed(
  client: KubeClient,
  namespace: string,
  writes: () => number,
  close: () => Promise<void>,
): DNSTestbed {
  let made = 0;
  let ours = 0;
  const zone = (id: string) => client.get<ConfigMap>(CONFIGMAPS, id, namespace);
  /** What the test itself writes is not the provider's. */
  async function aside<T>(run: () => Promise<T>): Promise<T> {
    const before = writes();
    const result = await run();
    ours += writes() - before;
    return result;
  }
  return {
    dns: simulated.dns!,
    context: (owner) => ({
      owner,
      objects: { client, namespace },
      account: { id: namespace, credentials: {} },
      profile: { metadata: { name: 'simulated' }, spec: {} } as never,
      region: 'here',
      log: silent,
      signal: new AbortController().signal,
      now: () => new Date(),
    }),
    secrets: [],
    makeZone: (domain, options = {}) =>
      aside(async () => {
        const id = `zone-${++made}`;
        const data = { domain, ...(options.private && { visibility: 'Private' }) };
        const metadata = { name: id, namespace, labels: { [LABELS.dnsZone]: 'simulated' } };
        await client.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
        return id;
      }),
    removeZone: (id) =>
      aside(async () => {
        await client.delete(CONFIGMAPS, id, namespace);
      }),
    put: (id, { name, type, ttl, values }) =>
      aside(async () => {
        await client.mergePatch(CONFIGMAPS, id, namespace, {
          data: { [`${name}.${type}`]: JSON.stringify({ ttl, values }) },
        });
      }),
    records: async (id) =>
      Object.entries((await zone(id)).data ?? {}).flatMap(([key, value]): RecordSet[] => {
        const match = /^(.+)\.(A|AAAA|CNAME|TXT)$/.exec(key);
        return match ? [{ name: match[1]!, type: match[2] as RecordType, ...JSON.parse(value) }] : [];
      }),
    writes: () => writes() - ours,
    troubles: [],
    heal: () => {},
    close,
  };
}
