import { expect, it } from 'vitest';
import { memberName } from '../../../operator/hubs/member-name.ts';

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

it('memberName is plain where it can be parsed unambiguously', () => {
  expect(memberName('shop', 'demo', 48)).toBe('shop--demo');
});

it('memberName is unique for each cluster, and fits the hub', () => {
  const parts = [
    'a',
    'b',
    'a-b',
    'a--b',
    'b-',
    'x'.repeat(30),
    `${'x'.repeat(30)}y`,
    'x'.repeat(63),
    '-'.repeat(5),
  ].map((part) => part.replace(/^-+|-+$/g, '') || 'z');
  const seen = new Map<string, string>();
  for (const namespace of new Set(parts))
    for (const name of new Set(parts)) {
      for (const limit of [32, 48, 63]) {
        const made = memberName(namespace, name, limit);
        expect(made.length).toBeLessThanOrEqual(limit);
        expect(made).toMatch(LABEL);
        const key = `${limit}/${made}`;
        expect(seen.get(key) ?? `${namespace}/${name}`).toBe(`${namespace}/${name}`);
        seen.set(key, `${namespace}/${name}`);
      }
    }
});
