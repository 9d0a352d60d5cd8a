import { randomBytes } from 'node:crypto';
import { access, chmod, constants, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { readText, writeAtomic } from '../host/files.ts';
import { isAlive, ownIdentity } from '../host/process-identity.ts';
import { cacheFolder, programOf, type ToolName, toolBundleOf } from './tools.ts';

type Environment = Record<string, string | undefined>;

/** Folder of everything of Coppice's that is no garden's state: $COPPICE_HOME or ~/.coppice. */
export const coppiceHome = (env: Environment = process.env): string => env.COPPICE_HOME || join(homedir(), '.coppice');

/** Folder of tools and images: $COPPICE_TOOLS or `tools` in Coppice's home. */
export const toolsDirectory = (env: Environment = process.env): string =>
  env.COPPICE_TOOLS || join(coppiceHome(env), 'tools');

/** Whether a file is executable and not empty. */
export async function isExecutable(file: string): Promise<boolean> {
  try {
    const info = await stat(file);
    if (!info.isFile() || info.size === 0) return false;
    await access(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * The tools folder: `<dir>/<tool>-<version>/<tool>`. Files are built in `<dir>/.work/<process>` and renamed, so an
 * existing file is always complete, whichever processes use the folder.
 */
export class ToolCache {
  readonly dir: string;

  constructor(dir: string) {
    this.dir = dir;
  }

  /** Path of a tool, present or not. */
  file(name: ToolName): string {
    return join(this.dir, cacheFolder(name), programOf(name));
  }

  /** A tool's file, if its whole bundle is present. */
  async find(name: ToolName): Promise<string | undefined> {
    const all = await Promise.all(toolBundleOf(name).map((other) => isExecutable(this.file(other))));
    return all.every(Boolean) ? this.file(name) : undefined;
  }

  /** Records distribution packages installed for tools: `coppice down` reports them. */
  async noteInstalled(packages: readonly string[]): Promise<void> {
    const all = new Set([...(await this.installedPackages()), ...packages]);
    await writeAtomic(this.#packagesFile, `${[...all].sort().join('\n')}\n`, 0o644);
  }

  async installedPackages(): Promise<string[]> {
    return ((await readText(this.#packagesFile)) ?? '').split('\n').filter(Boolean);
  }

  get #packagesFile(): string {
    return join(this.dir, 'installed-packages');
  }

  lockFile(name: string): string {
    return join(this.dir, '.locks', `${name}.lock`);
  }

  /** A new working folder on the cache's file system. Removed by the caller, or after its death by the next caller. */
  async workFolder(): Promise<string> {
    await this.#sweep();
    const { pid, started } = await ownIdentity();
    const process = `${pid}-${encodeURIComponent(started)}`;
    const folder = join(this.dir, '.work', process, randomBytes(4).toString('hex'));
    await mkdir(folder, { recursive: true });
    return folder;
  }

  /** Moves a finished executable into the cache. Safe against a crash of the machine and against repetition. */
  async install(name: ToolName, from: string): Promise<string> {
    await chmod(from, 0o755);
    const handle = await open(from, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
    const to = this.file(name);
    await mkdir(join(this.dir, cacheFolder(name)), { recursive: true });
    await rename(from, to);
    return to;
  }

  async #sweep(): Promise<void> {
    const work = join(this.dir, '.work');
    for (const entry of await readdir(work).catch(() => [])) {
      const dash = entry.indexOf('-');
      const identity = { pid: Number(entry.slice(0, dash)), started: decodeURIComponent(entry.slice(dash + 1)) };
      if (!(await isAlive(identity))) await rm(join(work, entry), { recursive: true, force: true });
    }
  }
}
