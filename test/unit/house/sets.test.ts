import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { checkTurns, LONGEST_WAIT } from '../../kit/rotation.ts';
import { entryOf, hasSet, listTestFiles, SETS, setOf, stagesOf, tellLeftOut, tierOf } from '../../kit/sets.ts';

const files = listTestFiles();
const namesOf = (folder: string) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `${folder}/${name}`);
/** What CI runs, by the rotation. */
const ofCI = Array.from({ length: 15 }, (_, rotation) => stagesOf('ci', rotation, files).flat());

describe('the sets of test files', () => {
  it('contain each file in exactly one set, and no entry without a file', () => {
    expect(files).toEqual(expect.arrayContaining(namesOf('test/e2e')));
    expect(files.filter((file) => entryOf(file) === undefined)).toEqual([]);
    const used = new Set(files.map(entryOf));
    expect(SETS.filter((entry) => !used.has(entry))).toEqual([]);
  });

  it('name each end-to-end file, so that a new one must be given a set', () => {
    expect(namesOf('test/e2e').filter((file) => entryOf(file) !== file)).toEqual([]);
    expect(() => setOf('test/e2e/new.test.ts')).toThrow('is in no set: give it one in test/kit/sets.ts');
    expect(() => setOf('test/integration/new/a.test.ts')).toThrow('is in no set');
  });

  it('run each rotating file at least once in four successive runs of CI', () => {
    const rotating = files.filter((file) => typeof setOf(file) === 'object');
    expect(rotating.length).toBeGreaterThan(0);
    for (const file of rotating) {
      const set = setOf(file);
      if (typeof set === 'object') checkTurns(set);
    }
    for (let first = 0; first + LONGEST_WAIT <= ofCI.length; first++) {
      const four = new Set(ofCI.slice(first, first + LONGEST_WAIT).flat());
      expect(rotating.filter((file) => !four.has(file))).toEqual([]);
    }
  });

  it('run all but Kubernetes 1.35 within four runs of CI, each file once a run, and the short run first', () => {
    const all = new Set(ofCI.slice(0, LONGEST_WAIT).flat());
    expect(files.filter((file) => !all.has(file))).toEqual(files.filter((file) => setOf(file) === 'all'));
    expect(stagesOf('all', 0).flat().toSorted()).toEqual(files);
    const [short, rest] = stagesOf('ci', 0);
    expect(short).toEqual(stagesOf('short', 0).flat());
    expect(rest!.filter((file) => short!.includes(file))).toEqual([]);
    expect(new Set(ofCI[0]).size).toBe(ofCI[0]!.length);
  });

  it('put all unit files and the listed end-to-end files into the short run', () => {
    const [short] = stagesOf('short', 0);
    const ofTier = (tier: string) => short!.filter((file) => tierOf(file) === tier);
    expect(ofTier('unit')).toEqual(files.filter((file) => tierOf(file) === 'unit'));
    expect(ofTier('e2e')).toEqual(
      ['burst', 'cli', 'deletion', 'local-cluster', 'scaling'].map((name) => `test/e2e/${name}.test.ts`),
    );
    expect(ofTier('integration').filter((file) => /\/(cloud|pulumi)\//.test(file))).toEqual([]);
  });

  it('keep the end-to-end files of the short run below seven minutes in two lanes, by the table of durations', () => {
    const durations = JSON.parse(readFileSync('test/durations.json', 'utf8')) as Record<string, number>;
    const seconds = files
      .filter((file) => setOf(file) === 'short' && tierOf(file) === 'e2e')
      .map((file) => durations[file] ?? Number.POSITIVE_INFINITY);
    expect(seconds.reduce((sum, took) => sum + took, 0) / 2).toBeLessThan(420);
  });
});

describe('the list of what a run leaves out', () => {
  it('names the files and the command that runs them, and is empty for a full run', () => {
    const some = [
      'test/unit/a.test.ts',
      'test/integration/cloud/a.test.ts',
      'test/e2e/chart.test.ts',
      'test/e2e/cli.test.ts',
    ];
    expect(tellLeftOut('short', 0, some)).toEqual([
      'not in this run, of integration: cloud/a',
      'not in this run, of e2e: chart',
      'not in this run: most cases of properties, and what rotates by the commit',
      'npm run test:all runs all of it; CONTRIBUTING.md has the command for one file',
    ]);
    expect(tellLeftOut('ci', 0, some)).toEqual([]);
    expect(tellLeftOut('all', 'all')).toEqual([]);
  });

  it('names in CI the files that rotation skips', () => {
    const flux = 'test/integration/hubs/flux.test.ts';
    expect([0, 1, 2].map((rotation) => hasSet('ci', setOf(flux), rotation))).toEqual([false, false, true]);
    expect(tellLeftOut('ci', 0, [flux])[0]).toBe('not in this run, of integration: hubs/flux');
    expect(tellLeftOut('ci', 2, [flux])).toEqual([]);
  });
});
