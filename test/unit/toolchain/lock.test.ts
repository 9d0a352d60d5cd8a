import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isAlive, ownIdentity } from '../../../operator/garden/host/process-identity.ts';
import { withLock } from '../../../operator/garden/toolchain/lock.ts';

const WORKER = fileURLToPath(new URL('./worker.ts', import.meta.url));
const WHOLE = 'piece\n'.repeat(10);

let dir: string;
const children: ChildProcess[] = [];
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'coppice-lock-'));
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await rm(dir, { recursive: true, force: true });
});

const start = (pieceMs: number) => {
  const child = spawn(process.execPath, [WORKER, dir, String(pieceMs)], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  let text = '';
  child.stdout.on('data', (data: Buffer) => {
    text += String(data);
  });
  const said = async (what: string) => {
    while (!text.includes(what)) await once(child.stdout, 'data');
  };
  const end = async () => {
    if (child.exitCode === null) await once(child, 'exit');
    return text.trim().split('\n').at(-1)!;
  };
  return { child, said, end };
};

const journal = async () => (await readFile(join(dir, 'journal'), 'utf8')).trim().split('\n');

describe('two processes with one cache', () => {
  test('build once, and both get the whole file', async () => {
    const [a, b] = [start(30), start(30)];
    const [fileA, fileB] = await Promise.all([a.end(), b.end()]);
    expect(fileA).toBe(fileB);
    expect(await readFile(fileA, 'utf8')).toBe(WHOLE);
    expect(await journal()).toHaveLength(1);
    expect(await readdir(join(dir, '.locks'))).toEqual([]);
  });

  test('continue when the first is killed midway', async () => {
    const first = start(1_000);
    await first.said('building');
    const second = start(1);
    await second.said('waiting');
    first.child.kill('SIGKILL');
    expect(await readFile(await second.end(), 'utf8')).toBe(WHOLE);
    expect(await journal()).toHaveLength(2);
    const left = await readdir(join(dir, '.work'));
    expect(left.some((entry) => entry.startsWith(`${first.child.pid}-`))).toBe(false);
  });
});

describe('withLock', () => {
  test('serializes within one process too', async () => {
    const file = join(dir, 'x.lock');
    let inside = 0;
    let most = 0;
    const work = async () => {
      most = Math.max(most, ++inside);
      await new Promise((resolve) => setTimeout(resolve, 5));
      inside--;
    };
    await Promise.all(Array.from({ length: 5 }, () => withLock(file, work, { pollMs: 1 })));
    expect(most).toBe(1);
  });

  test.each([
    ['of a process that has ended', JSON.stringify({ pid: 999_999_99, started: '' })],
    ['of an earlier process of the same number', JSON.stringify({ pid: process.pid, started: 'another-boot/1' })],
    ['that says nothing', ''],
  ])('takes over a lock %s', async (_, text) => {
    const file = join(dir, 'x.lock');
    await writeFile(file, text);
    expect(await withLock(file, async () => 'done')).toBe('done');
    expect(await readdir(dir)).toEqual([]);
  });

  test('releases after an error, and a wait can be aborted', async () => {
    const file = join(dir, 'x.lock');
    await expect(withLock(file, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    await withLock(file, async () => {
      const waiting = withLock(file, async () => {}, { signal: AbortSignal.timeout(20), pollMs: 5 });
      await expect(waiting).rejects.toThrow(/abort/i);
    });
    expect(await readdir(dir)).toEqual([]);
  });
});

test('this process is alive', async () => {
  expect(await isAlive(await ownIdentity())).toBe(true);
});
