import { expect } from 'vitest';
import { CoppiceError, ERROR_CODES, type ErrorCode, errorText } from '../../../operator/api/errors.ts';
import type { Problem } from '../../../providers/problem.ts';

/** What is wrong, how something good is made wrong by it, the field that must be named, and a word that must be said. */
export type Nonsense<Asked> = [what: string, change: (asked: Asked) => Asked, field: string, words: string];

/** The same, so that whoever changes it fails. */
export function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
}

/** Of the problems, one is of this field (or of an entry in it), says the words in one line, and is a matter of configuration. */
export function expectNamed(problems: readonly Problem[], field: string, words: string): void {
  for (const { code, message } of problems) {
    expect(code).toBe('ERR_CONFIGURATION_PROBLEM');
    expectOneLine(message);
  }
  const said = problems.filter(
    ({ field: path }) => path === field || path.startsWith(`${field}[`) || path.startsWith(`${field}.`),
  );
  expect(said, `of ${JSON.stringify(problems)}: ${field}`).not.toEqual([]);
  expect(said.map(({ message }) => message).join('\n')).toContain(words);
}

/** A text for a condition: something, in one line, and no stack. */
export function expectOneLine(text: string): void {
  expect(text.trim()).not.toBe('');
  expect(text).not.toMatch(/\n|\bat .*\.(js|ts):\d/);
  expect(text.length).toBeLessThan(1000);
}

/** None of these is in the text. */
export function expectNoSecrets(text: string, secrets: readonly string[]): void {
  for (const secret of secrets) expect(text.includes(secret), `a secret in: ${text.slice(0, 80)}…`).toBe(false);
}

/** The promise fails as people can be told: with Gardener's code, in one line with what to do, and without secrets. */
export async function expectRefused(
  promise: Promise<unknown>,
  code: ErrorCode,
  secrets: readonly string[] = [],
): Promise<CoppiceError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error, `a refusal with ${code}`).toBeInstanceOf(CoppiceError);
  const refusal = error as CoppiceError;
  expect(Object.keys(ERROR_CODES)).toContain(refusal.code);
  expect(refusal.code, refusal.message).toBe(code);
  expectOneLine(errorText(refusal));
  expectNoSecrets(`${errorText(refusal)} ${refusal.stack}`, secrets);
  return refusal;
}
