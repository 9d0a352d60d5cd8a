import { existsSync } from 'node:fs';
import type { Context } from '../context.ts';
import { openGarden } from '../garden.ts';
import { showProgress } from '../gardenview.ts';

/** `coppice stop`. */
export async function run({ terminal, env, program }: Context): Promise<undefined> {
  const garden = await openGarden(env);
  if (!existsSync(garden.directory.root)) {
    terminal.print(`There is no garden here; "${program} up" makes one.`);
    return;
  }
  await showProgress(terminal, (onProgress) => garden.stop({ onProgress }));
  terminal.print(`The garden is stopped; its state is kept. "${program} up" goes on from there.`);
}
