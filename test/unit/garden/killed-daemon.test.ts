import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { writeAtomic } from '../../../operator/garden/files.ts';
import { Garden } from '../../../operator/garden/garden.ts';
import { chooseRanges } from '../../../operator/garden/ranges.ts';
import { StateDirectory } from '../../../operator/garden/state.ts';
import { Supervisor } from '../../../operator/garden/supervisor.ts';
import { silent } from '../../../operator/kube/log.ts';

let home: string;
let directory: StateDirectory;
let supervisor: Supervisor;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'coppice-killed-'));
  directory = new StateDirectory(home);
  supervisor = new Supervisor({ directory, log: silent });
  await directory.make();
  await directory.write({
    version: 1,
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

/** What a daemon that was killed has written last. */
const lastWords = () =>
  writeAtomic(
    directory.statusFile,
    JSON.stringify({
      daemon: { pid: process.pid, started: 'another boot/1' },
      phase: 'ready',
      processes: [],
      progress: { sequence: 0, events: [] },
    }),
  );

describe.runIf(process.platform === 'linux')('a garden whose daemon was killed', () => {
  it('is said to be unattended while anything of it runs, and to be stopped after that', async () => {
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
