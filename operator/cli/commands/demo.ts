import type { CloudProfile } from '../../api/cloudprofile.ts';
import { profileManifests } from '../../api/profiles.ts';
import type { KubeClient } from '../../kube/client.ts';
import { CLOUDPROFILES } from '../../kube/resources.ts';
import { connectGarden } from '../connect.ts';
import type { Context } from '../context.ts';
import { DEMO, type Sold, soldAs, stage } from '../demo/burst-objects.ts';
import { BurstStory } from '../demo/burst-story.ts';
import { cleanUp, leftOfDemo } from '../demo/clean-up.ts';
import { startScheduler } from '../demo/scheduler-process.ts';
import { CliError, EXIT, InterruptedError, UsageError } from '../errors.ts';
import { gardenKubeconfigFile } from '../garden.ts';
import { formatAge } from '../render/age.ts';
import { cell } from '../render/text.ts';

/** Longer than that nobody waits for what is taken away after Ctrl-C. */
const CLEAN_UP_MS = 8 * 60_000;

/** `coppice demo burst`. */
export async function run(context: Context): Promise<undefined> {
  const { options, positionals, terminal, signal } = context;
  const [what] = positionals;
  if (what !== 'burst')
    throw new UsageError(`"coppice demo ${what}" is not known: "coppice demo burst" is the one that there is`);
  const { client } = await connectGarden(context);
  const started = Date.now();
  const tell = (line: string) => terminal.print(`[${formatAge(Date.now() - started).padStart(5)}] ${cell(line)}`);
  const timeout = options.number('timeout');
  const deadline = timeout === undefined ? undefined : AbortSignal.timeout(timeout);
  const over = deadline ? AbortSignal.any([signal, deadline]) : signal;
  try {
    const local = await client.getOrUndefined<CloudProfile>(CLOUDPROFILES, 'local', undefined, { signal: over });
    if (!local) throw new CliError('there is no CloudProfile local: the demo is played with local clusters');
    if ((await leftOfDemo(client, over)).length > 0) {
      tell('an earlier demo was interrupted: what it has left is taken away first');
      await cleanUp(client, over);
    }
    const sold = soldAs(await profileManifests());
    await play(context, client, sold, local, tell, over);
  } catch (error) {
    if (signal.aborted) throw new InterruptedError();
    if (deadline?.aborted)
      throw new CliError(`the demo has not ended after ${formatAge(timeout!)}`, { exitCode: EXIT.timedOut });
    throw error;
  } finally {
    await client.close();
  }
  return undefined;
}

async function play(
  context: Context,
  client: KubeClient,
  sold: readonly Sold[],
  local: CloudProfile,
  tell: (line: string) => void,
  over: AbortSignal,
): Promise<void> {
  const { terminal, options, env } = context;
  const kubeconfig = gardenKubeconfigFile(env);
  const prices = sold.map(
    ({ candidate, machineType, region, hourly }) => `${hourly} for ${candidate} ${machineType} in ${region}`,
  );
  let failure: unknown;
  try {
    for (const object of stage(local, sold)) await client.apply(object, { signal: over });
    tell(
      `Hub ${DEMO} and CloudProfile ${DEMO} are made. All machines are local and nothing is billed; prices are what clouds ask for in USD an hour: ${prices.join(', ')}`,
    );
    const scheduler = startScheduler(
      kubeconfig,
      env,
      (line) => options.flag('verbose') && terminal.note(`scheduler: ${cell(line)}`),
    );
    const story = new BurstStory(client, sold, tell, AbortSignal.any([over, scheduler.ended]));
    try {
      await story.play();
    } finally {
      await scheduler.stop();
      await story.close();
    }
  } catch (error) {
    failure = error;
  }
  if (failure) terminal.note('Taking away what the demo has made ...');
  await cleanUp(client, AbortSignal.timeout(CLEAN_UP_MS)).catch((error: Error) => {
    throw new CliError(`the demo has left something: ${error.message}`, {
      advice: '"coppice demo burst" takes it away first',
    });
  });
  if (failure) throw failure;
  tell('the private cluster has left and is gone; nothing of the demo is left');
}
