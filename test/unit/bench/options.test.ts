import { describe, expect, it } from 'vitest';
import { needsGarden, parseOptions, SCENARIOS } from '../../bench/options.ts';

describe('parseOptions of the bench', () => {
  it('measures all scenarios ten times by default', () => {
    expect(parseOptions([])).toEqual({ runs: 10, scenarios: new Set(SCENARIOS), clusters: [100], help: false });
  });
  it('accepts values after a space and after =', () => {
    expect(parseOptions(['--runs', '3', '--only=garden']).scenarios).toEqual(new Set(['garden']));
    expect(parseOptions(['--runs=3']).runs).toBe(3);
  });
  it('combines topics', () => {
    expect(parseOptions(['--only', 'control-plane,grow']).scenarios).toEqual(new Set(['one', 'five', 'grow']));
  });
  it('accepts sizes of the scale test', () => {
    const options = parseOptions(['--only', 'scale', '--clusters', '100,500,1000']);
    expect(options).toMatchObject({ scenarios: new Set(['scale']), clusters: [100, 500, 1000] });
  });
  it('needs no garden for clouds, decisions and members of a hub', () => {
    expect(needsGarden(parseOptions(['--only', 'members']).scenarios)).toBe(false);
    expect(needsGarden(parseOptions(['--only', 'clouds']).scenarios)).toBe(false);
    expect(needsGarden(parseOptions(['--only', 'clouds,idle']).scenarios)).toBe(true);
  });
  it.each([
    [['--clusters', '100,many'], /not many/],
    [['--clusters', '0'], /from 1 to 10000/],
    [['--runs', '0'], /number from 1/],
    [['--runs', 'many'], /not many/],
    [['--runs'], /needs a value/],
    [['--only', 'constructor'], /but not constructor/],
    [['--fast'], /unknown argument --fast/],
    [['one'], /unknown argument one/],
  ])('refuses %o', (args, message) => {
    expect(() => parseOptions(args)).toThrow(message);
  });
});
