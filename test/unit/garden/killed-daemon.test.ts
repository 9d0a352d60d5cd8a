import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Garden } from '../../../operator/garden/garden.ts';
import { readJson, writeAtomic } from '../../../operator/garden/host/files.ts';
import { identityOf, isAlive } from '../../../operator/garden/host/process-identity.ts';
import { chooseRanges } from '../../../operator/garden/host/ranges.ts';
import { type PidFileContent, startDetached } from '../../../operator/garden/processes/processes.ts';
import { Supervisor } from '../../../operator/garden/processes/supervisor.ts';
import { StateDirectory } from '../../../operator/garden/state/state.ts';
import { withLock } from '../../../operator/garden/toolchain/lock.ts';
import { silent } from '../../../operator/kube/log.ts';

const whyNoPs = (await identityOf(process.pid, '')) ? undefined : 'there is no ps that tells when a process has begun';

let home: string;
let directory: StateDirectory;
let supervisor: Supervisor;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'coppice-killed-'));
  directory = new StateDirectory(home);
  supervisor = new Supervisor({ directory, log: silent });
  await directory.make();
  await directory.write({
    id: directory.id,
    createdAt: '2026-01-01T00:00:00Z',
    ports: { apiserver: 1, etcd: 2, etcdPeer: 3 },
    ranges: chooseRanges(directory.id, [])!,
    seed: 'none',
  });
});
afterEach(async () => {
  await supervisor.stop('a');
  await rm(home, { recursive: true, force: true });
});

/** What a daemon has written last; by default one that was killed. */
const lastWords = (daemon = { pid: process.pid, started: 'another boot/1' }, phase = 'ready', code?: string) =>
  writeAtomic(
    directory.statusFile,
    JSON.stringify({
      daemon,
      phase,
      processes: [],
      progress: { sequence: 0, events: [{ stage: 'garden', message: phase }] },
      ...(code && { code }),
    }),
  );

it('a garden is not created by a stop', async () => {
  const nowhere = join(home, 'nowhere');
  await Garden.open({ home: nowhere }).stop();
  expect(existsSync(nowhere)).toBe(false);
});

it('a garden is stopped after a concurrent change is complete', async () => {
  const garden = Garden.open({ home });
  const steps: string[] = [];
  const { promise: other, resolve: done } = Promise.withResolvers<void>();
  const { promise: held, resolve: hold } = Promise.withResolvers<void>();
  const holder = withLock(directory.changeLock, async () => {
    hold();
    await other;
    steps.push('changed');
  });
  await held;
  const stopped = garden.stop().then(() => steps.push('stopped'));
  done();
  await Promise.all([holder, stopped]);
  expect(steps).toEqual(['changed', 'stopped']);
});

describe.runIf(process.platform === 'linux')('a garden whose daemon was killed', () => {
  it('a garden is unattended while any of its processes runs, and stopped afterwards', async () => {
    await lastWords();
    const pid = () => supervisor.status()[0]?.pid;
    await supervisor.start({ name: 'a', command: ['/bin/sleep', '60'], ready: async () => pid() !== undefined });
    const garden = Garden.open({ home });
    await expect.poll(async () => (await garden.status()).phase).toBe('unattended');
    expect((await garden.status()).running).toBe(false);
    await supervisor.stop('a');
    expect((await garden.status()).phase).toBe('stopped');
  });
});

