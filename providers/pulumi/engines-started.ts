import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive, type ProcessIdentity } from './processes.ts';

/** In a stack's working directory: a line for each engine that was started on it and may have left a lock. */
export const ENGINES_FILE = 'engines.jsonl';

const identityIn = (line: string): ProcessIdentity[] => {
  try {
    return [JSON.parse(line) as ProcessIdentity];
  } catch {
    // The writer was killed in the middle of the line.
    return [];
  }
};

function enginesOf(workDir: string): ProcessIdentity[] {
  try {
    return readFileSync(join(workDir, ENGINES_FILE), 'utf8').split('\n').flatMap(identityIn);
  } catch {
    return [];
  }
}

/** Whether an engine of that number was started on the stack here, and is dead. Undefined: none was. */
export function isDeadEngine(workDir: string, pid: number): boolean | undefined {
  const same = enginesOf(workDir).filter((engine) => engine.pid === pid);
  return same.length === 0 ? undefined : !same.some(isAlive);
}

/** To be called when an engine has had the lock and given it back: no earlier one can have left one. */
export const forgetEngines = (workDir: string): void => rmSync(join(workDir, ENGINES_FILE), { force: true });
