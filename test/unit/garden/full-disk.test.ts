import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readStatus, StatusFile } from '../../../operator/garden/daemon/status.ts';
import { ownIdentity } from '../../../operator/garden/host/process-identity.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coppice-full-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

it('the status file is written later when the disk was full', async () => {
  const run = join(folder, 'run');
  await writeFile(run, 'no folder: nothing can be written below it');
  const file = join(run, 'status.json');
  const status = new StatusFile(file, await ownIdentity(), () => []);
  status.set({ phase: 'ready' });
  await status.flush();
  expect(await readStatus(file)).toBeUndefined();
  await rename(run, `${run}.aside`);
  await expect.poll(async () => (await readStatus(file))?.phase).toBe('ready');
});

it.skipIf(!existsSync('/dev/full'))('a daemon on a full disk ends on request, and is not ended by a log line', () => {
  const log = new URL('../../../operator/kube/log-output.ts', import.meta.url).href;
  const script = `
    import { pino } from 'pino';
    import { steadyOutput } from '${log}';
    const log = pino({}, steadyOutput());
    log.info('one');
    log.info('two');
    setTimeout(() => process.exit(7), 50);
  `;
  const full = openSync('/dev/full', 'w');
  try {
    const args = ['--input-type=module', '-e', script];
    const { status, stderr } = spawnSync(process.execPath, args, {
      stdio: ['ignore', full, 'pipe'],
      encoding: 'utf8',
      // A test's environment would have the log leave out what it does when the process ends.
      env: { PATH: process.env.PATH },
      timeout: 60_000,
    });
    expect({ status, stderr }).toEqual({ status: 7, stderr: '' });
  } finally {
    closeSync(full);
  }
});
