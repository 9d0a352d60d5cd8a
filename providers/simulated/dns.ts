import { LABELS } from '../../operator/api/group.ts';
import { CONFIGMAPS, type ConfigMap } from '../../operator/kube/resources.ts';
import { plainName } from '../dns/names.ts';
import type { RecordChange, SeenRecordSet } from '../dns/plan.ts';
import type { DNSZonesClient } from '../dns/records.ts';
import type { DNSZone, RecordSet, RecordType } from '../dns.ts';

/** Key of a zone's ConfigMap with its domain. */
const DOMAIN = 'domain';

interface SimulatedZone extends DNSZone {
  object: ConfigMap;
}

/** `api.example.com A` as key of a ConfigMap. */
const keyOf = ({ name, type }: Pick<RecordSet, 'name' | 'type'>): string => `${name}.${type}`;

/**
 * Simulated zones without resolvers: each is a ConfigMap that the domain's owner makes in their namespace, with label
 * `multi-cluster.demo.io/dns-zone: simulated` and key `domain`; other keys are records, `<name>.<type>` → JSON.
 */
export const simulatedZones: DNSZonesClient<SimulatedZone> = {
  withoutAccount: true,

  async zones({ objects: { client, namespace }, signal }) {
    const labelSelector = `${LABELS.dnsZone}=simulated`;
    const { items } = await client.list<ConfigMap>(CONFIGMAPS, { namespace, labelSelector, signal });
    return items.flatMap((object) => {
      const { [DOMAIN]: domain, visibility } = object.data ?? {};
      const id = object.metadata.name;
      return domain ? [{ id, domain: plainName(domain.trim()), private: visibility === 'Private', object }] : [];
    });
  },

  async recordsAt(_ctx, { object }, names) {
    const types: RecordType[] = ['A', 'AAAA', 'CNAME', 'TXT'];
    return names.flatMap((name) => types.flatMap((type) => seen(object, name, type) ?? []));
  },

  async texts(_ctx, { object }) {
    const names = Object.keys(object.data ?? {}).flatMap((key) => (key.endsWith('.TXT') ? [key.slice(0, -4)] : []));
    return names.flatMap((name) => seen(object, name, 'TXT') ?? []);
  },

  async change({ objects: { client, namespace }, signal }, { id, object }, changes) {
    const { resourceVersion } = object.metadata;
    const patch = { metadata: { resourceVersion }, data: Object.assign({}, ...changes.map(entries)) };
    await client.mergePatch(CONFIGMAPS, id, namespace, patch, { signal });
  },
};

const entries = ({ before, after }: RecordChange): Record<string, string | null> => ({
  ...(before && { [keyOf(before)]: null }),
  ...(after && { [keyOf(after)]: JSON.stringify({ ttl: after.ttl, values: after.values }) }),
});

/** Text that is no record counts as a foreign record. */
function seen({ data }: ConfigMap, name: string, type: RecordType): SeenRecordSet | undefined {
  const text = data?.[keyOf({ name, type })];
  if (text === undefined) return undefined;
  try {
    const { ttl, values } = JSON.parse(text) as { ttl: number; values: string[] };
    if (Number.isInteger(ttl) && Array.isArray(values)) return { name, type, ttl, values: values.map(String) };
  } catch {
    // Handled below.
  }
  return { name, type, ttl: 0, values: [text], special: true };
}
