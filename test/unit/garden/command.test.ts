import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { identityOf } from '../../../operator/garden/host/process-identity.ts';

const COMMAND = fileURLToPath(new URL('../../../operator/garden/host/command.ts', import.meta.url));

/** A process that ends while a command of its own goes on, and that would begin another. */
const ENDING = `
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { endCommands, run } from ${JSON.stringify(COMMAND)};
const file = process.argv[1];
const message = ({ message }) => message;
const first = run(['/bin/sh', '-c', 'sleep 300 & echo $! >"$0.new" && mv "$0.new" "$0" && wait', file]).catch(message);
while (!existsSync(file)) await sleep(5);
await endCommands();
const second = run(['/bin/true']).catch(message);
console.log(JSON.stringify({ first: await first, second: await second, pid: Number(readFileSync(file, 'utf8')) }));
`;

it.runIf(process.platform === 'linux')(
  'ends with the process that runs it, and so does what it has started; no other begins then',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'coppice-command-'));
    try {
      const args = ['--input-type=module', '-e', ENDING, join(folder, 'pid')];
      const { stdout } = await promisify(execFile)(process.execPath, args);
      const { first, second, pid } = JSON.parse(stdout);
      expect(first).toMatch(/ended by SIGKILL$/);
      expect(second).toMatch(/^\/bin\/true: /);
      await expect.poll(() => identityOf(pid)).toBeUndefined();
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
);
