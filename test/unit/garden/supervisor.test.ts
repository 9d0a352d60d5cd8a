import { spawnSync } from 'node:child_process';
import { access, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readJson, writeAtomic } from '../../../operator/garden/host/files.ts';
import { identityOf, isAlive } from '../../../operator/garden/host/process-identity.ts';
import { boundLogs, lastError } from '../../../operator/garden/processes/logs.ts';
import { endLeftOvers } from '../../../operator/garden/processes/pid-files.ts';
import { endGroup, type PidFileContent } from '../../../operator/garden/processes/processes.ts';
import { backOff, Supervisor } from '../../../operator/garden/processes/supervisor.ts';
import { StateDirectory } from '../../../operator/garden/state/state.ts';
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

/** Waits next to nothing before it starts a process again. */
const hasty = () => new Supervisor({ directory, log: silent, backOff: () => 5 });
const only = (from = supervisor) => from.status()[0]!;
const until = async (what: () => boolean | Promise<boolean>) => {
  const deadline = Date.now() + 20_000;
  while (!(await what())) {
    if (Date.now() > deadline) throw new Error('not in time');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
};

it('the supervisor waits longer after each consecutive exit', () => {
  expect([0, 1, 2, 3, 4, 5, 6, 20].map(backOff)).toEqual([0, 100, 300, 900, 2700, 8100, 10_000, 10_000]);
});

describe.runIf(process.platform === 'linux')('Supervisor', () => {
  it('start resolves when the process is ready', async () => {
    const file = join(home, 'ready');
    await supervisor.start({
      name: 'a',
      command: sh(`/bin/sleep 0.1; echo yes >${file}; exec /bin/sleep 60`),
      ready: () => exists(file),
    });
    expect(await exists(file)).toBe(true);
    expect(only()).toMatchObject({ name: 'a', state: 'running', restarts: 0 });
  });

  it('the supervisor restarts a killed process and reports why it ended', async () => {
    await supervisor.start({ name: 'a', command: ['/bin/sleep', '60'], ready: async () => only().pid !== undefined });
    const { pid } = only();
    process.kill(pid!, 'SIGKILL');
    await until(() => only().restarts === 1 && only().pid !== undefined && only().pid !== pid);
    expect(only().lastExit).toContain('SIGKILL');
  });

  it('start gives up on a crashing process, with its last log line, while restarts continue', async () => {
    const file = join(home, 'mended');
    supervisor = hasty();
    const start = supervisor.start({
      name: 'a',
      command: sh(`[ -e ${file} ] && exec /bin/sleep 60; echo "Error: no such flag"; exit 1`),
      ready: () => exists(file),
    });
    await expect(start).rejects.toThrow('a did not become ready: exit code 1: Error: no such flag');
    await writeFile(file, '');
    await until(() => only().state === 'running' && only().pid !== undefined);
  });

  it("the supervisor takes over a dead daemon's process, and ends it on request", async () => {
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

  it('the supervisor restarts a left-over process with another command', async () => {
    const input = join(home, 'input');
    await writeFile(input, '1');
    const spec = { name: 'a', command: ['/bin/sleep', '60'], inputs: [input] };
    await supervisor.start(spec);
    await until(() => only().pid !== undefined);
    const { pid } = only();
    expect(await supervisor.refresh()).toEqual([]);
    await writeFile(input, '2');
    expect(await supervisor.refresh()).toEqual(['a']);
    await until(() => only().pid !== undefined);
    expect(only().pid).not.toBe(pid);
  });

  it('the supervisor ends an unwanted left-over process and forgets it', async () => {
    const dead = new Supervisor({ directory, log: silent });
    await dead.start({ name: 'a', command: sh('exec /bin/sleep 60') });
    await until(() => exists(directory.pidFile('a')));
    const left = (await readJson<PidFileContent>(directory.pidFile('a')))!;
    await supervisor.remove('a');
    expect(await isAlive(left)).toBe(false);
    expect(await exists(directory.pidFile('a'))).toBe(false);
    await dead.remove('a');
    expect([...supervisor.status(), ...dead.status()]).toEqual([]);
  });

  it('the supervisor never touches a foreign process with a reused PID', async () => {
    const own = (await identityOf(process.pid))!;
    const stale: PidFileContent = { pid: process.pid, started: `${own.started}0`, digest: 'x' };
    await writeAtomic(directory.pidFile('a'), JSON.stringify(stale));
    await endGroup(stale, 10);
    expect(await isAlive(own)).toBe(true);
    expect(await supervisor.start({ name: 'a', command: ['/bin/sleep', '60'] })).toBe(false);
    await until(() => only().pid !== undefined);
    expect(only().pid).not.toBe(process.pid);
  });

  it('the supervisor kills the whole group, including processes that ignore SIGTERM', async () => {
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

  /**
   * Puts what is no folder where a folder of the garden was, so that nothing can be written there. Returns how to mend it, in one step: the
   * supervisor may look, and write, at any moment.
   */
  async function unwritable(folder: string): Promise<() => Promise<void>> {
    const swap = async (target: string) => {
      await symlink(target, `${folder}.next`);
      await rename(`${folder}.next`, folder);
    };
    await rename(folder, `${folder}.aside`);
    await swap('/dev/null');
    return () => swap(`${folder}.aside`);
  }

  it('the supervisor runs nothing that it cannot record, and starts it once it can', async () => {
    const runs = join(home, 'runs');
    const command = sh(`echo $$ >>${runs}; exec /bin/sleep 60`);
    supervisor = hasty();
    await supervisor.start({ name: 'a', command, ready: () => exists(runs) });
    const mend = await unwritable(dirname(directory.pidFile('a')));
    process.kill(only().pid!, 'SIGKILL');
    await until(() => only().restarts > 3);
    expect(only().lastExit).toContain('cannot be recorded in');
    expect((await readFile(runs, 'utf8')).trim().split('\n')).toHaveLength(1);
    await mend();
    await until(async () => (await readFile(runs, 'utf8')).trim().split('\n').length === 2);
    const record = await readJson<PidFileContent>(directory.pidFile('a'));
    expect(await isAlive(record!)).toBe(true);
    expect(record?.pid).toBe(only().pid);
    expect(await readFile(runs, 'utf8')).toContain(`${record?.pid}\n`);
  });

  it('the supervisor continues after a failed attempt to start', async () => {
    supervisor = hasty();
    await supervisor.start({ name: 'a', command: ['/bin/sleep', '60'], ready: async () => only().pid !== undefined });
    const mend = await unwritable(dirname(directory.logFile('a')));
    process.kill(only().pid!, 'SIGKILL');
    await until(() => only().restarts > 3);
    expect(only().lastExit).toMatch(/^cannot be started: /);
    await mend();
    await until(() => only().pid !== undefined && only().state === 'running');
  });

  it('a supervisor killed during a start leaves no unrecorded process', async () => {
    const processes = new URL('../../../operator/garden/processes/processes.ts', import.meta.url).href;
    const folder = dirname(directory.pidFile('x'));
    const script = `
      import { writeSync } from 'node:fs';
      import { startDetached } from '${processes}';
      for (let i = 0; i < 8; i++) {
        const pidFile = { file: '${folder}/p' + i + '.json', digest: 'd' };
        writeSync(1, startDetached({ command: ['/bin/sleep', '60'] }, { logFile: '${directory.logFile('x')}', pidFile }).pid + ' ');
      }
      process.kill(process.pid, 'SIGKILL');
    `;
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    const pids = stdout.trim().split(' ').map(Number);
    expect(pids).toHaveLength(8);
    const recorded = async () =>
      (await Promise.all(pids.map((_, i) => readJson<PidFileContent>(directory.pidFile(`p${i}`))))).map(
        (one) => one?.pid,
      );
    for (const pid of pids)
      await until(async () => (await identityOf(pid)) === undefined || (await recorded()).includes(pid));
    await endLeftOvers(directory);
    for (const pid of pids) expect(await identityOf(pid)).toBeUndefined();
  });
});

it('logs stay small, and the explaining line is found', async () => {
  const file = directory.logFile('x');
  await writeFile(file, `I0101 fine\nE0101 it broke\nI0101 still here\n${'x'.repeat(100)}\n`);
  expect(await lastError(file)).toBe('E0101 it broke');
  await boundLogs(directory.path('log'), 50);
  expect(await readFile(file, 'utf8')).toBe('');
  expect(await readFile(`${file}.1`, 'utf8')).toContain('it broke');
});

it('a too long log is emptied, even without room for a copy', async () => {
  const file = directory.logFile('x');
  await writeFile(file, 'x'.repeat(100));
  await mkdir(`${file}.1`);
  await boundLogs(directory.path('log'), 50);
  expect(await readFile(file, 'utf8')).toBe('');
});
