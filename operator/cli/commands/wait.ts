import { connect } from '../connect.ts';
import type { Context } from '../context.ts';
import { askWhetherServes } from '../serving.ts';
import { type Goal, waitForCluster } from '../waiting.ts';

const DEFAULT_TIMEOUT_MS = 10 * 60_000;

/** `coppice wait NAME --for Ready|Deleted`. */
export async function run(context: Context): Promise<undefined> {
  const { options, positionals } = context;
  const connection = await connect(context);
  const name = positionals[0]!;
  const goal = (options.text('for') ?? 'Ready') as Goal;
  await waitForCluster(connection, context, {
    name,
    goal,
    timeoutMs: options.number('timeout') ?? DEFAULT_TIMEOUT_MS,
    serves: await askWhetherServes(connection, context),
  });
}
