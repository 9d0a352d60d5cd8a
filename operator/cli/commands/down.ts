import { existsSync } from 'node:fs';
import { readdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { wasBegun } from '../../controllers/managed/wish.ts';
import { ToolCache, toolsDirectory } from '../../garden/toolchain/cache.ts';
import { dataDirectory } from '../../garden/toolchain/pulumi-engine.ts';
import { personalKubeconfigs } from '../../kube/kubeconfig-files.ts';
import { keyOf, WORKERCLUSTERS } from '../../kube/resources.ts';
import { combinedKubeconfig, connectGarden, foundFiles } from '../connect.ts';
import type { Context } from '../context.ts';
import { CliError } from '../errors.ts';
import { markDeleted, openGarden } from '../garden.ts';
import { showProgress } from '../gardenview.ts';
import { quote } from '../invocation.ts';
import { gardenHere, removeContextsOf } from '../kubeconfig/garden-contexts.ts';

/** A garden that does not answer within this time counts as stopped. */
const PATIENCE_MS = 3_000;

/** `coppice down [--leave-clouds]`. */
export async function run(context: Context): Promise<undefined> {
  const { options, terminal, env, program } = context;
  const left = options.flag('leave-clouds') ? [] : await clustersInClouds(context);
  if (left.length > 0) {
    throw new CliError(`${left.join(', ')} would remain in the cloud and cost money`, {
      advice: `delete them first ("${program} delete NAME -n NAMESPACE --wait"), or use --leave-clouds`,
    });
  }
  const garden = await openGarden(env);
  const here = await gardenHere(env);
  const wasHere = existsSync(garden.directory.root);
  // Also without the state directory: processes, mounts and networks may remain.
  await showProgress(terminal, (onProgress) => garden.down({ onProgress }));
  const contexts = await removeContextsOf(here, env, context.signal);
  if (wasHere) await markDeleted(env, await currentContext(env));
  terminal.print(
    wasHere
      ? 'The garden is deleted: its processes, clusters, networks and state.'
      : `There is no garden here; "${program} up" creates one.`,
  );
  for (const line of [...contexts, ...(wasHere ? await whatStays(env) : [])]) terminal.note(line);
}

/** Current context of the person's kubeconfig; empty if there is none. */
async function currentContext(env: Context['env']): Promise<string> {
  try {
    const found = await foundFiles(personalKubeconfigs(env));
    return (await combinedKubeconfig(found))['current-context'] ?? '';
  } catch {
    // An unreadable kubeconfig selects no cluster.
    return '';
  }
}

/** What remains on this machine, one line each. Removes empty backup folders first. */
async function whatStays(env: Context['env']): Promise<string[]> {
  const lines: string[] = [];
  const clouds = dataDirectory(env);
  if (clouds !== undefined) {
    const backups = join(clouds, 'backups');
    await removeEmptyFolders(backups);
    // Keep a folder that the person named.
    if (!env.COPPICE_DATA) await rmdir(clouds).catch(() => {});
    if (existsSync(backups)) lines.push(`Backups of its clusters stay in ${backups}.`);
  }
  const tools = new ToolCache(toolsDirectory(env));
  if (existsSync(tools.dir))
    lines.push(`Its tools stay in ${tools.dir} for the next garden; "rm -r ${quote(tools.dir)}" removes them.`);
  const packages = await tools.installedPackages();
  if (packages.length > 0) lines.push(`Packages that apt-get installed for it stay, too: ${packages.join(', ')}.`);
  return lines;
}

/** Removes a folder tree without files; from a tree with files, only the branches without files. */
async function removeEmptyFolders(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) if (entry.isDirectory()) await removeEmptyFolders(join(folder, entry.name));
  // Fails for a folder that is not empty.
  await rmdir(folder).catch(() => {});
}

/** Clusters in clouds that only this garden knows: after `down` nobody would delete them. */
async function clustersInClouds(context: Context): Promise<string[]> {
  try {
    const { client } = await connectGarden(context);
    const signal = AbortSignal.any([context.signal, AbortSignal.timeout(PATIENCE_MS)]);
    const { items } = await client.list<WorkerCluster>(WORKERCLUSTERS, { signal });
    await client.close();
    return items.filter((cluster) => cluster.status?.mode === 'Managed' && wasBegun(cluster)).map(keyOf);
  } catch {
    context.signal.throwIfAborted();
    return [];
  }
}
