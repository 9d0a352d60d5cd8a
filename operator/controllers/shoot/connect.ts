import { COMPONENTS } from '../../api/names.ts';
import { ClusterConnection } from '../../clusters/cluster-connection.ts';
import { KubeClient } from '../../kube/client.ts';
import { sleep } from '../../kube/clock.ts';
import { waitFor } from '../../kube/informer.ts';
import { keyOf } from '../../kube/resources.ts';
import { operatorKubeconfig } from '../../shoot/kubeconfigs.ts';
import { issueOperatorCertificate } from '../../shoot/pki.ts';
import { endpointURL } from '../../shoot/values.ts';
import type { Operation } from './operation.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** Opens the line to the shoot's API server once it serves. `patienceMs`: how long it may take until a pod of it runs. */
export async function connect(op: Operation, signal: AbortSignal, patienceMs = 4 * MINUTE): Promise<void> {
  const { state, world } = op;
  const server = endpointURL(op.values);
  if (state.connection && state.connection.server === server && world.now() < state.connection.renewAt) {
    if (await state.connection.client.ready({ timeoutMs: 5 * SECOND })) return;
  }
  await state.connection?.stop();
  state.connection = undefined;
  state.usable = undefined;
  state.systemApplied = undefined;
  const certificate = await issueOperatorCertificate(op.pki, world.now());
  const client = KubeClient.fromKubeconfig(operatorKubeconfig(op.values, op.pki, certificate));
  let connection: ClusterConnection | undefined;
  try {
    // Not before somebody can answer: a packet to a Service that the seed does not know yet is lost, and is sent again only
    // after a second, then two, then four.
    if (!isElsewhere(op))
      await waitFor([op.seed.pods], () => apiServerRuns(op), {
        timeoutMs: patienceMs,
        signal,
        what: `a pod of ${COMPONENTS.apiServer} to run`,
      });
    while (!(await client.ready({ timeoutMs: 2 * SECOND, signal }).catch(() => false))) {
      signal.throwIfAborted();
      await sleep(isElsewhere(op) ? SECOND : 100, signal);
    }
    const renewAt = new Date(+world.now() + 12 * 60 * MINUTE);
    connection = new ClusterConnection(client, server, renewAt, world.log, (object) =>
      world.insideChanged(op.shoot, object),
    );
    await connection.start(signal);
    state.connection = connection;
    world.openClusters.add(keyOf(op.shoot), connection);
  } catch (error) {
    // What has begun to follow the cluster would go on asking a closed client for ever.
    await (connection ? connection.stop() : client.close());
    throw error;
  }
}

/** Whether no pod of the seed has to do with it. */
const isElsewhere = ({ controlPlanePool, provider }: Operation): boolean =>
  controlPlanePool !== undefined && provider.controlPlaneGroup !== undefined;

const apiServerRuns = ({ seed, values }: Operation): boolean =>
  seed
    .podsOf(`${values.shoot.namespace}/${values.shoot.name}`)
    .some(
      (pod) => pod.metadata.labels?.app === COMPONENTS.apiServer && pod.status?.containerStatuses?.[0]?.state?.running,
    );
