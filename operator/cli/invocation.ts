import { realpathSync } from 'node:fs';
import { isAbsolute, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ToolCache, toolsDirectory } from '../garden/toolchain/cache.ts';
import { inPersonsPath } from '../garden/toolchain/persons-path.ts';
import { CliError } from './errors.ts';

type Env = Record<string, string | undefined>;

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A file of the project. */
export const projectFile = (...parts: string[]): string => join(ROOT, ...parts);

/** Where the person stands: npm changes the working directory and tells where it was called. */
export const personsFolder = (env: Env): string => env.INIT_CWD || process.cwd();

/**
 * npm runs script `start` of this project in the project's folder; the files that a person names are where the person stands. A script of that
 * name in another project names files of its own. Throws a CliError where that folder is gone.
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

/** A path as the person would type it: relative when that is shorter. */
export function shownPath(path: string, from: string): string {
  const short = relative(from, path);
  if (short === '') return '.';
  return short.length < path.length && !isAbsolute(short) && !short.startsWith('../../..') ? short : path;
}

/** How to call coppice so that it works as printed: by its name where the PATH has it, else by its path. */
export function howToCallCoppice(env: Env): string {
  const wrapper = projectFile('bin', 'coppice');
  const found = inPersonsPath('coppice', env.PATH ?? '');
  if (found !== undefined && sameFile(found, wrapper)) return 'coppice';
  const short = shownPath(wrapper, personsFolder(env));
  return quote(short.includes('/') ? short : `./${short}`);
}

/** What another program calls coppice by, from wherever it is: by its name where the PATH has it, else by its whole path. */
export function pathOfCoppice(env: Env): string {
  const wrapper = projectFile('bin', 'coppice');
  const found = inPersonsPath('coppice', env.PATH ?? '');
  return found !== undefined && sameFile(found, wrapper) ? 'coppice' : wrapper;
}

/** How `start` was called, so that it can be called again. */
export const howToStart = (env: Env): string =>
  env.npm_lifecycle_event === 'start' ? 'npm start' : `${howToCallCoppice(env)} start`;

/** How to call kubectl: by its name where the PATH has one, else the one that the garden gets, which may not be there yet. */
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

/** Safe to paste into a shell. */
export const quote = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
