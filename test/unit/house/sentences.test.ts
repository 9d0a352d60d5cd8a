import { expect, it } from 'vitest';
import { admissionPolicies } from '../../../operator/api/admission-policies.ts';
import { crds } from '../../../operator/api/crd.ts';
import { ERROR_CODES } from '../../../operator/api/errors.ts';
import { COMMANDS, GLOBAL_OPTIONS } from '../../../operator/cli/commands.ts';

const MOST_WORDS = 25;

/** Sentences of a text that nobody understands at first reading. */
const tooLong = (text: string): string[] =>
  text
    .split(/[.!?]\s+/)
    .map((sentence) => [sentence.split(/\s+/).filter((word) => /\w/.test(word)).length, sentence] as const)
    .filter(([words]) => words > MOST_WORDS)
    .map(([words, sentence]) => `${words} words: ${sentence}`);

/** All strings under these keys, however deep. */
function textsOf(value: unknown, keys: readonly string[]): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    keys.includes(key) && typeof inner === 'string' ? [inner] : textsOf(inner, keys),
  );
}

/** A message that CEL puts together: each value in it is one word. */
const readable = (expression: string): string => expression.replace(/'\s*\+[^']+\+\s*'/g, ' X ').replaceAll("'", '');

it.each<[string, string[]]>([
  ['kubectl explain', textsOf(crds(), ['description', 'message'])],
  [
    'admission',
    [...admissionPolicies().values()]
      .flatMap((objects) => textsOf(objects, ['message', 'messageExpression']))
      .map(readable),
  ],
  ['error codes', Object.values(ERROR_CODES).map(({ advice }) => advice)],
  ['coppice help', textsOf([COMMANDS, GLOBAL_OPTIONS], ['summary', 'description'])],
])('%s: each sentence has 25 words at most', (_, texts) => {
  expect(texts.length).toBeGreaterThan(10);
  expect([...new Set(texts.flatMap(tooLong))]).toEqual([]);
});
