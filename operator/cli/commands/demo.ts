import type { CloudProfile } from '../../api/cloudprofile.ts';
import { profileManifests } from '../../api/profiles.ts';
import type { KubeClient } from '../../kube/client.ts';
import { CLOUDPROFILES } from '../../kube/resources.ts';
import { connectGarden } from '../connect.ts';
import type { Context } from '../context.ts';
import { BurstDemo } from '../demo/burst-demo.ts';
import { DEMO, type StandInMachine, soldAs, stageObjects } from '../demo/burst-objects.ts';
import { cleanUpDemo, leftOfDemo } from '../demo/clean-up.ts';
import { type ExistingKarmada, karmadaLeft, karmadaOf } from '../demo/existing-karmada.ts';
import type { Fleet } from '../demo/fleet.ts';
import { KARMADA_SECRET } from '../demo/karmada-fleet.ts';
import { NeutralFleet } from '../demo/neutral-fleet.ts';
import { CliError, EXIT, InterruptedError, UsageError } from '../errors.ts';
import { gardenKubeconfigFile } from '../garden.ts';
import { kubectlWords } from '../kubectl-words.ts';
import { formatAge } from '../render/age.ts';
import { textCell } from '../render/text.ts';

/** Limit of the clean-up after Ctrl-C. */
const CLEAN_UP_MS = 8 * 60_000;

/** `coppice demo burst`. */
export async function run(context: Context): Promise<undefined> {
  const { options, positionals, terminal, signal, env } = context;
  const [what] = positionals;
  if (what !== 'burst') throw new UsageError(`unknown demo "${what}"; the only one is "coppice demo burst"`);
  const file = options.text('karmada');
  const { client } = await connectGarden(context);
  const started = Date.now();
  const tell = (line: string) => terminal.print(`[${formatAge(Date.now() - started).padStart(5)}] ${textCell(line)}`);
  const timeout = options.number('timeout');
  const deadline = timeout === undefined ? undefined : AbortSignal.timeout(timeout);
  const over = deadline ? AbortSignal.any([signal, deadline]) : signal;
  const namespace = env.COPPICE_NAMESPACE ?? 'kube-system';
  const opened: ExistingKarmada[] = [];
  try {
    const local = await client.getOrUndefined<CloudProfile>(CLOUDPROFILES, 'local', undefined, { signal: over });
    if (!local) throw new CliError('the demo needs CloudProfile local, which does not exist here');
    if ((await leftOfDemo(client, namespace, over)).length > 0) {
      tell('an earlier demo was interrupted: removing what it left behind');
      const before = await karmadaLeft(client, namespace, over);
      if (before) opened.push(before);
      await cleanUpDemo(client, namespace, before?.fleet, over).catch(async (error: Error) => {
        over.throwIfAborted();
        const kubectl = await kubectlWords(context);
        const advice =
          before && `if that Karmada is gone for good: ${kubectl} delete secret -n ${namespace} ${KARMADA_SECRET}`;
        throw new CliError(`could not remove what an earlier demo left behind: ${error.message}`, {
          ...(advice && { advice }),
        });
      });
    }
    const at = file === undefined ? undefined : await karmadaOf(client, file, options.text('context'), namespace, over);
    if (at) opened.push(at);
    await at?.fleet.check(over);
    // Work of an earlier demo that the garden no longer has.
    await at?.fleet.takeWork(over);
    await at?.fleet.takeRest(over);
    const said = (line: string) => options.flag('verbose') && terminal.note(`scheduler: ${textCell(line)}`);
    const fleet = at?.fleet ?? new NeutralFleet(client, gardenKubeconfigFile(env), env, said);
    const sold = soldAs(await profileManifests());
    const end = (stop: AbortSignal) => cleanUpDemo(client, namespace, at?.fleet, stop);
    await play(context, { client, fleet, sold, local, tell, over, end });
  } catch (error) {
    if (signal.aborted) throw new InterruptedError();
    if (deadline?.aborted)
      throw new CliError(`the demo did not finish within ${formatAge(timeout!)}`, { exitCode: EXIT.timedOut });
    throw error;
  } finally {
    for (const one of opened) await one.close();
    await client.close();
  }
  return undefined;
}

/** Connections and objects of a running demo. */
interface Play {
  readonly client: KubeClient;
  readonly fleet: Fleet;
  readonly sold: readonly StandInMachine[];
  readonly local: CloudProfile;
  readonly over: AbortSignal;
  readonly tell: (line: string) => void;
  readonly end: (signal: AbortSignal) => Promise<void>;
}

async function play({ terminal }: Context, { client, fleet, sold, local, over, tell, end }: Play): Promise<void> {
  const prices = sold.map(
    ({ candidate, machineType, region, hourly }) => `${hourly} for ${candidate} ${machineType} in ${region}`,
  );
  let failure: unknown;
  try {
    for (const object of [...fleet.objects, ...stageObjects(local, sold, fleet.hub)])
      await client.apply(object, { signal: over });
    tell(
      `Hub ${DEMO} and CloudProfile ${DEMO} are created. All machines are local and nothing is billed; these are prices of clouds, in USD an hour: ${prices.join(', ')}`,
    );
    let story: BurstDemo | undefined;
    try {
      const ended = await fleet.begin(over);
      story = new BurstDemo(client, fleet, sold, tell, AbortSignal.any([over, ended]));
      await story.play();
    } finally {
      await fleet.end();
      await story?.close();
    }
  } catch (error) {
    failure = error;
  }
  if (failure) terminal.note('Removing what the demo created ...');
  await end(AbortSignal.timeout(CLEAN_UP_MS)).catch((error: Error) => {
    throw new CliError(`could not remove everything that the demo created: ${error.message}`, {
      advice: 'the next "coppice demo burst" removes it first',
    });
  });
  if (failure) throw failure;
  tell('the private cluster has left the hub and is deleted; nothing of the demo is left');
}
