import { existsSync } from 'node:fs';
import type { Context } from '../context.ts';
import { openGarden } from '../garden.ts';
import { showProgress } from '../gardenview.ts';

/** `coppice stop`. */
export async function run({ terminal, env, program }: Context): Promise<undefined> {
  const garden = await openGarden(env);
  if (!existsSync(garden.directory.root)) {
    terminal.print(`There is no garden here; "${program} up" creates one.`);
    return;
  }
  await showProgress(terminal, (onProgress) => garden.stop({ onProgress }));
  terminal.print(`The garden is stopped, and its state is kept. "${program} up" starts it again.`);
}
