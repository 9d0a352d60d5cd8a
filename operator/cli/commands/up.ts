import type { Context } from '../context.ts';
import { stopGarden, untilInterrupted, withGarden } from '../foreground.ts';
import { openGarden } from '../garden.ts';

/** `coppice up [--detach]`. */
export async function run(context: Context): Promise<undefined> {
  const { options, terminal, signal, env, program } = context;
  const garden = await openGarden(env, options);
  await withGarden(garden, context, async () => {
    terminal.print('The garden is up.');
  });
  if (options.flag('detach')) {
    terminal.note(`It goes on in the background. "${program} status" shows it, "${program} down" takes it away.`);
    return;
  }
  terminal.note('Ctrl-C stops it and keeps its state.');
  await untilInterrupted(signal);
  await stopGarden(garden, context);
}
