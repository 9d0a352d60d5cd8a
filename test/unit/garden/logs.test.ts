import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { lastError } from '../../../operator/garden/processes/logs.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'coppice-logs-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function why(...lines: string[]): Promise<string> {
  const file = join(directory, 'a.log');
  await writeFile(file, `${lines.join('\n')}\n`);
  return lastError(file);
}

it.each([
  [
    'of the operator, in its words',
    '{"level":60,"time":"2026-11-21T12:35:07Z","err":"Error: The client is destroyed","msg":"a fault of Coppice itself"}',
    'a fault of Coppice itself: Error: The client is destroyed',
  ],
  ['of Kubernetes', 'E1121 12:36:38.838003 20439 run.go:72] "command failed" err="no"', undefined],
  ['of containerd', 'time="2026-11-21T12:36:38Z" level=fatal msg="no"', undefined],
  ['of Node', 'TypeError: a is not a function', undefined],
])('the line that says why a process ended is told, not what comes after it: %s', async (_, line, said = line) => {
  expect(
    await why('{"level":30,"msg":"all is well"}', line, '    at somewhere (file.ts:1:2)', '', 'Node.js v24.21.0'),
  ).toBe(said);
});

it('lastError is the last line where none looks like an error', async () => {
  expect(await why('first', '{"level":30,"msg":"stopping"}')).toBe('stopping');
  expect(await lastError(join(directory, 'none.log'))).toBe('');
});
