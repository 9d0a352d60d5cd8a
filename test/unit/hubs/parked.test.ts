import { expect, it } from 'vitest';
import { noteEmptying, noteParking } from '../../../operator/controllers/membership/join.ts';
import type { MembershipReceipt } from '../../../operator/controllers/membership/receipt.ts';
import { partOf } from '../../kit/builders/partial.ts';

const NOW = new Date('2026-11-22T12:00:00Z');
const account = { namespace: 'kube-system', name: 'a' };
const credentials = [
  { identity: 'access', side: 'member' as const, account, token: 'a', renewAt: '2026-11-23T00:00:00Z' },
  { identity: 'old', side: 'member' as const, account, token: 'b' },
];
const receipt = (more: object) => partOf<MembershipReceipt>({ credentials, ...more });

it.each<[string, object, boolean, object]>([
  ['what was never open is not parked', {}, true, {}],
  ['what is to sleep is emptied first', { opened: true }, true, { opened: true, parked: 'FallingAsleep' }],
  ['once', { opened: true, parked: 'FallingAsleep' }, true, { opened: true, parked: 'FallingAsleep' }],
  ['once', { opened: true, parked: 'Asleep' }, true, { opened: true, parked: 'Asleep' }],
  [
    'at once while it wakes, as nothing was placed on it yet',
    { opened: true, parked: 'Waking' },
    true,
    { opened: true, parked: 'Asleep' },
  ],
  ['what is awake stays open', { opened: true }, false, { opened: true }],
  ['what wakes is looked at again', { opened: true, parked: 'Waking' }, false, { opened: true, parked: 'Waking' }],
])('%s', (_, before, asleep, after) => {
  expect(noteParking(receipt(before), asleep, NOW)).toEqual(receipt(after));
});

it('a cluster that wakes has its renewable tokens replaced', () => {
  const woken = noteParking(receipt({ opened: true, parked: 'Asleep' }), false, NOW);
  expect(woken.parked).toBe('Waking');
  expect(woken.credentials.map(({ renewAt }) => renewAt)).toEqual(['2026-11-22T12:00:00Z', undefined]);
  expect(noteParking(receipt({ opened: true, parked: 'FallingAsleep' }), false, NOW).parked).toBe('Waking');
});

it.each<[string, object, boolean, object]>([
  ['what is to be emptied is closed', { opened: true }, true, { opened: true, parked: 'Emptying' }],
  ['once', { opened: true, parked: 'Emptying' }, true, { opened: true, parked: 'Emptying' }],
  ['what was never open has nothing to be emptied of', {}, true, {}],
  ['what sleeps has nothing either', { opened: true, parked: 'Asleep' }, true, { opened: true, parked: 'Asleep' }],
  ['what is to stay is open again', { opened: true, parked: 'Emptying' }, false, { opened: true }],
  ['what sleeps is not opened by that', { opened: true, parked: 'Asleep' }, false, { opened: true, parked: 'Asleep' }],
])('%s', (_, before, isEmptied, after) => {
  expect(noteEmptying(receipt(before), isEmptied)).toEqual(receipt(after));
});

it('a cluster that is being emptied can fall asleep', () => {
  expect(noteParking(receipt({ opened: true, parked: 'Emptying' }), true, NOW).parked).toBe('FallingAsleep');
  expect(noteParking(receipt({ opened: true, parked: 'Emptying' }), false, NOW).parked).toBe('Emptying');
});
