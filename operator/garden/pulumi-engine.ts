import { homedir } from 'node:os';
import { join } from 'node:path';
import { errorText, notYetConfigured } from '../api/errors.ts';
import type { Log } from '../kube/log.ts';
import { isExecutable } from './toolchain/cache.ts';
import { Toolchain } from './toolchain/toolchain.ts';

type Environment = Record<string, string | undefined>;

/**
 * Finds Pulumi's engine when it is first needed: COPPICE_PULUMI, else as every tool (cache, PATH, release, `go build`, which
 * takes minutes). Rejects with what to do where it cannot be had; asked again, it tries again.
 */
export function pulumiEngine(env: Environment, log: Log): () => Promise<string> {
  let found: Promise<string> | undefined;
  const find = async (): Promise<string> => {
    const named = env.COPPICE_PULUMI;
    if (named) {
      if (await isExecutable(named)) return named;
      throw missing(`COPPICE_PULUMI names ${named}, which is no executable file`);
    }
    const toolchain = new Toolchain({ log });
    try {
      return (await toolchain.ensure(['pulumi'])).pulumi;
    } catch (error) {
      throw missing(`Pulumi's engine cannot be had: ${errorText(error)}`);
    } finally {
      await toolchain.close();
    }
  };
  return () => {
    found ??= find().catch((error: unknown) => {
      found = undefined;
      throw error;
    });
    return found;
  };
}

const missing = (message: string) =>
  notYetConfigured(message, "Put pulumi 3 on the operator's PATH, or name it in COPPICE_PULUMI.");

/**
 * Directory for what must outlive the process (the state of clouds, their plugins): COPPICE_DATA, else in Coppice's home.
 * undefined: in a pod, whose files end with it, unless COPPICE_DATA names a volume.
 */
export function dataDirectory(env: Environment): string | undefined {
  if (env.COPPICE_DATA) return env.COPPICE_DATA;
  if (env.KUBERNETES_SERVICE_HOST) return undefined;
  return join(env.COPPICE_HOME || join(homedir(), '.coppice'), 'clouds');
}
