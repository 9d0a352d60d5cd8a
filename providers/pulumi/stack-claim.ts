import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dependencyNotReady } from '../../operator/api/errors.ts';
import { identityOf, isAlive, type ProcessIdentity } from './processes.ts';

const CLAIM_FILE = 'runner.json';
let drafts = 0;

const read = (file: string): string | undefined => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
};

function holderOf(text: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(text) as ProcessIdentity;
  } catch {
    return undefined;
  }
}

/**
 * Claims a stack's working directory for this process, and returns the function that gives it back. A dead process's claim
 * is taken over; a living one's is an error that can be retried. The engine's own lock cannot do this: it is broken when it
 * looks like a dead engine's, and between looking and breaking another operator of this machine could have taken it.
 */
export function claimStack(workDir: string, stack: string): () => void {
  const file = join(workDir, CLAIM_FILE);
  const mine = JSON.stringify({ ...identityOf(process.pid), claim: ++drafts });
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
      if (holder && isAlive(holder)) throw dependencyNotReady(`process ${holder.pid} works on stack ${stack}`);
      const aside = `${draft}.stale`;
      try {
        renameSync(file, aside);
      } catch {
        continue;
      }
      // What was moved may be a living process's claim, made since we looked: give it back.
      if (read(aside) !== text) {
        try {
          linkSync(aside, file);
        } catch {
          // Claimed by a third one meanwhile; the engine's lock keeps these two apart.
        }
      }
      rmSync(aside, { force: true });
    }
  } finally {
    rmSync(draft, { force: true });
  }
}
