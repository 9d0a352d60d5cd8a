import type { WorkerCluster } from '../../api/workercluster.ts';
import { inNamespace } from '../clusterview.ts';
import { connect } from '../connect.ts';
import type { Context } from '../context.ts';
import { CliError, EXIT, UsageError } from '../errors.ts';
import { kindOf, WORKER_CLUSTER_KIND } from '../kinds.ts';
import { explainFor, kubectlWords } from '../kubectl-words.ts';
import { waitForCluster } from '../waiting.ts';
import { missingError } from './get.ts';

/** kubectl takes a kind first: `delete seed local` must not delete a cluster named `seed` or `local`. */
async function refuseKind(context: Context): Promise<void> {
  const { options, program } = context;
  const [word = '', ...names] = context.positionals;
  const kind = names.length > 0 ? kindOf(word) : undefined;
  if (!kind) return;
  const meant = kind === WORKER_CLUSTER_KIND ? `${program} delete` : `${await kubectlWords(context)} delete ${word}`;
  const where = kind.resource.namespaced ? inNamespace(options.text('namespace')) : '';
  throw new UsageError(
    `delete takes names of clusters only, and "${word}" is a kind`,
    `run "${meant} ${names.join(' ')}${where}"`,
  );
}

/** `coppice delete NAME... [--wait]`. */
export async function run(context: Context): Promise<number | undefined> {
  const { options, positionals, terminal, signal } = context;
  await refuseKind(context);
  const deadline = options.number('timeout');
  const started = performance.now();
  const connection = await connect(context);
  const { client, namespace } = connection;
  const { resource } = WORKER_CLUSTER_KIND;

  const going: { name: string; uid: string | undefined }[] = [];
  let worst: number = EXIT.ok;
  for (const name of positionals) {
    try {
      const cluster = await client.getOrUndefined<WorkerCluster>(resource, name, namespace, { signal });
      if (cluster === undefined) {
        if (options.flag('ignore-not-found')) continue;
        throw await missingError(client, WORKER_CLUSTER_KIND, name, namespace, signal);
      }
      // By UID: the wait must not go on for a new cluster of the same name.
      const { uid } = cluster.metadata;
      await client.delete(resource, name, namespace, { ...(uid && { preconditions: { uid } }), signal });
      going.push({ name, uid });
      if (!options.flag('wait')) terminal.print(`WorkerCluster ${name} is being deleted.`);
    } catch (error) {
      signal.throwIfAborted();
      // Continue with the other names.
      const { message, exitCode } = await explainFor(context, error);
      if (positionals.length === 1) throw error;
      terminal.note(`${terminal.notePaint('bad', 'error:')} ${message}`);
      worst = exitCode;
    }
  }

  if (options.flag('wait')) {
    for (const { name, uid } of going) {
      const timeoutMs = deadline === undefined ? undefined : Math.max(1, deadline - (performance.now() - started));
      await waitForCluster(connection, context, { name, uid, goal: 'Deleted', timeoutMs });
      terminal.print(`WorkerCluster ${name} is deleted.`);
    }
  }
  if (going.length === 0 && worst === EXIT.ok && !options.flag('ignore-not-found'))
    throw new CliError('nothing was deleted');
  return worst;
}
