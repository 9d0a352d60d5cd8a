import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { listTiers } from '../../kit/tiers.ts';
import { maskOutput } from '../../kit/transcripts/masks.ts';
import { drawRecording } from '../../kit/transcripts/recording.ts';
import { Shell } from '../../kit/transcripts/shell.ts';
import { ELSEWHERE, stepsOf, withOutputs } from '../../kit/transcripts/steps.ts';
import { PAGES, ROOT } from '../../kit/transcripts/walk.ts';

const read = (name: string): string => readFileSync(join(ROOT, name), 'utf8');

describe('the outputs of docs pages', () => {
  it.each([
    [
      'ages, and columns as wide as what is left',
      'NAME                     STATUS   AGE   VERSION\nmachines-default-2l4dz   Ready    35s   v1.36.3\n',
      'NAME                      STATUS   AGE     VERSION\nmachines-default-<hash>   Ready    <age>   v1.36.3',
    ],
    [
      'a line below a table, which is none of its rows',
      'NAME              AGE\npeak-gcp-c7671a   1m5s\nSIMULATED: peak-gcp-c7671a has simulated nodes.\n',
      'NAME              AGE\npeak-gcp-<hash>   <age>\nSIMULATED: peak-gcp-<hash> has simulated nodes.',
    ],
    [
      'a tree, and cells that are empty',
      'NAME            READY   SINCE   MESSAGE\n├─Network                       pods 100.96.0.0/11\n│ └─Machine/a   True    4m14s\n  └─Pool/b      True    5s\n',
      'NAME            READY   SINCE   MESSAGE\n├─Network                       pods 100.96.0.0/11\n│ └─Machine/a   True    <age>\n  └─Pool/b      True    <age>',
    ],
    [
      'progress, times and money',
      '[   2s] WorkerCluster demo: is Ready\n[   3m] it has joined\n2026-11-28T23:50:59Z  it was gone 6 s after, and has cost 0.004183 USD in all\n',
      '<time>  it was gone <n> s after, and has cost <n> USD in all',
    ],
  ])('are masked: %s', (_, output, masked) => {
    expect(maskOutput(output)).toBe(masked);
    expect(maskOutput(masked)).toBe(masked);
  });

  it('are written after the command block that printed them', () => {
    const page = '# A\n```sh\none   # first\ntwo \\\n  --more\n```\n```text\nold\n```\nB\n```sh\nthree\n```\n';
    expect(stepsOf(page)).toEqual([
      { commands: ['one', 'two    --more'], line: 3, output: 'old' },
      { commands: ['three'], line: 12 },
    ]);
    const written = withOutputs(page, ['new\n$1']);
    expect(stepsOf(written)[0]!.output).toBe('new\n$1');
    expect(withOutputs(written, ['old'])).toBe(page);
  });

  it.each(PAGES)('%s contains only masked outputs of the script', (name) => {
    for (const { output, line } of stepsOf(read(name))) {
      if (output === undefined) continue;
      expect(output, `line ${line}`).not.toBe('');
      expect(maskOutput(output), `line ${line}`).toBe(output);
    }
  });

  it('omit no command that no other test runs', () => {
    const commands = new Set(PAGES.flatMap((name) => stepsOf(read(name))).flatMap((step) => step.commands));
    for (const [command, file] of Object.entries(ELSEWHERE)) {
      expect(commands).toContain(command);
      expect(existsSync(join(ROOT, file)), file).toBe(true);
      const words = command.split(' ').slice(1);
      expect(words.every((word) => read(file).includes(word))).toBe(true);
    }
  });
});

it('a recording shows each line at six times its speed, without long pauses', () => {
  const drawn = drawRecording('a "run"', [
    { second: 0, text: '$ run' },
    { second: 6, text: '[   6s] a < b' },
    { second: 66, text: `[  66s] ${'word '.repeat(30)}end` },
  ]);
  expect([...drawn.matchAll(/animation-delay:([\d.]+)s/g)].map(([, delay]) => delay)).toEqual([
    '0.00',
    '1.00',
    '3.50',
    '3.50',
  ]);
  expect(drawn).toContain('aria-label="a &quot;run&quot;"');
  expect(drawn).toContain('[   6s] a &lt; b');
  expect(drawn).toContain('prefers-reduced-motion');
});

describe('the shell for docs pages', () => {
  it('keeps aliases and variables, and returns exit code and output', async () => {
    const shell = new Shell(ROOT, { PATH: process.env.PATH });
    await shell.run('alias say=echo; there=here');
    expect(await shell.run('say "$there"; echo wrong >&2')).toEqual({ code: 0, output: 'here\nwrong\n' });
    expect(await shell.run('false')).toEqual({ code: 1, output: '' });
    await shell.end();
  });

  it('rejects when the shell ends or a command does not', async () => {
    const shell = new Shell(ROOT, { PATH: process.env.PATH });
    await expect(shell.run('sleep 60', 50)).rejects.toThrow('sleep 60: did not end');
    const other = new Shell(ROOT, { PATH: process.env.PATH });
    await expect(other.run('exit 3')).rejects.toThrow('the shell ended');
    shell.kill();
  });
});

it('CONTRIBUTING.md contains the table that `npm test -- --list` prints', () => {
  expect(read('CONTRIBUTING.md')).toContain(listTiers());
});
