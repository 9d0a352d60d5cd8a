import { basename } from 'node:path';
import { run } from '../host/command.ts';
import { readJson, writeAtomic } from '../host/files.ts';
import { SEED_PATHS } from '../host/mounts.ts';

/** Imports images into the seed's containerd, each tar once, as its name contains its digest. */
export class ImageImporter {
  readonly #enter: readonly string[];
  readonly #ctr: string;
  readonly #memory: string;
  #imported: Record<string, true> | undefined;

  constructor(options: { enter: readonly string[]; ctr: string; memory: string }) {
    this.#enter = options.enter;
    this.#ctr = options.ctr;
    this.#memory = options.memory;
  }

  async import(tar: string): Promise<void> {
    this.#imported ??= (await readJson<Record<string, true>>(this.#memory)) ?? {};
    const name = basename(tar);
    if (this.#imported[name]) return;
    const ctr = [...this.#enter, this.#ctr, '--address', SEED_PATHS.socket, '--namespace', 'k8s.io'];
    await run([...ctr, 'images', 'import', tar], { timeoutMs: 300_000 });
    this.#imported[name] = true;
    await writeAtomic(this.#memory, JSON.stringify(this.#imported));
  }
}
