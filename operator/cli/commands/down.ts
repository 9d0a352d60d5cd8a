import type { Context } from '../context.ts';
import { openGarden } from '../garden.ts';
import { showProgress } from '../gardenview.ts';

/** `coppice down`. */
export async function run({ terminal, env }: Context): Promise<undefined> {
  const garden = await openGarden(env);
  await showProgress(terminal, (onProgress) => garden.down({ onProgress }));
  terminal.print('The garden is gone: its processes, clusters, networks and state.');
}
