import { describe, expect, test } from 'vitest';
import { setCondition } from '../../../operator/api/conditions.ts';
import {
  CoppiceError,
  configurationProblem,
  ERROR_CODES,
  errorText,
  isRetryable,
} from '../../../operator/api/errors.ts';
import { fitName, technicalID } from '../../../operator/api/names.ts';
import {
  formatBytes,
  formatCpu,
  parseBytes,
  parseCpu,
  readBytes,
  readCpu,
  scaledQuantity,
} from '../../../operator/api/quantity.ts';

describe('quantities', () => {
  test.each<[string | number, number]>([
    ['2', 2000],
    [2, 2000],
    [0.5, 500],
    ['250m', 250],
    ['0.1', 100],
    ['.5', 500],
    ['1.5', 1500],
    ['1e3', 1_000_000],
    ['1k', 1_000_000],
    ['100u', 1],
    ['1n', 1],
    ['0', 0],
    ['-1', -1000],
    ['3920m', 3920],
  ])('%s CPU is %i millicores', (text, millicores) => expect(parseCpu(text)).toBe(millicores));

  test.each<[string | number, number]>([
    ['1Ki', 1024],
    ['128974848', 128974848],
    ['129e6', 129_000_000],
    ['129M', 129_000_000],
    ['123Mi', 128974848],
    ['1.5Gi', 1610612736],
    ['0.5', 1],
    ['128974848000m', 128974848],
    ['4Ti', 4398046511104],
  ])('%s of memory is %i bytes', (text, bytes) => expect(parseBytes(text)).toBe(bytes));

  test.each(['', 'm', 'abc', '1.2.3', '1 Gi', '1gi', '1mi', '--1', 'Infinity', 'NaN'])('%j is none', (text) => {
    expect(() => parseCpu(text)).toThrow(/no Kubernetes quantity/);
  });
  test('parse functions throw RangeError for amounts that are too large', () =>
    expect(() => parseBytes('9Ei')).toThrow(/too large/));

  test.each(['64Pi', '9Ei', '1e999', '9223372036854775807'])('readBytes saturates for %s', (text) => {
    expect(readBytes(text)).toBe(Number.MAX_SAFE_INTEGER);
    expect(readBytes(`-${text}`)).toBe(Number.MIN_SAFE_INTEGER);
    expect(readCpu(text)).toBe(Number.MAX_SAFE_INTEGER);
  });
  test('readCpu and readBytes equal parseCpu and parseBytes for safe amounts', () => {
    expect([readCpu('250m'), readCpu(2), readBytes('1.5Gi'), readBytes('250m')]).toEqual([250, 2000, 1610612736, 1]);
    expect(() => readCpu('abc')).toThrow(/no Kubernetes quantity/);
  });
  test('scaled saturates at int64, as Kubernetes does', () => {
    expect(scaledQuantity('1e999', 1000n)).toBe((2n ** 63n - 1n) * 1000n);
  });

  test('a quantity of four million digits is refused at once, with a short error', () => {
    const written = '9'.repeat(4_000_000);
    const started = performance.now();
    for (const read of [readBytes, readCpu, parseBytes, parseCpu])
      expect(() => read(written)).toThrow(/4000000 characters/);
    // Parsed, each takes 600 ms or more; a busy machine takes 200 for all of them.
    expect(performance.now() - started).toBeLessThan(1000);
    let message = '';
    try {
      readBytes(`${written}x`);
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message.length).toBeLessThan(200);
  });
  test.each([[['1'.repeat(1000)]], [{ toString: () => '1' }], [null], [true]])('%j is none', (written) => {
    expect(() => readBytes(written as unknown as string)).toThrow(/no Kubernetes quantity/);
  });

  test('formatted saturated amounts can be parsed', () => {
    for (const amount of [2 ** 70, 1e30, Number.POSITIVE_INFINITY]) {
      expect(readBytes(formatBytes(amount))).toBe(Number.MAX_SAFE_INTEGER);
      expect(readCpu(formatCpu(amount))).toBe(Number.MAX_SAFE_INTEGER);
    }
    expect([formatCpu(Number.NaN), formatBytes(Number.NaN)]).toEqual(['0', '0']);
  });

  test.each<[number, string]>([
    [7500, '7500m'],
    [8000, '8'],
    [0, '0'],
    [1, '1m'],
  ])('%i millicores are written %s', (millicores, text) => {
    expect(formatCpu(millicores)).toBe(text);
    expect(parseCpu(text)).toBe(millicores);
  });
  test.each<[number, string]>([
    [8 * 2 ** 30, '8Gi'],
    [12345 * 1024, '12345Ki'],
    [1536 * 2 ** 20, '1536Mi'],
    [7, '7'],
    [0, '0'],
    [2 ** 40, '1Ti'],
  ])('%i bytes are written %s', (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
    expect(parseBytes(text)).toBe(bytes);
  });
});

