import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../../operator/api/errors.ts';
import type { DNSContext, ProviderDNS, RecordOwner, RecordSet } from '../../../providers/dns.ts';
import { expectRefused, frozen } from './problems.ts';

/** Something that makes the provider of zones refuse. */
export interface DNSTrouble {
  what: string;
  code: ErrorCode;
  begin(): void | Promise<void>;
}

/** Somebody's zones, as the conformance suite needs them: what it may ask, see and break. */
export interface DNSTestbed {
  dns: ProviderDNS;
  context(owner: RecordOwner): DNSContext;
  /** Values of the credentials that nobody may read anywhere. */
  secrets: string[];
  /** @returns its id */
  makeZone(domain: string, options?: { private?: boolean }): Promise<string>;
  removeZone(id: string): Promise<void>;
  /** As somebody else would: over whatever is there. */
  put(zone: string, record: RecordSet): Promise<void>;
  records(zone: string): Promise<RecordSet[]>;
  /** How often something was asked to be changed. */
  writes(): number;
  troubles: DNSTrouble[];
  heal(): void;
  close(): Promise<void>;
}

const GARDEN = '2b7c5a90-64d4-4a1c-9d3f-0f3f1f6d7a11';
const BLUE = frozen<RecordOwner>({ garden: GARDEN, namespace: 'shop', name: 'blue' });
/** As long as both may be: so is the text that says whose a record is. */
const GREEN = frozen<RecordOwner>({ garden: GARDEN, namespace: 'n'.repeat(63), name: 'g'.repeat(63) });
const ELSEWHERE = frozen<RecordOwner>({ ...BLUE, garden: 'aa7c5a90-64d4-4a1c-9d3f-0f3f1f6d7a11' });

const record = (name: string, change: Partial<RecordSet> = {}): RecordSet =>
  frozen({ name, type: 'A', ttl: 120, values: ['192.0.2.1'], ...change });

