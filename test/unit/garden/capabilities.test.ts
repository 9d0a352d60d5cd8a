import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { main } from '../../../operator/cli/main.ts';
import { createTerminal } from '../../../operator/cli/terminal.ts';
import { seedPossible } from '../../../operator/garden/capabilities.ts';

const { platform } = process;
let home: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'coppice-capabilities-'));
});
afterEach(async () => {
  Object.defineProperty(process, 'platform', { value: platform });
  await rm(home, { recursive: true, force: true });
});

it('says on macOS in one line what is lacking and the way on, before anything is made', async () => {
  Object.defineProperty(process, 'platform', { value: 'darwin' });
  expect(await seedPossible()).toEqual({
    why: 'this machine runs macOS, and nodes need Linux; user namespaces need Linux',
  });
  let said = '';
  const write = (text: string) => {
    said += text;
  };
  const terminal = createTerminal({ out: { write }, err: { write }, env: {} });
  const env = { COPPICE_HOME: join(home, '.coppice'), HOME: home };
  expect(await main(['start'], terminal, env, new AbortController().signal)).toBe(1);
  expect(said).toMatch(
    /^error: this garden cannot host WorkerCluster demo: this machine runs macOS, .*--seed-kubeconfig FILE\n$/,
  );
  expect(await readdir(home)).toEqual([]);
});
