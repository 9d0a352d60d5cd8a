import type { Context } from '../context.ts';
import { UsageError } from '../errors.ts';

/** `coppice garden run`: the daemon that supervises the garden. `up` starts it; people do not. */
export async function run({ positionals }: Context): Promise<undefined> {
  if (positionals[0] !== 'run')
    throw new UsageError(`unknown command "garden ${positionals[0]}"`, 'use "coppice garden run"');
  const { runDaemon } = await import('../../garden/daemon/daemon.ts');
  await runDaemon();
}
