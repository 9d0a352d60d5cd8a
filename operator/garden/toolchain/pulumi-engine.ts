import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { errorText, notYetConfigured } from '../../api/errors.ts';
import type { Log } from '../../kube/log.ts';
import { isExecutable, toolsDirectory } from './cache.ts';
import type { ProgressEvent } from './progress.ts';
import { Toolchain, type ToolchainOptions } from './toolchain.ts';

type Environment = Record<string, string | undefined>;

/**
 * Finds Pulumi's engine when it is first needed: COPPICE_PULUMI, else as every tool (cache, PATH, release, `go build`, which
 * takes minutes, and of which everybody who waits for it is told). Rejects with what to do where it cannot be had; asked again, it
 * tries again.
 */
export function pulumiEngine(
  env: Environment,
  log: Log,
  open: (options: ToolchainOptions) => Pick<Toolchain, 'ensure' | 'close'> = (options) => new Toolchain(options),
): (say?: (doing: string) => void) => Promise<string> {
  let found: Promise<string> | undefined;
  let doing: string | undefined;
  const waiting = new Set<(doing: string) => void>();
  const onProgress = (event: ProgressEvent) => {
    doing = doingText(event) ?? doing;
    if (doing !== undefined) for (const say of waiting) say(doing);
  };
  const find = async (): Promise<string> => {
    const named = env.COPPICE_PULUMI;
    if (named) {
      if (await isExecutable(named)) return named;
      throw missing(`COPPICE_PULUMI names ${named}, which is not an executable file`);
    }
    const toolchain = open({ dir: toolsDirectory(env), log, onProgress });
    try {
      return (await toolchain.ensure(['pulumi'])).pulumi;
    } catch (error) {
      throw missing(`Pulumi's engine cannot be installed: ${errorText(error)}`);
    } finally {
      await toolchain.close();
    }
  };
  return async (say) => {
    found ??= find().catch((error: unknown) => {
      found = undefined;
      throw error;
    });
    // A function of this caller's own: two that wait with the same one are still two.
    const told = (text: string) => say?.(text);
    waiting.add(told);
    if (doing !== undefined) told(doing);
    try {
      return await found;
    } finally {
      waiting.delete(told);
      if (waiting.size === 0) doing = undefined;
    }
  };
}

/** What happens to a tool, for whoever waits for it; undefined: nothing worth telling. */
export function doingText({ tool, phase, source, fraction, remainingSeconds }: ProgressEvent): string | undefined {
  if (phase === 'waiting') return `waiting for another process that installs ${tool}`;
  if (phase !== 'working' || (source !== 'archive' && source !== 'build')) return undefined;
  const verb = source === 'build' ? 'building' : 'downloading';
  if (remainingSeconds !== undefined) return `${verb} ${tool}, about ${remainingSeconds} s left`;
  return fraction === undefined ? `${verb} ${tool}` : `${verb} ${tool}, ${Math.floor(100 * fraction)} % done`;
}

const missing = (message: string) =>
  notYetConfigured(message, "Install pulumi 3 on the operator's PATH, or give its path in COPPICE_PULUMI.");

/**
 * Directory for what must outlive the process (the state of clouds, their plugins): COPPICE_DATA, else in Coppice's home.
 * undefined: in a pod, whose files end with it, unless COPPICE_DATA names a volume.
 */
export function dataDirectory(env: Environment): string | undefined {
  if (env.COPPICE_DATA) return env.COPPICE_DATA;
  if (env.KUBERNETES_SERVICE_HOST) return undefined;
  return join(env.COPPICE_HOME || join(homedir(), '.coppice'), 'clouds');
}

/**
 * Folder of Pulumi's engines and workers, with plugins that run: in the data directory. Elsewhere than in a pod, whose temporary folder is its
 * own, never below the temporary folder: other users of the machine could have made it before.
 */
export const pulumiHome = (env: Environment): string => join(dataDirectory(env) ?? tmpdir(), 'pulumi-home');
