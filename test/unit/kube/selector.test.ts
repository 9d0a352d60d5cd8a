import { expect, it } from 'vitest';
import { matchesSelector } from '../../../operator/kube/selector.ts';

const labels = { app: 'web', 'example.org/tier': 'front', empty: '' };

const cases: [string, boolean | undefined][] = [
  ['app=web', true],
  ['app==web', true],
  ['app = web', true],
  ['app=db', false],
  ['app!=db', true],
  ['app!=web', false],
  ['missing!=x', true],
  ['missing=x', false],
  ['empty=', true],
  ['app', true],
  ['missing', false],
  ['!missing', true],
  ['!app', false],
  ['app in (db, web)', true],
  ['app in (db)', false],
  ['app notin (db)', true],
  ['missing notin (db)', true],
  ['missing in (db)', false],
  ['app in (db,web),example.org/tier=front', true],
  ['app=web,example.org/tier=back', false],
  ['toString', false],
  ['app=web,', undefined],
  ['app>3', undefined],
  ['!app=web', undefined],
];
for (const [selector, expected] of cases) {
  it(`${selector} is ${expected}`, () => expect(matchesSelector(selector, labels)).toBe(expected));
}
it('matchesSelector treats absent labels as empty', () => expect(matchesSelector('app')).toBe(false));
