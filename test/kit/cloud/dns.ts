import type { RecordSet } from '../../../providers/dns.ts';
import type { Account } from './model.ts';
import type { Store } from './store.ts';

/** A record set as the fake clouds keep it. */
export interface FakeRecordSet extends RecordSet {
  etag: string;
  /** Route 53's SetIdentifier: somebody's routing policy. */
  setIdentifier?: string;
}

export interface FakeZone {
  id: string;
  domain: string;
  private: boolean;
  records: FakeRecordSet[];
}

const FOLDER = 'dns';

export const zonesOf = (store: Store, account: string): FakeZone[] =>
  store.readJSON<FakeZone[]>(FOLDER, `${account}.json`) ?? [];

export const saveZones = (store: Store, account: string, zones: FakeZone[]): void =>
  store.writeJSON(zones, FOLDER, `${account}.json`);

export const isAt =
  ({ name, type }: Pick<RecordSet, 'name' | 'type'>) =>
  (one: RecordSet): boolean =>
    one.name === name && one.type === type;

/** Whether a record set of the name cannot be beside these: one of its type, or a CNAME beside others. */
export const isTaken = (records: readonly RecordSet[], { name, type }: RecordSet): boolean =>
  records.some((one) => one.name === name && (one.type === type || one.type === 'CNAME' || type === 'CNAME'));

let etags = 0;
export const withEtag = (record: RecordSet): FakeRecordSet => ({ ...record, etag: `etag-${process.pid}-${++etags}` });

/** What a test does to the zones of an account. */
export interface FakeDNS {
  zones(): FakeZone[];
  /** @returns its id */
  makeZone(domain: string, options?: { private?: boolean }): Promise<string>;
  removeZone(id: string): Promise<void>;
  /** As somebody else would: over whatever is there. */
  put(zone: string, record: RecordSet & { setIdentifier?: string }): Promise<void>;
}

export function fakeDNS(store: Store, account: Account): FakeDNS {
  const change = (work: (zones: FakeZone[]) => FakeZone[]) =>
    store.transaction(() => saveZones(store, account.id, work(zonesOf(store, account.id))));
  return {
    zones: () => zonesOf(store, account.id),
    async makeZone(domain, options = {}) {
      const number = zonesOf(store, account.id).length + 1;
      const kind = options.private ? 'privateDnsZones' : 'dnsZones';
      const id = {
        aws: `Z0FAKE${number}`,
        gcp: `zone-${number}`,
        'azure-native': `/subscriptions/${account.id}/resourceGroups/dns-${number}/providers/Microsoft.Network/${kind}/${domain}`,
      }[account.cloud];
      await change((zones) => [...zones, { id, domain, private: options.private === true, records: [] }]);
      return id;
    },
    removeZone: (id) => change((zones) => zones.filter((zone) => zone.id !== id)),
    put: (id, record) =>
      change((zones) =>
        zones.map((zone) => {
          if (zone.id !== id) return zone;
          return { ...zone, records: [...zone.records.filter((one) => !isAt(record)(one)), withEtag(record)] };
        }),
      ),
  };
}
