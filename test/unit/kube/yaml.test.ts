import { expect, it } from 'vitest';
import { yamlDocument, yamlDocuments } from '../../../operator/kube/yaml.ts';
import { aliasBomb } from '../../kit/alias-bomb.ts';

it.each([
  ['unfold to gigabytes', aliasBomb('a: x')],
  ['contain themselves', 'a: &a [*a]'],
  ['name one large text often', `a: &a ${'x'.repeat(100_000)}\nb: [${Array(40).fill('*a').join(', ')}]`],
])('a text is refused whose aliases %s', (_, text) => {
  for (const parse of [yamlDocument, yamlDocuments])
    expect(() => parse(text)).toThrow(/^its aliases unfold to more than an API server takes/);
});

it('yamlDocuments parses many and large documents, and aliases that stay small', () => {
  const large = JSON.stringify({
    kind: 'List',
    items: Array.from({ length: 4_000 }, (_, i) => ({ [`k${i}`]: [i, null, {}] })),
  });
  expect(yamlDocument(large)).toEqual(JSON.parse(large));
  expect(yamlDocuments('a: &a [1, 2]\nb: *a\n---\nc: 1\n')).toEqual([{ a: [1, 2], b: [1, 2] }, { c: 1 }]);
});

it('the error for invalid YAML has one line without the surrounding text', () => {
  expect(() => yamlDocument('token: very-secret\nb: [\n')).toThrow(/^(?!.*very-secret)[^\n]+$/);
});
