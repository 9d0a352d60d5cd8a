import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { EGRESS_POLICIES, type EgressPolicy } from '../garden/egress/policy.ts';
import type { Garden } from '../garden/garden.ts';
import { StateDirectory } from '../garden/state/state.ts';
import { coppiceHome } from '../garden/toolchain/cache.ts';
import type { Options } from './context.ts';
import { CliError, EXIT, UsageError } from './errors.ts';

type Env = Record<string, string | undefined>;

/** The kubeconfig of the embedded garden's administrator; known without loading the garden, which takes long. */
export function gardenKubeconfigFile(env: Env): string {
  return gardenDirectory(env).kubeconfigFile('admin');
}

const deletedMark = (env: Env): string => join(coppiceHome(env), 'garden-deleted');

/** Remembers that a person had a garden here and deleted it: commands without a word of where then mean no other cluster. */
export async function markDeleted(env: Env): Promise<void> {
  const file = deletedMark(env);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const text =
    '"coppice down" deleted the garden of this machine. Without this file, commands use $KUBECONFIG when there is none.\n';
  await writeFile(file, text, { mode: 0o600 });
}

/** Whether there is none where there has been one. */
export const wasDeleted = (env: Env): boolean => existsSync(deletedMark(env)) && !existsSync(gardenKubeconfigFile(env));

/** Where the embedded garden of this machine lies, or would lie. */
export const gardenDirectory = (env: Env): StateDirectory => new StateDirectory(coppiceHome(env));

/** Opens the garden of this machine. With the options of a command that brings it up, what they say of it. */
export async function openGarden(env: Env, options?: Options): Promise<Garden> {
  const { Garden } = await import('../garden/garden.ts');
  const seedKubeconfig = options?.text('seed-kubeconfig');
  if (seedKubeconfig !== undefined && !existsSync(seedKubeconfig))
    throw new CliError(`kubeconfig ${seedKubeconfig} does not exist`, {
      exitCode: EXIT.notFound,
      advice: 'give another with --seed-kubeconfig',
    });
  const cache = options?.text('image-cache');
  const given = (name: string) => {
    const words = options?.list(name) ?? [];
    return words.length > 0 ? words : undefined;
  };
  const trusted = given('registry');
  const logins = given('registry-login');
  const egress = options && egressOf(options);
  const registries = { ...(trusted && { trusted }), ...(logins && { logins }), ...(cache !== undefined && { cache }) };
  const { wordsProblem } = await import('../garden/images/upstream/settings.ts');
  const problem = wordsProblem(registries);
  if (problem) throw new UsageError(problem);
  return Garden.open({
    home: coppiceHome(env),
    ...(egress && { egress }),
    ...(seedKubeconfig !== undefined && { seedKubeconfig }),
    registries,
  });
}

/** Where a command line lets pods go; undefined: as before. Throws UsageError when it says two things. */
export function egressOf(options: Options): EgressPolicy | undefined {
  const said = EGRESS_POLICIES.find((policy) => policy === options.text('egress'));
  if (!options.flag('no-egress')) return said;
  if (said !== undefined && said !== 'none')
    throw new UsageError(`--no-egress and --egress ${said} contradict each other`, 'give only one of them');
  return 'none';
}
