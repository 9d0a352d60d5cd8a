import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { EGRESS_POLICIES, type EgressPolicy } from '../garden/egress/policy.ts';
import type { Garden } from '../garden/garden.ts';
import { readJson, writeAtomic } from '../garden/host/files.ts';
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

/** What is remembered of a garden that a person deleted here. */
export interface DeletedGarden {
  /** Current context of the person's kubeconfig at that time, empty where it had none. Absent: not written down. */
  readonly currentContext?: string;
}

/**
 * Remembers that a person had a garden here and deleted it. Commands that name no API server then mean no other cluster, until the
 * person has chosen one.
 */
export async function markDeleted(env: Env, currentContext: string): Promise<void> {
  const deleted: DeletedGarden = { currentContext };
  await writeAtomic(deletedMark(env), JSON.stringify(deleted));
}

/** The garden that was deleted here and not made again; undefined: there is one, or there was none, or the person has chosen since. */
export async function deletedGarden(env: Env): Promise<DeletedGarden | undefined> {
  if (!existsSync(deletedMark(env)) || existsSync(gardenKubeconfigFile(env))) return undefined;
  return (await readJson<DeletedGarden>(deletedMark(env))) ?? {};
}

/** The person has chosen a cluster since the garden was deleted. */
export const forgetDeleted = (env: Env): Promise<void> => rm(deletedMark(env), { force: true });

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
