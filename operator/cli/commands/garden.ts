import type { Context } from '../context.ts';
import { UsageError } from '../errors.ts';

/** `coppice garden run`: the process that supervises the garden; started by `up`, not by people. */
export async function run({ positionals }: Context): Promise<undefined> {
  if (positionals[0] !== 'run')
    throw new UsageError(`unknown command "garden ${positionals[0]}"`, 'use "coppice garden run"');
  const { runDaemon } = await import('../../garden/daemon/daemon.ts');
  await runDaemon();
}
