import { rm } from 'node:fs/promises';
import type { TestProject } from 'vitest/node';
import { whyNoNodes } from '../../operator/garden/host/capabilities.ts';
import { toolImage } from '../../operator/garden/images/catalog.ts';
import { StateDirectory } from '../../operator/garden/state/state.ts';
import { toolsDirectory } from '../../operator/garden/toolchain/cache.ts';
import type { ProgressEvent } from '../../operator/garden/toolchain/progress.ts';
import { Toolchain } from '../../operator/garden/toolchain/toolchain.ts';
import { makeHome, sweepHomes } from './home.ts';
import { leftOvers } from './left-overs.ts';
import { type CommandResult, runCoppice } from './run.ts';

declare module 'vitest' {
  export interface ProvidedContext extends SharedGarden {}
}

/** The garden that the tests of an end-to-end file share. */
export interface SharedGarden {
  /** Why there is no garden, and no end-to-end test runs; undefined when there is one. */
  noGarden: string | undefined;
  /** Its COPPICE_HOME. */
  home: string;
  /** Its COPPICE_TOOLS. */
  tools: string;
  /** File with its administrator's kubeconfig. */
  kubeconfig: string;
  /** Path of kubectl. */
  kubectl: string;
}

/** Names the garden, as JSON, to runs of vitest that test/run.ts starts: it brings up one for all that come one after the other. */
export const GARDEN_VARIABLE = 'COPPICE_TEST_GARDEN';
/** A machine that must compile Kubernetes first needs most of it. */
const UP_TIMEOUT_MS = 45 * 60_000;

/** The state directory whose garden is used, and left running. */
const kept = process.env.COPPICE_E2E_HOME || undefined;
/** Whether there is one garden for all, which nobody takes down. */
export const isKept = (): boolean => kept !== undefined;

/** vitest's globalSetup of the project `e2e`. */
export default async function setUp(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const { [GARDEN_VARIABLE]: given } = process.env;
  const { garden, takeDown } = given
    ? { garden: JSON.parse(given) as SharedGarden, takeDown: undefined }
    : await bringUpGarden();
  for (const name of Object.keys(garden) as (keyof SharedGarden)[]) project.provide(name, garden[name] as never);
  return takeDown;
}

/**
 * Brings one garden up in a state directory of its own. `takeDown` fails when anything of it is left on the machine. While tests are being
 * written, COPPICE_E2E_HOME names a state directory whose garden is used, brought up when it is not, and left running.
 */
export async function bringUpGarden(): Promise<{ garden: SharedGarden; takeDown: (() => Promise<void>) | undefined }> {
  const why = await whyNoNodes();
  if (why !== undefined) {
    console.warn(`e2e: skipped: ${why}`);
    return { garden: { noGarden: why, home: '', tools: '', kubeconfig: '', kubectl: '' }, takeDown: undefined };
  }
  const tools = toolsDirectory();
  await sweepHomes(tools);
  const home = kept ?? (await makeHome());
  const began = performance.now();
  const say = (text: string) =>
    process.stderr.write(`e2e: ${Math.round((performance.now() - began) / 1000)} s: ${text}\n`);
  const takeDown = async () => {
    const down = await runCoppice(['down'], { home, tools, timeoutMs: 5 * 60_000 });
    const left = await leftOvers(new StateDirectory(home));
    if (down.code === 0) await rm(home, { recursive: true, force: true });
    if (down.code !== 0) throw new Error(`coppice down failed:\n${output(down)}`);
    if (left.length > 0) throw new Error(`coppice down has left behind:\n${left.join('\n')}`);
    say('the garden is down, and nothing of it is left');
  };

  try {
    say(`bringing up a garden in ${home} with the tools of ${tools}`);
    // Tests reach loopback and namespaces of their own: where all addresses answer, machines that nobody can dial were dialled.
    const args = ['up', '--detach', '--no-egress'];
    const up = await runCoppice(args, { home, tools, timeoutMs: UP_TIMEOUT_MS, onStderr: say });
    if (up.code !== 0) throw new Error(`coppice up failed:\n${output(up)}`);
    say('the garden is up');
    // Machines pull these from the garden's mirror, which serves whatever lies in the folder of images.
    const toolchain = new Toolchain({ dir: tools, onProgress: narrate(say) });
    const { kubectl } = await toolchain.ensure(['kubectl']);
    await toolImage('echo', toolchain);
    const kubeconfig = new StateDirectory(home).kubeconfigFile('admin');
    return {
      garden: { noGarden: undefined, home, tools, kubectl, kubeconfig },
      takeDown: kept ? undefined : takeDown,
    };
  } catch (error) {
    if (!kept) await takeDown().catch((second: Error) => say(second.message));
    throw error;
  }
}

const output = ({ stdout, stderr }: CommandResult): string => `${stdout}${stderr}`.slice(-4000);

/** One line for each step of each tool, not one for each percent. */
export function narrate(say: (text: string) => void): (event: ProgressEvent) => void {
  const told = new Set<string>();
  return ({ tool, phase, source, remainingSeconds, detail }) => {
    if (source === 'cache') return;
    const minute = remainingSeconds === undefined ? '' : `, about ${Math.ceil(remainingSeconds / 60)} min left`;
    const line = `${tool}: ${phase} (${source})${phase === 'skipped' ? `: ${detail}` : minute}`;
    if (told.has(line)) return;
    told.add(line);
    say(line);
  };
}
