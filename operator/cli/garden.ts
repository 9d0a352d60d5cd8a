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

/** Kubeconfig of the embedded garden's administrator. Does not load the garden's modules, which is slow. */
export function gardenKubeconfigFile(env: Env): string {
  return gardenDirectory(env).kubeconfigFile('admin');
}

const deletedMark = (env: Env): string => join(coppiceHome(env), 'garden-deleted');

/** Mark that a person deleted the garden of this machine. */
export interface DeletedGarden {
  /** Current context of the person's kubeconfig at that time; empty if there was none. Absent: not recorded. */
  readonly currentContext?: string;
}

/**
 * Records that the garden of this machine was deleted. Commands without an API server then refuse, instead of using another cluster,
 * until the person chooses one.
 */
export async function markDeleted(env: Env, currentContext: string): Promise<void> {
  const deleted: DeletedGarden = { currentContext };
  await writeAtomic(deletedMark(env), JSON.stringify(deleted));
}

/** The deletion record. Undefined: a garden exists, none ever existed, or the person has chosen a cluster since. */
export async function deletedGarden(env: Env): Promise<DeletedGarden | undefined> {
  if (!existsSync(deletedMark(env)) || existsSync(gardenKubeconfigFile(env))) return undefined;
  return (await readJson<DeletedGarden>(deletedMark(env))) ?? {};
}

/** Removes the deletion record, once the person has chosen a cluster. */
export const forgetDeleted = (env: Env): Promise<void> => rm(deletedMark(env), { force: true });

/** State directory of this machine's embedded garden, which may not exist. */
export const gardenDirectory = (env: Env): StateDirectory => new StateDirectory(coppiceHome(env));

/** Opens the garden of this machine, with the settings in `options` if the command starts the garden. */
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

/** Egress policy that the options choose. Undefined: keep the current one. Throws UsageError for contradicting options. */
export function egressOf(options: Options): EgressPolicy | undefined {
  const said = EGRESS_POLICIES.find((policy) => policy === options.text('egress'));
  if (!options.flag('no-egress')) return said;
  if (said !== undefined && said !== 'none')
    throw new UsageError(`--no-egress and --egress ${said} contradict each other`, 'give only one of them');
  return 'none';
}
