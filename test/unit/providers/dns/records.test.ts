import { describe, expect, it } from 'vitest';
import { claimName, claimOf, claimRecord, claimText } from '../../../../providers/dns/ownership.ts';
import { planRecord, planRemoval, type SeenRecordSet } from '../../../../providers/dns/plan.ts';
import { quoteTxt, unquoteTxt } from '../../../../providers/dns/txt.ts';
import { chooseZone } from '../../../../providers/dns/zone-choice.ts';
import type { DNSZone, RecordOwner, RecordSet } from '../../../../providers/dns.ts';

const owner: RecordOwner = { garden: 'g', namespace: 'shop', name: 'blue' };
const HOST = 'api.shop.example.com';
const a = (change: Partial<RecordSet> = {}): RecordSet => ({
  name: HOST,
  type: 'A',
  ttl: 120,
  values: ['192.0.2.1'],
  ...change,
});
const claim = (of: RecordOwner = owner, type: RecordSet['type'] = 'A'): SeenRecordSet =>
  claimRecord(of, { name: HOST, type });
/** Changes as `before → after`. */
const planned = (seen: SeenRecordSet[], wanted = a()) => {
  const plan = planRecord(seen, wanted, owner);
  return plan.foreign ?? plan.changes?.map(({ before, after }) => `${told(before)} → ${told(after)}`);
};
const told = (set?: RecordSet) => (set ? (set.name === HOST ? `${set.type} ${set.values}` : `claim`) : '-');

describe('the planned changes of the records at a name', () => {
  it.each<[string, SeenRecordSet[], string[] | string]>([
    ['nothing there: claim, then record', [], ['- → claim', '- → A 192.0.2.1']],
    ['all there: nothing', [claim(), a()], []],
    ['another ttl', [claim(), a({ ttl: 5 })], ['A 192.0.2.1 → A 192.0.2.1']],
    ['another value', [claim(), a({ values: ['192.0.2.9'] })], ['A 192.0.2.9 → A 192.0.2.1']],
    ['a claim without its record', [claim()], ['- → A 192.0.2.1']],
    [
      'ours of another type goes first, while the claim still covers it',
      [claim(owner, 'CNAME'), a({ type: 'CNAME', values: ['lb.example.org'] })],
      ['CNAME lb.example.org → -', 'claim → claim', '- → A 192.0.2.1'],
    ],
    ['no claim', [a()], `${HOST} has a record of type A (192.0.2.1) that Coppice did not make`],
    ['no claim, and right already', [a()], `${HOST} has a record of type A (192.0.2.1) that Coppice did not make`],
    [
      'a CNAME of others, though ours is claimed',
      [claim(), a({ type: 'CNAME', values: ['x.org'] })],
      `${HOST} has a record of type CNAME (x.org) that Coppice did not make`,
    ],
    ['others of another type', [a({ type: 'AAAA', values: ['::1'] })], ['- → claim', '- → A 192.0.2.1']],
    [
      'an alias of others',
      [claim(), { ...a(), values: [], special: true }],
      `${HOST} has a record of type A that Coppice did not make`,
    ],
    ['another cluster', [claim({ ...owner, name: 'red' }), a()], `${HOST} belongs to cluster shop/red`],
    [
      'another garden',
      [claim({ ...owner, garden: 'h' }), a()],
      `${HOST} belongs to cluster shop/blue of another garden (h)`,
    ],
    [
      'a text of others in the place of the claim',
      [{ ...claim(), values: ['hello'] }],
      `_coppice.${HOST} has a TXT record that is not ours`,
    ],
    [
      'a claim beside a text of others',
      [{ ...claim(), values: [...claim().values, 'hello'] }, a()],
      `_coppice.${HOST} has a TXT record that is not ours`,
    ],
  ])('handle the case: %s', (_what, seen, changes) => {
    expect(planned(seen)).toEqual(changes);
  });

  it('compare addresses in any form and order', () => {
    const wanted = a({ type: 'AAAA', values: ['2001:db8::1', '2001:db8::2'] });
    const there = a({ type: 'AAAA', values: ['2001:DB8:0:0:0:0:0:2', '2001:db8::0001'] });
    expect(planned([claim(owner, 'AAAA'), there], wanted)).toEqual([]);
  });
});

describe('the planned removals', () => {
  const removed = (seen: SeenRecordSet[]) => planRemoval(seen, HOST, owner).map(({ before }) => told(before));
  it.each<[string, SeenRecordSet[], string[]]>([
    ['ours, the claim last', [claim(), a()], ['A 192.0.2.1', 'claim']],
    ['a claim that is left', [claim()], ['claim']],
    ['nothing that is not claimed', [a()], []],
    ["nothing of another's", [claim({ ...owner, garden: 'h' }), a()], []],
    [
      'no other types, though they are at our name',
      [claim(), a(), a({ type: 'TXT', values: ['x'] })],
      ['A 192.0.2.1', 'claim'],
    ],
    ['no routing policy that others made of it', [claim(), { ...a(), special: true }], ['claim']],
  ])('are: %s', (_what, seen, names) => {
    expect(removed(seen)).toEqual(names);
  });
});

describe('a claim record', () => {
  it("contains the record's owner, and can be parsed", () => {
    const whole = { ...owner, type: 'AAAA' as const };
    expect(claimText(whole)).toBe('heritage=coppice,coppice/garden=g,coppice/cluster=shop/blue,coppice/type=AAAA');
    expect(claimOf(claimText(whole))).toEqual(whole);
    expect(claimName('api.x.org')).toBe('_coppice.api.x.org');
  });
  it.each(['', 'heritage=external-dns,external-dns/owner=x', 'heritage=coppice', 'v=spf1 -all'])(
    'is not recognized in text %j',
    (text) => {
      expect(claimOf(text)).toBeUndefined();
    },
  );
});

describe('chooseZone', () => {
  const zone = (domain: string, id = domain, isPrivate = false): DNSZone => ({ id, domain, private: isPrivate });
  const all = [zone('com'), zone('example.com'), zone('shop.example.com'), zone('shop.example.com', 'p', true)];

  it.each([
    ['api.shop.example.com', {}, 'shop.example.com'],
    ['api.shop.example.com', { visibility: 'Private' as const }, 'p'],
    ['api.shop.example.com', { include: ['EXAMPLE.com'] }, 'example.com'],
    ['api.shop.example.com', { exclude: ['shop.example.com', 'p'] }, 'example.com'],
    ['api.workshop.example.com', {}, 'example.com'],
    ['counterexample.com', {}, 'com'],
    ['example.org', {}, undefined],
  ])('finds the zone of %s with choice %j', (domain, choice, id) => {
    expect(chooseZone(all, domain, choice)?.id).toBe(id);
  });

  it('rejects if two zones match', () => {
    expect(() => chooseZone([zone('example.com', 'one'), zone('example.com', 'two')], 'api.example.com')).toThrow(
      'several public zones have the domain example.com: one, two',
    );
  });
});

it.each(['plain', 'with "quotes" and \\', 'x'.repeat(600), ''])(
  'unquoteTxt restores what quoteTxt wrote: %j',
  (text) => {
    expect(unquoteTxt(quoteTxt(text))).toBe(text);
    for (const piece of quoteTxt(text).split('" "')) expect(piece.length).toBeLessThan(260);
  },
);
