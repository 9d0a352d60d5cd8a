import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dependencyNotReady } from '../../operator/api/errors.ts';
import { type EngineProcess, engineIdentityOf, isEngineAlive } from './processes.ts';

const CLAIM_FILE = 'runner.json';
let drafts = 0;

const read = (file: string): string | undefined => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
};

function holderOf(text: string): EngineProcess | undefined {
  try {
    return JSON.parse(text) as EngineProcess;
  } catch {
    return undefined;
  }
}

/**
 * Claims a stack's working directory for this process; returns a function that releases it. Takes over the claim of a
 * dead process; a living one's is a retryable error. The engine's lock does not suffice: between judging a lock dead
 * and breaking it, another operator on this machine could take it.
 */
export function claimStack(workDir: string, stack: string): () => void {
  const file = join(workDir, CLAIM_FILE);
  const mine = JSON.stringify({ ...engineIdentityOf(process.pid), claim: ++drafts });
  const draft = `${file}.${process.pid}.${drafts}`;
  writeFileSync(draft, mine, { mode: 0o600 });
  try {
    for (;;) {
      try {
        linkSync(draft, file);
        return () => {
          if (read(file) === mine) rmSync(file, { force: true });
        };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
      const text = read(file);
      if (text === undefined) continue;
      const holder = holderOf(text);
      if (holder && isEngineAlive(holder)) throw dependencyNotReady(`process ${holder.pid} works on stack ${stack}`);
      const aside = `${draft}.stale`;
      try {
        renameSync(file, aside);
      } catch {
        continue;
      }
      // The moved claim may be a living process's, made meanwhile: restore it.
      if (read(aside) !== text) {
        try {
          linkSync(aside, file);
        } catch {
          // A third process claimed it meanwhile; the engine's lock separates these two.
        }
      }
      rmSync(aside, { force: true });
    }
  } finally {
    rmSync(draft, { force: true });
  }
}