describe.runIf(process.platform === 'linux')('a daemon of another version of Coppice', () => {
  it('a starting daemon is awaited, as it may be installing system packages', async () => {
    const other = spawn('/bin/sleep', ['600'], { detached: true, stdio: 'ignore' });
    await once(other, 'spawn');
    try {
      const daemon = (await identityOf(other.pid!))!;
      await lastWords(daemon, 'starting', 'of another version');
      const { promise: waits, resolve: saysSo } = Promise.withResolvers<void>();
      const up = Garden.open({ home }).up({ onProgress: () => saysSo() });
      await Promise.race([waits, up]);
      await lastWords(daemon, 'ready', 'of another version');
      expect((await up).id).toBe(directory.id);
      expect(await isAlive(daemon)).toBe(true);
    } finally {
      other.kill('SIGKILL');
    }
  });

  it('a foreground command does not report a garden dead while its daemon may be replaced', async () => {
    await lastWords();
    const stop = new AbortController();
    const ended = Garden.open({ home }).whenEnded(stop.signal);
    // Longer than it takes to look twice.
    expect(await Promise.race([ended, delay(1_200, 'not yet')])).toBe('not yet');
    await lastWords((await identityOf(process.pid))!);
    stop.abort();
    expect(await ended).toBeUndefined();
    await lastWords(undefined, 'failed');
    expect(await Garden.open({ home }).whenEnded(new AbortController().signal)).toBe('dead');
  });
});

it('a foreground command reports a deleted garden as deleted, and a stopped one only where its state stays', async () => {
  const look = () => Garden.open({ home }).whenEnded(new AbortController().signal);
  await lastWords(undefined, 'stopped');
  expect(await look()).toBe('stopped');
  const { promise: held, resolve: hold } = Promise.withResolvers<void>();
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const deleting = withLock(directory.changeLock, async () => {
    hold();
    await over;
    await rm(directory.root, { recursive: true });
  });
  await held;
  const ended = look();
  // As long as it takes to look more than twice: processes and networks are taken down meanwhile.
  expect(await Promise.race([ended, delay(1_700, 'not yet')])).toBe('not yet');
  end();
  await deleting;
  expect(await ended).toBe('gone');
});

describe.runIf(process.platform === 'linux')('a garden after a reboot', () => {
  it('a garden ends no process that reused a PID of its own', async () => {
    const stranger = spawn('/bin/sleep', ['600'], { detached: true, stdio: 'ignore' });
    await once(stranger, 'spawn');
    try {
      const { pid, started } = (await identityOf(stranger.pid!))!;
      // Same number, and as long after the boot, which was another one.
      const before = { pid, started: started.replace(/^[^/]+/, 'another-boot') };
      const record = JSON.stringify({ ...before, digest: 'x' });
      for (const name of ['etcd', 'daemon-0badcafe']) await writeAtomic(directory.pidFile(name), record);
      await writeAtomic(directory.daemonLock, JSON.stringify({ ...before, nonce: 'x' }));
      await lastWords(before);

      const garden = Garden.open({ home });
      expect((await garden.status()).phase).toBe('stopped');
      await garden.stop();
      expect(await supervisor.start({ name: 'etcd', command: ['/bin/sleep', '60'] })).toBe(false);
      await supervisor.stop('etcd');
      await withLock(directory.daemonLock, async () => {});
      expect(stranger.exitCode ?? stranger.signalCode).toBeNull();
      expect(await isAlive({ pid, started })).toBe(true);
    } finally {
      stranger.kill('SIGKILL');
    }
  });
});

it.skipIf(whyNoPs !== undefined)(
  `tells processes apart where there is no /proc${whyNoPs ? ` (skipped: ${whyNoPs})` : ''}`,
  async () => {
    await mkdir(dirname(directory.logFile('a')), { recursive: true });
    const record = { file: directory.pidFile('a'), digest: 'd' };
    const child = startDetached(
      { command: ['/bin/sleep', '60'] },
      { logFile: directory.logFile('a'), pidFile: record },
      '',
    );
    try {
      await expect.poll(() => readJson<PidFileContent>(record.file)).toBeDefined();
      const written = (await readJson<PidFileContent>(record.file))!;
      expect(written).toEqual({ ...(await identityOf(child.pid!, '')), digest: 'd' });
      expect(await isAlive(written)).toBe(true);
      expect(await isAlive({ ...written, started: 'Thu Jan 1 00:00:00 1970' })).toBe(false);
      expect(await isAlive({ pid: process.pid, started: '' })).toBe(false);
    } finally {
      child.kill('SIGKILL');
    }
  },
);
