import { spawnSync } from 'node:child_process';
import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readStatus, StatusFile } from '../../../operator/garden/daemon/status.ts';
import { Garden } from '../../../operator/garden/garden.ts';
import { readJson } from '../../../operator/garden/host/files.ts';
import { isAlive, ownIdentity } from '../../../operator/garden/host/process-identity.ts';
import type { PidFileContent } from '../../../operator/garden/processes/processes.ts';
import { Supervisor } from '../../../operator/garden/processes/supervisor.ts';
import { StateDirectory } from '../../../operator/garden/state/state.ts';
import { silent } from '../../../operator/kube/log.ts';

const home = await mkdtemp(join(tmpdir(), 'coppice-full-disk-'));
const mount = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'coppice-test', home], { encoding: 'utf8' });
const why = mount.status === 0 ? undefined : (mount.error?.message ?? mount.stderr).trim();

afterAll(async () => {
  if (!why) spawnSync('umount', ['-l', home]);
  await rm(home, { recursive: true, force: true });
});

describe.skipIf(why)(`a full disk${why ? ` (a small one cannot be mounted here: ${why})` : ''}`, () => {
  const directory = new StateDirectory(home);
  const filler = join(home, 'filler');
  let status: StatusFile;
  const supervisor = new Supervisor({
    directory,
    log: silent,
    backOff: () => 20,
    onChange: () => status?.touch(),
  });
  const fill = async () => {
    for (const size of [65_536, 4_096, 1])
      for (;;) {
        try {
          await appendFile(filler, Buffer.alloc(size));
        } catch (error) {
          expect((error as NodeJS.ErrnoException).code).toBe('ENOSPC');
          break;
        }
      }
  };
  const one = () => supervisor.status()[0]!;

  beforeAll(async () => {
    await directory.make();
    status = new StatusFile(directory.statusFile, await ownIdentity(), () => supervisor.status());
  });
  afterAll(() => supervisor.stop('a'));

  it('prevents unrecorded processes, and the process returns once there is space', async () => {
    await supervisor.start({ name: 'a', command: ['/bin/sleep', '60'], ready: async () => one().pid !== undefined });
    const { pid } = one();
    const shown = async () => (await readStatus(directory.statusFile))?.processes[0]?.pid;
    await expect.poll(shown).toBe(pid);
    await fill();
    process.kill(pid!, 'SIGKILL');
    await expect.poll(() => one().restarts).toBeGreaterThan(5);
    expect(one().lastExit).toMatch(/cannot be (recorded|started)/);

    await rm(filler);
    // A process that was begun writes its own record before it becomes the program: until then the file tells of the one before.
    const record = await vi.waitUntil(
      async () => {
        const kept = await readJson<PidFileContent>(directory.pidFile('a'));
        return one().state === 'running' && kept?.pid === one().pid && kept;
      },
      { timeout: 60_000 },
    );
    expect(record.pid).not.toBe(pid);
    expect(await isAlive(record)).toBe(true);
    await expect.poll(shown).toBe(record.pid);
  });

  it('is reported by "coppice up"', async () => {
    await expect(Garden.open({ home: join(home, 'another') }).up()).rejects.toThrow(
      /^the disk of .* has \d+ MiB left, and a garden needs 64 MiB to start; free some space there, then run "coppice up" again$/,
    );
  });
});
