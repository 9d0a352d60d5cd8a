import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { main } from '../../../operator/cli/main.ts';
import { createTerminal } from '../../../operator/cli/terminal.ts';
import { seedPossible } from '../../../operator/garden/host/capabilities.ts';
import { run } from '../../../operator/garden/host/command.ts';
import { readText } from '../../../operator/garden/host/files.ts';

vi.mock('../../../operator/garden/host/command.ts', async (original) => {
  const module = await original<{ run: typeof run }>();
  return { ...module, run: vi.fn(module.run) };
});
vi.mock('../../../operator/garden/host/files.ts', async (original) => {
  const module = await original<{ readText: typeof readText }>();
  return { ...module, readText: vi.fn(module.readText) };
});

const { platform } = process;
let home: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'coppice-capabilities-'));
});
afterEach(async () => {
  Object.defineProperty(process, 'platform', { value: platform });
  vi.restoreAllMocks();
  await rm(home, { recursive: true, force: true });
});

/** What `coppice start` says where it must not make anything. */
async function refused(): Promise<string> {
  let said = '';
  const write = (text: string) => {
    said += text;
  };
  const terminal = createTerminal({ out: { write }, err: { write }, env: {} });
  const env = { COPPICE_HOME: join(home, '.coppice'), HOME: home };
  expect(await main(['start'], terminal, env, new AbortController().signal)).toBe(1);
  expect(await readdir(home)).toEqual([]);
  return said;
}

it.each([
  ['darwin', 'macOS'],
  ['win32', 'Windows'],
])('says on %s in one line what is lacking and the way on, before anything is made', async (value, name) => {
  Object.defineProperty(process, 'platform', { value });
  expect(await seedPossible()).toEqual({ why: `this machine runs ${name}, and clusters run on Linux` });
  const cannot = `error: this garden cannot host WorkerCluster demo: this machine runs ${name}, `;
  expect(await refused()).toMatch(new RegExp(`^${cannot}.*--seed-kubeconfig FILE\\n$`));
});

it.each([
  [
    'kernel/apparmor_restrict_unprivileged_userns',
    '1',
    '"sysctl -w kernel.apparmor_restrict_unprivileged_userns=0", or loads an AppArmor profile that grants "userns" to unshare; ',
  ],
  ['kernel/unprivileged_userns_clone', '0', '"sysctl -w kernel.unprivileged_userns_clone=1"; '],
  ['user/max_user_namespaces', '0', '"sysctl -w user.max_user_namespaces=15000"; '],
])('tells an ordinary user whom %s keeps from namespaces what root can do', async (setting, value, remedy) => {
  Object.defineProperty(process, 'platform', { value: 'linux' });
  vi.spyOn(process, 'getuid').mockReturnValue(1000);
  vi.mocked(run).mockRejectedValue(new Error('unshare: write failed /proc/self/uid_map: Operation not permitted'));
  const { readText: original } = await vi.importActual<{ readText: typeof readText }>(
    '../../../operator/garden/host/files.ts',
  );
  vi.mocked(readText).mockImplementation(async (path) =>
    path.startsWith('/proc/sys/') ? (path.endsWith(setting) ? `${value}\n` : undefined) : original(path),
  );
  const said = await refused();
  expect(said).toContain(`ordinary users may not create user namespaces until root runs ${remedy}run it as root`);
  expect(said.trimEnd().split('\n')).toHaveLength(1);
});
