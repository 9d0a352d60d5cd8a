import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROJECT } from '../../../providers/pulumi/project.ts';
import type { StackState } from '../../../providers/pulumi/stack-state.ts';

let updates = 0;

/** A stack's state in a file:// backend, where Pulumi's engine would have it, but not in its words: a test has one or the other. */
export class StateFile {
  readonly #folder: string;
  readonly #stack: string;

  constructor(backendURL: string, stack: string) {
    this.#folder = join(fileURLToPath(new URL(backendURL.split('?')[0]!)), '.pulumi');
    this.#stack = stack;
  }

  get #file(): string {
    return join(this.#folder, 'stacks', PROJECT, `${this.#stack}.in-process.json`);
  }

  /** Undefined: there is no such stack. */
  read(): StackState | undefined {
    try {
      return JSON.parse(readFileSync(this.#file, 'utf8')) as StackState;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  write(state: StackState): void {
    mkdirSync(join(this.#file, '..'), { recursive: true, mode: 0o700 });
    writeFileSync(this.#file, JSON.stringify(state), { mode: 0o600 });
  }

  remove(): void {
    rmSync(this.#file, { force: true });
  }

  /** What each run leaves behind, whether or not it changed anything. */
  noteRun(): void {
    const folder = join(this.#folder, 'history', PROJECT, this.#stack);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const number = String(++updates).padStart(9, '0');
    writeFileSync(join(folder, `${this.#stack}-${number}.history.json`), '{}', { mode: 0o600 });
  }
}
