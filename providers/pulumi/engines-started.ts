import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type EngineProcess, isEngineAlive } from './processes.ts';

/** File in a stack's working directory with a line per started engine that may have left a lock. */
export const ENGINES_FILE = 'engines.jsonl';

const identityIn = (line: string): EngineProcess[] => {
  try {
    return [JSON.parse(line) as EngineProcess];
  } catch {
    // The writer was killed within the line.
    return [];
  }
};

function enginesOf(workDir: string): EngineProcess[] {
  try {
    return readFileSync(join(workDir, ENGINES_FILE), 'utf8').split('\n').flatMap(identityIn);
  } catch {
    return [];
  }
}

/** Whether an engine with this PID was started on the stack here and is dead. undefined: none was started. */
export function isDeadEngine(workDir: string, pid: number): boolean | undefined {
  const same = enginesOf(workDir).filter((engine) => engine.pid === pid);
  return same.length === 0 ? undefined : !same.some(isEngineAlive);
}

/** Clears the record after an engine has had the lock and released it: no earlier engine can have left one. */
export const forgetEngines = (workDir: string): void => rmSync(join(workDir, ENGINES_FILE), { force: true });
