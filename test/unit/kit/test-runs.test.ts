import { on as events } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { TestRuns } from '../../kit/test-runs.ts';

const REPORTER = fileURLToPath(new URL('../../kit/summary-reporter.ts', import.meta.url));
/** A vitest that starts on a busy machine. */
const PATIENCE_MS = 60_000;

let folder: string;
let said: string[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'coppice-test-runs-'));
  said = [];
  vi.spyOn(console, 'error').mockImplementation((line: string) => void said.push(line));
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

const file = (name: string, text: string) => writeFileSync(join(folder, `${name}.test.js`), text);
const args = (...files: string[]) => ['--root', folder, '--globals', '--reporter', REPORTER, ...files];
const summary = () => readFileSync(join(folder, 'summary.txt'), 'utf8');

describe('the runs of vitest', { timeout: PATIENCE_MS }, () => {
  it('are counted together, and failed tests are named', async () => {
    file('one', "it('a', () => {}); it.skip('b', () => {});");
    file(
      'two',
      "it('a', () => {}); it('b', () => { throw new Error('no\\nthe rest'); }); it('c', () => expect([1, 2]).toEqual([1]));",
    );
    const runs = new TestRuns(folder);
    await Promise.all([runs.run('first', args('one')), runs.run('second', args('two'))]);
    expect(runs.finish()).toEqual({
      line: '2 passed, 2 failed, 1 skipped',
      failures: ['two.test.js > b: no the rest', expect.stringMatching(/^two.test.js > c: expected .* \+ 2,/)],
      failed: true,
    });
    expect(summary()).toBe('2 passed, 2 failed, 1 skipped\n');
  });

  it('that are stopped fail with what they had counted, and so do runs left out', async () => {
    file('quick', "it('a', () => {}); it('b', () => {});");
    file(
      'slow',
      `it('never ends', () => { require('node:fs').writeFileSync('${folder}/begun', ''); return new Promise(() => {}); });`,
    );
    const runs = new TestRuns(folder);
    await runs.run('quick', args('quick'));
    const watcher = watch(folder);
    const slow = runs.run('slow', args('slow', '--testTimeout=0'));
    for await (const [, name] of events(watcher, 'change')) if (name === 'begun') break;
    watcher.close();
    expect(summary()).toMatch(/^2 passed, [1-9]/);
    runs.stop('its time is up');
    await slow;
    // Nothing of it is left: no garden is made anew after it.
    expect(await runs.run('left', args('quick'))).toBe(true);
    expect(runs.finish()).toMatchObject({ line: '2 passed, 3 failed', failed: true });
    expect(said).toContain('tests: stopped: its time is up');
    expect(said).toContain('tests: left was left out: its time is up');
  });

  it('beyond their time limit are ended, and fail', async () => {
    file('slow', "it('never ends', () => new Promise(() => {}));");
    const runs = new TestRuns(folder);
    await runs.run('slow', args('slow', '--testTimeout=0'), { limitSeconds: 2 });
    expect(runs.finish().failed).toBe(true);
    expect(said.join()).toContain('slow has not ended after 2 s');
  });
});
