import { chmod, chown, copyFile, link, mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UNSHARE } from '../../operator/garden/host/capabilities.ts';
import { toolsDirectory } from '../../operator/garden/toolchain/cache.ts';
import { COPPICE, type CommandResult, type RunOptions, runCommand } from './run.ts';

/** A number that no account of a machine has; no account is needed. */
const ID = 61_874;

/** An ordinary user, with a home and tools of its own: this one, or one that root becomes. */
export interface OrdinaryUser {
  home: string;
  run(command: readonly string[], options?: RunOptions): Promise<CommandResult>;
  coppice(args: readonly string[], options?: RunOptions): Promise<CommandResult>;
  /** Processes of this user and no other; empty when it is not of this test alone. */
  processes(): Promise<string[]>;
  remove(): Promise<void>;
}

/** The words before a command that an ordinary user is to run. */
const become = (): string[] =>
  process.getuid?.() === 0 ? ['setpriv', `--reuid=${ID}`, `--regid=${ID}`, '--clear-groups'] : [];

/** Why no ordinary user can have a garden here that hosts control planes, or undefined. */
export async function whyNoRootless(): Promise<string | undefined> {
  const [program, ...words] = [...become(), process.execPath, COPPICE];
  const readable = await runCommand(program, [
    ...words.slice(0, -1),
    '--eval',
    `fs.accessSync(${JSON.stringify(COPPICE)})`,
  ]);
  if (readable.code !== 0) return `an ordinary user may not read ${COPPICE}`;
  const [first, ...rest] = [...become(), ...UNSHARE, 'true'];
  const { code, stderr } = await runCommand(first, rest).catch((error: Error) => ({ code: -1, stderr: error.message }));
  return code === 0 ? undefined : `user namespaces: ${stderr.trim()}`;
}

/** Makes one. `tools` are linked, so that nothing is compiled, into a folder that it may write to. */
export async function ordinaryUser(tools = toolsDirectory()): Promise<OrdinaryUser> {
  const home = await mkdtemp(join(tmpdir(), 'coppice-user-'));
  await give(home);
  const own = join(home, 'tools');
  await linkTree(tools, own);
  const env = {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    HOME: home,
    COPPICE_HOME: join(home, '.coppice'),
    COPPICE_TOOLS: own,
  };
  const run = (command: readonly string[], options: RunOptions = {}) => {
    const [program = '', ...words] = [...become(), ...command];
    return runCommand(program, words, { ...options, env: { ...env, NO_COLOR: '1', ...options.env } });
  };
  return {
    home,
    run,
    coppice: (args, options) => run([COPPICE, ...args], options),
    processes: async () => {
      if (become().length === 0) return [];
      const { stdout } = await runCommand('ps', ['-o', 'stat=,pid=,args=', '-u', String(ID)]);
      // One that has ended, and that nobody has asked about, is nothing.
      return stdout.split('\n').filter((line) => line && !line.startsWith('Z'));
    },
    remove: () => rm(home, { recursive: true, force: true }),
  };
}

async function give(folder: string): Promise<void> {
  if (become().length > 0) await chown(folder, ID, ID);
}

/** Hard links, or copies of what others may not read or what lies on another disk. */
async function linkTree(from: string, to: string): Promise<void> {
  await mkdir(to);
  await give(to);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    // What others are making right now.
    if (entry.name === '.work') continue;
    if (entry.isDirectory()) await linkTree(source, target);
    else if (entry.isFile() && !entry.name.endsWith('.lock')) await linkFile(source, target);
  }
}

async function linkFile(source: string, target: string): Promise<void> {
  const { mode } = await stat(source);
  const isLinked =
    (mode & 0o004) !== 0 &&
    (await link(source, target).then(
      () => true,
      () => false,
    ));
  if (isLinked) return;
  await copyFile(source, target);
  await chmod(target, mode | 0o444);
}
