import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { admissionPolicies } from '../../../operator/api/admission-policies.ts';
import { crds } from '../../../operator/api/crd.ts';
import { ERROR_CODES } from '../../../operator/api/errors.ts';
import { COMMANDS, GLOBAL_OPTIONS } from '../../../operator/cli/commands.ts';
import { proseOf, tooLong } from '../../kit/sentences.ts';

const ROOT = new URL('../../../', import.meta.url);
const PAGES = globSync(['*.md', '{charts,docs,examples,operator,test}/**/*.md'], { cwd: ROOT.pathname }).sort();

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

describe('docs: each sentence has 25 words at most', () => {
  it.each(PAGES)('in %s', (page) => {
    expect(proseOf(readFileSync(new URL(page, ROOT), 'utf8')).flatMap(tooLong)).toEqual([]);
  });

  it('in lists, tables and other places of prose', () => {
    const long = `${'word '.repeat(25)}word.`;
    const half = `${'word '.repeat(12)}word`;
    const pages = {
      'a paragraph of two lines': `Short.\n${half}\n${half}.`,
      'two halves with a colon or a semicolon': `${half}: ${half}.`,
      'an item': `- Short.\n- ${half}\n  ${half}.`,
      'a cell': `| a | b |\n|---|---|\n| c | ${long} |`,
      'after code': `\`\`\`\ncode\n\`\`\`\n${long}`,
    };
    for (const [where, page] of Object.entries(pages)) expect(proseOf(page).flatMap(tooLong), where).toHaveLength(1);

    const others = {
      'code that is fenced': `\`\`\`\n${long}\n\`\`\``,
      'code that is indented': `So:\n\n    ${long}`,
      'code in a line, and the target of a link': `\`${long}\` is [here](${long})`,
      'a list in a cell': `| ${half}; ${half} |`,
      'two sentences': `${half}. ${half}.`,
    };
    for (const [where, page] of Object.entries(others)) expect(proseOf(page).flatMap(tooLong), where).toEqual([]);
  });
});
