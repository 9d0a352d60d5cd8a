import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { writeAtomic } from '../../../operator/garden/files.ts';
import { boundLogs, lastError } from '../../../operator/garden/logs.ts';
import { identityOf, isAlive } from '../../../operator/garden/process-identity.ts';
import { endGroup, type ProcessRecord } from '../../../operator/garden/processes.ts';
import { StateDirectory } from '../../../operator/garden/state.ts';
import { backOff, Supervisor } from '../../../operator/garden/supervisor.ts';
import { silent } from '../../../operator/kube/log.ts';

let home: string;
let directory: StateDirectory;
let supervisor: Supervisor;
const sh = (script: string) => ['/bin/sh', '-c', script];
const exists = (file: string) =>
  access(file).then(
    () => true,
    () => false,
  );

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'coppice-supervisor-'));
  directory = new StateDirectory(home);
  await directory.make();
  supervisor = new Supervisor({ directory, log: silent });
});
afterEach(async () => {
  for (const { name } of supervisor.status()) await supervisor.stop(name);
  await rm(home, { recursive: true, force: true });
});

const only = (from = supervisor) => from.status()[0]!;
const until = async (what: () => boolean | Promise<boolean>) => {
  const deadline = Date.now() + 5_000;
  while (!(await what())) {
    if (Date.now() > deadline) throw new Error('not in time');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
};

it('waits longer after each end in a row', () => {
  expect([0, 1, 2, 3, 4, 5, 6, 20].map(backOff)).toEqual([0, 100, 300, 900, 2700, 8100, 10_000, 10_000]);
});

describe.runIf(process.platform === 'linux')('Supervisor', () => {
  it('resolves when the process is ready', async () => {
    const file = join(home, 'ready');
    await supervisor.start({
      name: 'a',
      command: sh(`/bin/sleep 0.1; echo yes >${file}; exec /bin/sleep 60`),
      ready: () => exists(file),
    });
    expect(await exists(file)).toBe(true);
    expect(only()).toMatchObject({ name: 'a', state: 'running', restarts: 0 });
  });

  it('starts a killed process again and says why it ended', async () => {
    await supervisor.start({ name: 'a', command: ['/bin/sleep', '60'], ready: async () => only().pid !== undefined });
    const { pid } = only();
    process.kill(pid!, 'SIGKILL');
    await until(() => only().restarts === 1 && only().pid !== undefined && only().pid !== pid);
    expect(only().lastExit).toContain('SIGKILL');
  });

  it('gives up waiting for one that dies again and again, with its last words', async () => {
    const start = supervisor.start({
      name: 'a',
      command: sh('echo "Error: no such flag"; exit 1'),
      ready: async () => only().restarts > 9,
    });
    supervisor.status();
    await expect(
      Promise.race([start, new Promise((_, reject) => setTimeout(() => reject(new Error(only().lastExit)), 700))]),
    ).rejects.toThrow(/exit code 1: Error: no such flag/);
    await supervisor.stop('a');
    start.catch(() => {});
  });

  it('takes over what a dead daemon left running, and ends it when asked', async () => {
    const spec = { name: 'a', command: ['/bin/sleep', '60'], ready: async () => true };
    await supervisor.start(spec);
    await until(() => exists(directory.pidFile('a')));
    const next = new Supervisor({ directory, log: silent });
    expect(await next.start(spec)).toBe(true);
    const { pid } = only(next);
    expect(pid).toBe(only().pid);
    await supervisor.stop('a');
    await next.stop('a');
    expect(await identityOf(pid!)).toBeUndefined();
    expect(await exists(directory.pidFile('a'))).toBe(false);
  });

  it('starts a left-over process anew when it should be another', async () => {
    const input = join(home, 'input');
    await writeFile(input, '1');
    const spec = { name: 'a', command: ['/bin/sleep', '60'], inputs: [input] };
    await supervisor.start(spec);
    await until(() => exists(directory.pidFile('a')));
    const { pid } = only();
    expect(await supervisor.refresh()).toEqual([]);
    await writeFile(input, '2');
    expect(await supervisor.refresh()).toEqual(['a']);
    await until(() => only().pid !== undefined);
    expect(only().pid).not.toBe(pid);
  });

  it('never touches a stranger who got the number of a dead process', async () => {
    const own = (await identityOf(process.pid))!;
    const stale: ProcessRecord = { pid: process.pid, started: `${own.started}0`, digest: 'x' };
    await writeAtomic(directory.pidFile('a'), JSON.stringify(stale));
    await endGroup(stale, 10);
    expect(await isAlive(own)).toBe(true);
    expect(await supervisor.start({ name: 'a', command: ['/bin/sleep', '60'] })).toBe(false);
    await until(() => only().pid !== undefined);
    expect(only().pid).not.toBe(process.pid);
  });

  it('kills the whole group, and what does not listen', async () => {
    const file = join(home, 'child');
    await supervisor.start({
      name: 'a',
      command: sh(`trap "" TERM; /bin/sleep 60 & echo $! >${file}; while :; do wait; done`),
      ready: () => exists(file),
      graceMs: 100,
    });
    const child = Number(await readFile(file, 'utf8'));
    await supervisor.stop('a');
    await until(async () => (await identityOf(child)) === undefined);
    expect(only().state).toBe('stopped');
  });
});

it('keeps logs small and finds the telling line', async () => {
  const file = directory.logFile('x');
  await writeFile(file, `I0101 fine\nE0101 it broke\nI0101 still here\n${'x'.repeat(100)}\n`);
  expect(await lastError(file)).toBe('E0101 it broke');
  await boundLogs(directory.path('log'), 50);
  expect(await readFile(file, 'utf8')).toBe('');
  expect(await readFile(`${file}.1`, 'utf8')).toContain('it broke');
});
