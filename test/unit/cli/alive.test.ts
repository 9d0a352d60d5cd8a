import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { projectFile } from '../../../operator/cli/invocation.ts';
import { writeKubeconfigText } from '../../../operator/pki/kubeconfig.ts';

let folder: string;
afterEach(() => rm(folder, { recursive: true, force: true }));

it('a command that waits between two tries stays alive without sockets or timers', async () => {
  folder = await mkdtemp(join(tmpdir(), 'coppice-alive-'));
  const file = join(folder, 'config');
  // Nothing listens there.
  await writeFile(
    file,
    writeKubeconfigText({ server: 'http://127.0.0.1:1', ca: '', token: 't', name: 'c', user: 'u' }),
  );
  const child = spawn(process.execPath, [projectFile('operator', 'cli', 'main.ts'), 'get', '-w', '--kubeconfig', file]);
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
    // The second try has failed: the command has waited in between.
    if (said.split('ECONNREFUSED').length > 3) child.kill('SIGINT');
  });
  const [code] = await once(child, 'close');
  expect(said).not.toContain('unsettled');
  expect(code).toBe(130);
});