/** What ProviderDNS promises, of any provider whose zones `open` sets up. */
export function keepsRecords(name: string, open: () => Promise<DNSTestbed>): void {
  describe(`the DNS records of ${name}`, { timeout: 60_000 }, () => {
    let testbed: DNSTestbed;
    let zoneID: string;
    let long: string;
    const signal = () => new AbortController().signal;
    beforeAll(async () => {
      testbed = await open();
      zoneID = await testbed.makeZone('example.com');
      await testbed.makeZone('other.org');
      long = await testbed.makeZone('internal.example.com');
    }, 120_000);
    afterAll(() => testbed?.close());

    const contextOf = (owner: RecordOwner) => ({ ...testbed.context(owner), signal: signal() });
    const zoneOf = async (domain: string, owner = BLUE) => (await testbed.dns.zoneOf(contextOf(owner), domain))!;
    const ensure = async (wanted: RecordSet, owner = BLUE) =>
      testbed.dns.ensure(contextOf(owner), await zoneOf(wanted.name, owner), wanted);
    const remove = async (host: string, owner = BLUE) =>
      testbed.dns.remove(contextOf(owner), await zoneOf(host, owner), host);
    const at = async (host: string) =>
      (await testbed.records(zoneID))
        .filter((one) => one.name === host)
        .map(({ type, ttl, values }) => ({ type, ttl, values: [...values].sort() }));
    const claims = async (host: string) =>
      (await testbed.records(zoneID)).filter((one) => one.name === `_coppice.${host}`).flatMap(({ values }) => values);
    async function writingNothing<T>(run: () => Promise<T>): Promise<T> {
      const before = { writes: testbed.writes(), records: await testbed.records(zoneID) };
      const result = await run();
      expect({ writes: testbed.writes(), records: await testbed.records(zoneID) }).toEqual(before);
      return result;
    }

    it('go into the zone with the longest domain', async () => {
      await writingNothing(async () => {
        expect((await zoneOf('api.shop.example.com')).domain).toBe('example.com');
        expect((await zoneOf('api.internal.example.com')).id).toBe(long);
        expect((await zoneOf('example.com')).id).toBe(zoneID);
        // Not every name that ends so is in it.
        expect(await zoneOf('api.counterexample.com')).toBeUndefined();
        expect(await zoneOf('com')).toBeUndefined();
      });
    });

    it('go into the public one of two zones, unless the private one is chosen', async () => {
      const hidden = await testbed.makeZone('example.com', { private: true });
      expect(await zoneOf('api.example.com')).toMatchObject({ id: zoneID, private: false });
      const choose = (choice: object) => testbed.dns.zoneOf(contextOf(BLUE), 'api.example.com', choice);
      expect(await choose({ visibility: 'Private' })).toMatchObject({ id: hidden, private: true });
      expect(await choose({ include: [hidden] })).toMatchObject({ id: hidden });
      expect(await choose({ exclude: [zoneID, hidden] })).toBeUndefined();
      await testbed.removeZone(hidden);
    });

    it.each<[RecordSet['type'], string[], string[]]>([
      ['A', ['192.0.2.1'], ['192.0.2.2', '192.0.2.3']],
      ['AAAA', ['2001:db8::1'], ['2001:db8::2']],
      ['CNAME', ['lb.example.org'], ['lb2.example.org']],
      ['TXT', ['a text, with = and "quotes"'], ['another']],
    ])('of type %s are created, changed and deleted with one write each', async (type, first, second) => {
      const host = `${type.toLowerCase()}.shop.example.com`;
      expect(await ensure(record(host, { type, values: first }))).toBe(true);
      expect(await at(host)).toEqual([{ type, ttl: 120, values: first }]);
      expect(await writingNothing(() => ensure(record(host, { type, values: [...first] })))).toBe(false);
      expect(await ensure(record(host, { type, ttl: 60, values: second }))).toBe(true);
      expect(await at(host)).toEqual([{ type, ttl: 60, values: second }]);
      expect(await writingNothing(() => ensure(record(host, { type, ttl: 60, values: [...second].reverse() })))).toBe(
        false,
      );
      expect(await remove(host)).toBe(true);
      expect(await at(host)).toEqual([]);
      expect(await claims(host)).toEqual([]);
      expect(await writingNothing(() => remove(host))).toBe(false);
    });

    it('follow an address that becomes a name, and back', async () => {
      const host = 'moves.example.com';
      await ensure(record(host));
      await ensure(record(host, { type: 'CNAME', values: ['lb.example.org'] }));
      expect(await at(host)).toEqual([{ type: 'CNAME', ttl: 120, values: ['lb.example.org'] }]);
      await ensure(record(host));
      expect(await at(host)).toEqual([{ type: 'A', ttl: 120, values: ['192.0.2.1'] }]);
      await remove(host);
    });

    it('have claims with their owner, within the limits of DNS', async () => {
      const host = 'green.example.com';
      await ensure(record(host), GREEN);
      const [claim] = await claims(host);
      expect(claim).toBe(
        `heritage=coppice,coppice/garden=${GARDEN},coppice/cluster=${GREEN.namespace}/${GREEN.name},coppice/type=A`,
      );
      expect(claim!.length).toBeLessThanOrEqual(255);
      await remove(host, GREEN);
    });

    it('are restored after changes by others', async () => {
      const host = 'mended.example.com';
      await ensure(record(host));
      await testbed.put(zoneID, record(host, { values: ['203.0.113.9'] }));
      expect(await ensure(record(host))).toBe(true);
      expect(await at(host)).toEqual([{ type: 'A', ttl: 120, values: ['192.0.2.1'] }]);
      await remove(host);
    });

    it.each<[string, RecordSet]>([
      ['of the same type', record('foreign.example.com', { values: ['203.0.113.1'] })],
      ['that leads elsewhere', record('alias.example.com', { type: 'CNAME', values: ['elsewhere.example.org'] })],
    ])('never replace a foreign record %s, which is reported', async (_what, foreign) => {
      await testbed.put(zoneID, foreign);
      const refusal = await writingNothing(() =>
        expectRefused(ensure(record(foreign.name)), 'ERR_INFRA_DEPENDENCIES', testbed.secrets),
      );
      expect(refusal.message).toContain(foreign.name);
      expect(await writingNothing(() => remove(foreign.name))).toBe(false);
    });

    it('never change foreign records of other types at their name', async () => {
      const host = 'both.example.com';
      await testbed.put(zoneID, record(host, { type: 'AAAA', values: ['2001:db8::f'] }));
      await ensure(record(host));
      await remove(host);
      expect(await at(host)).toEqual([{ type: 'AAAA', ttl: 120, values: ['2001:db8::f'] }]);
    });

    it.each([
      ['another cluster', GREEN],
      ['a cluster of the same name in another garden', ELSEWHERE],
    ])('never replace the records of %s, which are reported with their owner', async (_what, holder) => {
      const host = 'taken.example.com';
      await ensure(record(host, { values: ['203.0.113.7'] }), holder);
      const refusal = await writingNothing(() => expectRefused(ensure(record(host)), 'ERR_INFRA_DEPENDENCIES'));
      expect(refusal.message).toContain(`${holder.namespace}/${holder.name}`);
      expect(await writingNothing(() => remove(host))).toBe(false);
      await remove(host, holder);
      expect(await ensure(record(host))).toBe(true);
      await remove(host);
    });

    it('are not claimed where a foreign text has the place of the claim', async () => {
      const host = 'texts.example.com';
      await testbed.put(zoneID, record(`_coppice.${host}`, { type: 'TXT', values: ['v=something'] }));
      await writingNothing(() => expectRefused(ensure(record(host)), 'ERR_INFRA_DEPENDENCIES'));
    });

    it('are completed by a retry after an interruption between claim and record', async () => {
      const host = 'half.example.com';
      await ensure(record(host));
      const [claim] = await claims(host);
      await remove(host);
      await testbed.put(zoneID, record(`_coppice.${host}`, { type: 'TXT', ttl: 300, values: [claim!] }));
      expect(await ensure(record(host))).toBe(true);
      expect(await at(host)).toHaveLength(1);
      await remove(host);
      expect(await claims(host)).toEqual([]);
    });

    it('can have the name of the zone', async () => {
      await ensure(record('example.com'));
      expect(await at('example.com')).toEqual([{ type: 'A', ttl: 120, values: ['192.0.2.1'] }]);
      await remove('example.com');
      expect(await at('example.com')).toEqual([]);
    });

    it('are listed for the sweep by their claims, in all zones', async () => {
      const made: [string, RecordOwner][] = [
        ['one.example.com', BLUE],
        ['two.example.com', GREEN],
        ['three.other.org', ELSEWHERE],
        ['internal.example.com', BLUE],
      ];
      for (const [host, owner] of made) await ensure(record(host), owner);
      const { owner: _, ...ctx } = contextOf(BLUE);
      const claimed = await testbed.dns.claimed(ctx);
      const told = claimed.map(({ zone, name: host, owner }) => [zone.domain, host, owner]);
      expect(told).toHaveLength(made.length);
      expect(told).toEqual(
        expect.arrayContaining([
          ['example.com', 'one.example.com', BLUE],
          ['example.com', 'two.example.com', GREEN],
          ['other.org', 'three.other.org', ELSEWHERE],
          ['internal.example.com', 'internal.example.com', BLUE],
        ]),
      );
      for (const [host, owner] of made) await remove(host, owner);
      expect(await testbed.dns.claimed(ctx)).toEqual([]);
    });

    it('are unchanged after a refusal, which is reported with advice, and can be written afterwards', async () => {
      const host = 'troubled.example.com';
      const zone = await zoneOf(host);
      for (const trouble of testbed.troubles) {
        await trouble.begin();
        await writingNothingAt(host, () =>
          expectRefused(testbed.dns.ensure(contextOf(BLUE), zone, record(host)), trouble.code, testbed.secrets),
        );
        testbed.heal();
      }
      expect(await ensure(record(host))).toBe(true);
      await remove(host);
    });

    async function writingNothingAt<T>(host: string, run: () => Promise<T>): Promise<T> {
      const result = await run();
      expect(await at(host)).toEqual([]);
      expect(await claims(host)).toEqual([]);
      return result;
    }
  });
}
