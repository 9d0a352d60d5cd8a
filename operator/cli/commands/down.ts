import type { WorkerCluster } from '../../api/workercluster.ts';
import { wasBegun } from '../../controllers/managed/wish.ts';
import { keyOf, WORKERCLUSTERS } from '../../kube/resources.ts';
import { connectGarden } from '../connect.ts';
import type { Context } from '../context.ts';
import { CliError } from '../errors.ts';
import { markDeleted, openGarden } from '../garden.ts';
import { showProgress } from '../gardenview.ts';
import { gardenHere, removeContextsOf } from '../kubeconfig/garden-contexts.ts';

/** A garden that has not answered by then is taken for one that does not run. */
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
  await showProgress(terminal, (onProgress) => garden.down({ onProgress }));
  await markDeleted(env);
  terminal.print('The garden is deleted: its processes, clusters, networks and state.');
  for (const line of await removeContextsOf(here, env, context.signal)) terminal.note(line);
}

/** What only this garden knows of, and nobody would take away after it. */
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
