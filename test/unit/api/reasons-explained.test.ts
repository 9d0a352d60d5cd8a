import { glob, readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { crdOf, type Schema } from '../../../operator/api/crd.ts';
import { ERROR_CODES } from '../../../operator/api/errors.ts';
import { EXITS } from '../../../operator/api/exits.ts';
import { KINDS } from '../../../operator/api/kinds.ts';
import { type Explanation, REASONS } from '../../../operator/api/reasons.ts';
import { COMMAND_TABLE } from '../../../operator/cli/commands.ts';
import { parse } from '../../../operator/cli/parse.ts';
import { tooLong } from '../../kit/sentences.ts';

/** Each Explanation once, with the first place where it stands: mirrored conditions share theirs. */
const explanations = new Map<Explanation, { place: string; reason: string }>();
for (const [kind, conditions] of Object.entries(REASONS))
  for (const [type, reasons] of Object.entries(conditions as Record<string, Record<string, Explanation>>))
    for (const [reason, explanation] of Object.entries(reasons))
      if (!explanations.has(explanation))
        explanations.set(explanation, { place: `${kind} ${type} ${reason}`, reason: `${type} ${reason}` });
for (const [code, { see, means, why, advice }] of Object.entries(ERROR_CODES))
  explanations.set({ see, means, why, action: advice }, { place: code, reason: code });
for (const [code, explanation] of Object.entries(EXITS))
  explanations.set(explanation, { place: `exit ${code}`, reason: `exit ${code}` });

const all = [...explanations].map(([explanation, { place, reason }]) => ({ place, reason, ...explanation }));
const commandsIn = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, command]) => command!);

const KUBECTL =
  /^kubectl (get|describe|delete|annotate|patch|create|explain|label) [a-z]+( [A-Za-z0-9_./=:-]+| --?[a-z-]+(=\S+)?| '\{.*\}')*$/;

it('REASONS covers every kind with conditions', () => {
  const kinds = KINDS.map(({ kind }) => kind);
  expect(Object.keys(REASONS)).toEqual(expect.arrayContaining(kinds));
  expect(all.length).toBeGreaterThan(200);
});

describe.each(all)('$place', ({ see, means, why, action }) => {
  it('has four fields, in sentences of 25 words at most', () => {
    for (const text of [see, means, why, action]) {
      expect(text).not.toBe('');
      expect(tooLong(text.replace(/`[^`]*`/g, 'command'))).toEqual([]);
    }
  });

  it('names commands that parse', () => {
    expect(action.split(/\s+/).length).toBeGreaterThanOrEqual(4);
    for (const command of commandsIn(action)) {
      const words = command.split(' ');
      if (words[0] === 'coppice') {
        const parsed = parse(words.slice(1), COMMAND_TABLE.commands, COMMAND_TABLE.globals);
        expect(parsed.command?.name, command).toBe(words[1]);
      } else if (command !== 'kubectl patch') expect(command).toMatch(KUBECTL);
    }
  });
});

it('no action is shared by more than three reasons', () => {
  const shared = [...Map.groupBy(all, ({ action }) => action)].filter(
    ([, of]) => new Set(of.map((one) => one.reason)).size > 3,
  );
  expect(shared).toEqual([]);
});

it('names only fields that exist', () => {
  const fields = new Set(KINDS.flatMap((kind) => fieldsIn(crdOf(kind).spec.versions[0].schema.openAPIV3Schema, '')));
  const named = all.flatMap(({ place, means, why, action }) =>
    [...`${means} ${why} ${action}`.matchAll(/\b(?:spec|status)(?:\.[a-z]\w*)+/g)].map(([field]) => [place, field]),
  );
  expect(named.length).toBeGreaterThan(50);
  const others = ['spec.usages', 'spec.expirationSeconds', 'spec.parameters'];
  expect(named.filter(([, field]) => !fields.has(field!) && !others.includes(field!))).toEqual([]);
});

function fieldsIn(schema: Schema, path: string): string[] {
  return Object.entries({ ...schema.properties, ...schema.items?.properties }).flatMap(([field, inner]) => {
    const here = path === '' ? field : `${path}.${field}`;
    return [here, ...fieldsIn(inner, here)];
  });
}

it('every reason is written somewhere in the operator', async () => {
  const files: string[] = [];
  for await (const file of glob('operator/**/*.ts')) if (!file.startsWith('operator/api/reasons/')) files.push(file);
  const code = (await Promise.all(files.map((file) => readFile(file, 'utf8')))).join('\n');
  const unsaid = Object.entries(REASONS).flatMap(([kind, conditions]) =>
    Object.entries(conditions).flatMap(([type, reasons]) =>
      Object.keys(reasons)
        .filter((reason) => !code.includes(`'${reason}'`))
        .map((reason) => `${kind} ${type} ${reason}`),
    ),
  );
  expect(unsaid).toEqual([]);
});
