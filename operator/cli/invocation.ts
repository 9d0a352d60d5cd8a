import { realpathSync } from 'node:fs';
import { isAbsolute, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ToolCache, toolsDirectory } from '../garden/toolchain/cache.ts';
import { inPersonsPath } from '../garden/toolchain/persons-path.ts';
import { CliError } from './errors.ts';

type Env = Record<string, string | undefined>;

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Absolute path of a file of the project. */
export const projectFile = (...parts: string[]): string => join(ROOT, ...parts);

/** The person's working directory: npm changes directory and passes the original in INIT_CWD. */
export const personsFolder = (env: Env): string => env.INIT_CWD || process.cwd();

/**
 * Changes to the person's working directory. npm runs the script `start` in the project's folder, but file names are relative to
 * where the person is. Ignores a script `start` of another project. Throws CliError if the directory no longer exists.
 */
export function enterPersonsFolder(
  env: Env,
  enter: (folder: string) => void = (folder) => process.chdir(folder),
): void {
  const { npm_lifecycle_event: script, npm_package_json: project, INIT_CWD: folder } = env;
  if (script !== 'start' || !project || !folder || !sameFile(project, projectFile('package.json'))) return;
  try {
    enter(folder);
  } catch (error) {
    throw new CliError(
      `folder ${folder}, in which npm was called, cannot be entered (${(error as NodeJS.ErrnoException).code})`,
      {
        advice: 'call "npm start" in one that exists',
        cause: error,
      },
    );
  }
}

/** A path as the person would type it: relative if that is shorter. */
export function shownPath(path: string, from: string): string {
  const short = relative(from, path);
  if (short === '') return '.';
  return short.length < path.length && !isAbsolute(short) && !short.startsWith('../../..') ? short : path;
}

/** How to call coppice in a printed command: its name if PATH has it, else its path. */
export function howToCallCoppice(env: Env): string {
  const wrapper = projectFile('bin', 'coppice');
  const found = inPersonsPath('coppice', env.PATH ?? '');
  if (found !== undefined && sameFile(found, wrapper)) return 'coppice';
  const short = shownPath(wrapper, personsFolder(env));
  return quote(short.includes('/') ? short : `./${short}`);
}

/** How another program calls coppice from any directory: its name if PATH has it, else its absolute path. */
export function pathOfCoppice(env: Env): string {
  const wrapper = projectFile('bin', 'coppice');
  const found = inPersonsPath('coppice', env.PATH ?? '');
  return found !== undefined && sameFile(found, wrapper) ? 'coppice' : wrapper;
}

/** The command line of `start`, to be printed for repeating. */
export const howToStart = (env: Env): string =>
  env.npm_lifecycle_event === 'start' ? 'npm start' : `${howToCallCoppice(env)} start`;

/** How to call kubectl: its name if PATH has it, else the garden's own, which may not be installed yet. */
export async function howToCallKubectl(env: Env): Promise<{ kubectl: string; isThere: boolean }> {
  if (inPersonsPath('kubectl', env.PATH ?? '') !== undefined) return { kubectl: 'kubectl', isThere: true };
  const cache = new ToolCache(toolsDirectory(env));
  const isThere = (await cache.find('kubectl')) !== undefined;
  return { kubectl: quote(cache.file('kubectl')), isThere };
}

function sameFile(a: string, b: string): boolean {
  try {
    return realpathSync(a) === realpathSync(b);
  } catch {
    return false;
  }
}

/** The text quoted for a shell. */
export const quote = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
