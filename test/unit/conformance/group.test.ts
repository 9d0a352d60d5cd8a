import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runGroup } from '../../conformance/group.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coppice-group-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** As ginkgo does: waits for what it has started, whoever is interrupted. */
const PARENT = `
process.on('SIGINT', () => {});
require('node:child_process').spawn(process.execPath, [process.argv[2]], { stdio: 'inherit' }).on('close', () => console.log('all ended'));
`;
const TEST_PROCESS = `
process.on('SIGINT', () => { console.log('tidied up'); process.exit(); });
setInterval(() => {}, 1000);
console.log('ready');
`;

async function started(limitMs: number, onOutput: (text: string, interrupt: () => void) => void): Promise<string> {
  const [parent, child, log] = ['parent.cjs', 'child.cjs', 'log'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  await writeFile(parent, PARENT);
  await writeFile(child, TEST_PROCESS);
  const interruption = new AbortController();
  const { signal: interrupted } = interruption;
  const told = (text: string) => onOutput(text, () => interruption.abort());
  await runGroup(process.execPath, [parent, child], { log, interrupted, limitMs, onOutput: told });
  return readFile(log, 'utf8');
}

test('an interrupted test run cleans up, and its starter ends', async () => {
  const log = await started(120_000, (text, interrupt) => text.includes('ready') && interrupt());
  expect(log).toBe('ready\ntidied up\nall ended\n');
}, 120_000);

test('a test run beyond its limit is ended with all its processes', async () => {
  // Its output closes only when nobody has it open any more.
  expect(await started(500, () => {})).not.toContain('all ended');
}, 120_000);
