import type { Context } from '../context.ts';
import { EXIT } from '../errors.ts';
import { stayWithGarden, withGarden } from '../foreground.ts';
import { openGarden } from '../garden.ts';

/** `coppice up [--detach]`. */
export async function run(context: Context): Promise<number | undefined> {
  const { options, terminal, env, program } = context;
  const next = { again: `${program} up`, coppice: program };
  const garden = await openGarden(env, options);
  const code = await withGarden(garden, context, next, async () => {
    terminal.print('The garden is up.');
  });
  if (code !== EXIT.ok) return code;
  if (options.flag('detach')) {
    terminal.note(
      `It keeps running in the background. "${program} status" shows its state, "${program} down" deletes it.`,
    );
    return;
  }
  await stayWithGarden(garden, context, next);
}
