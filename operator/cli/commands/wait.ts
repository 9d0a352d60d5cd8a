import { connect } from '../connect.ts';
import type { Context } from '../context.ts';
import { type Goal, waitForCluster } from '../waiting.ts';

const DEFAULT_TIMEOUT_MS = 10 * 60_000;

/** `coppice wait NAME --for Ready|Deleted`. */
export async function run(context: Context): Promise<undefined> {
  const { options, positionals } = context;
  const connection = await connect(context);
  await waitForCluster(connection, context, {
    name: positionals[0]!,
    goal: (options.text('for') ?? 'Ready') as Goal,
    timeoutMs: options.number('timeout') ?? DEFAULT_TIMEOUT_MS,
  });
}