describe('technicalID', () => {
  test.each([
    ['default', 'demo', 'shoot--default--demo'],
    ['garden-dev', 'a', 'shoot--garden-dev--a'],
  ])('of %s/%s is %s', (namespace, name, expected) => expect(technicalID(namespace, name)).toBe(expected));

  const long = 'n'.repeat(63);
  const pairs: [string, string][] = [
    ['a', 'b--c'],
    ['a--b', 'c'],
    ['a', 'b'],
    ['a-b', 'c'],
    ['a', 'b-c'],
    [long, 'a'],
    [long, 'b'],
    ['a', long],
    [`${'n'.repeat(62)}m`, 'a'],
    [long, long],
    ['default', `${'x'.repeat(40)}-a`],
    ['default', `${'x'.repeat(40)}-b`],
    ['default', 'y'.repeat(47)],
    ['default', 'y'.repeat(48)],
  ];
  test('returns a valid namespace name, unique per shoot', () => {
    const ids = pairs.map(([namespace, name]) => technicalID(namespace, name));
    for (const id of ids) expect(id).toMatch(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])$/);
    expect(new Set(ids).size).toBe(pairs.length);
  });
  test('differs from a cut name that looks alike', () => {
    const cut = technicalID('default', 'x'.repeat(63));
    const [, namespace = '', ...rest] = cut.split('--');
    expect(technicalID(namespace, rest.join('--'))).not.toBe(cut);
  });
});

test('fitted keeps what fits and hashes what does not', () => {
  expect(fitName('a'.repeat(63))).toBe('a'.repeat(63));
  expect(fitName('a'.repeat(64))).toHaveLength(63);
  expect(fitName('a'.repeat(64))).not.toBe(fitName('a'.repeat(65)));
});

describe('conditions', () => {
  const first = new Date('2026-01-01T00:00:00.500Z');
  const later = new Date('2026-01-01T01:00:00Z');
  const ready = { type: 'Ready', status: 'True', reason: 'Up', message: '' } as const;

  test('setCondition changes the time only with the status', () => {
    const made = setCondition(undefined, ready, first);
    expect(made).toEqual([{ ...ready, lastTransitionTime: '2026-01-01T00:00:00Z' }]);
    expect(setCondition(made, ready, later)).toEqual(made);
    expect(setCondition(made, { ...ready, reason: 'Still' }, later)[0]?.lastTransitionTime).toBe(
      '2026-01-01T00:00:00Z',
    );
    expect(setCondition(made, { ...ready, status: 'False' }, later)[0]?.lastTransitionTime).toBe(
      '2026-01-01T01:00:00Z',
    );
  });
  test('setCondition keeps the order of other conditions', () => {
    const two = setCondition(setCondition([], ready, first), { ...ready, type: 'Other' }, first);
    expect(setCondition(two, { ...ready, status: 'False' }, later).map(({ type }) => type)).toEqual(['Ready', 'Other']);
  });
});

describe('errors', () => {
  test('have advice for every code', () => {
    for (const { advice } of Object.values(ERROR_CODES)) expect(advice.length).toBeGreaterThan(20);
  });
  test('are not retryable if any code is not', () => {
    expect(isRetryable([])).toBe(true);
    expect(isRetryable(['ERR_RETRYABLE_INFRA_DEPENDENCIES'])).toBe(true);
    expect(isRetryable(['ERR_RETRYABLE_INFRA_DEPENDENCIES', 'ERR_INFRA_QUOTA_EXCEEDED'])).toBe(false);
  });
  test('carry code, advice and cause', () => {
    const error = configurationProblem('machine type x is not in profile aws', 'choose one of a, b');
    expect(error).toBeInstanceOf(CoppiceError);
    expect(error).toMatchObject({ code: 'ERR_CONFIGURATION_PROBLEM', retryable: false, advice: 'choose one of a, b' });
    expect(errorText(error)).toBe('machine type x is not in profile aws. choose one of a, b');
  });
});
