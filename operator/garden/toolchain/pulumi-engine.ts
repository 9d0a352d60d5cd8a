import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { errorText, notYetConfigured } from '../../api/errors.ts';
import type { Log } from '../../kube/log.ts';
import { isExecutable, toolsDirectory } from './cache.ts';
import type { ProgressEvent } from './progress.ts';
import { Toolchain, type ToolchainOptions } from './toolchain.ts';

type Environment = Record<string, string | undefined>;

/**
 * Finds Pulumi's engine on first use: COPPICE_PULUMI, otherwise like every tool (cache, PATH, release, `go build` of
 * some minutes with progress for all waiters). Rejects with advice where it is unavailable; the next call tries again.
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
    // A separate function per caller, as two callers may pass the same one.
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

/** Progress message of a tool for its waiters; undefined: none. */
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
 * Directory that outlives the process (state of clouds, plugins): COPPICE_DATA, otherwise in Coppice's home. undefined:
 * in a pod, whose files are lost, unless COPPICE_DATA names a volume.
 */
export function dataDirectory(env: Environment): string | undefined {
  if (env.COPPICE_DATA) return env.COPPICE_DATA;
  if (env.KUBERNETES_SERVICE_HOST) return undefined;
  return join(env.COPPICE_HOME || join(homedir(), '.coppice'), 'clouds');
}

/**
 * Folder of Pulumi's engines and workers, which execute plugins: in the data directory. Outside a pod never in the
 * shared temporary folder, where other users could have created it before.
 */
export const pulumiHome = (env: Environment): string => join(dataDirectory(env) ?? tmpdir(), 'pulumi-home');
