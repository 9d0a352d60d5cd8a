import { COMPONENTS } from '../../api/names.ts';
import { ClusterConnection } from '../../clusters/cluster-connection.ts';
import { KubeClient } from '../../kube/client.ts';
import { waitFor } from '../../kube/informer.ts';
import { conditionIsTrue, keyOf, type Pod } from '../../kube/resources.ts';
import { operatorKubeconfig } from '../../shoot/kubeconfigs.ts';
import { issueOperatorCertificate } from '../../shoot/pki.ts';
import { endpointURL } from '../../shoot/values.ts';
import type { Operation } from './operation.ts';
import { ELSEWHERE, IN_SEED, untilServes } from './until-serves.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
export const USABLE = { ok: true, message: "the API server answers, and the admin's kubeconfig can write" };
/** What is said from when an API server that served stops answering. */
const SILENT = { ok: false, message: 'the API server does not answer' };

/** Opens the line to the shoot's API server once it serves. `patienceMs`: how long it may take until a pod of it runs. */
export async function connect(op: Operation, signal: AbortSignal, patienceMs = 4 * MINUTE): Promise<void> {
  const { state, world } = op;
  const server = endpointURL(op.values);
  if (state.connection && state.connection.server === server && world.now() < state.connection.renewAt) {
    const { client, line } = state.connection;
    if (line.answers && (await client.ready({ timeoutMs: 5 * SECOND }))) return;
  }
  await state.connection?.stop();
  state.connection = undefined;
  state.usable &&= SILENT;
  state.usableFor = undefined;
  state.systemApplied = undefined;
  state.changed?.();
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
    const serves = () => client.ready({ timeoutMs: 2 * SECOND, signal });
    if (isElsewhere(op)) await untilServes({ serves }, ELSEWHERE, signal);
    else await untilServes({ serves, news: (until) => untilMoreReady(op, until) }, IN_SEED, signal);
    const renewAt = new Date(+world.now() + 12 * 60 * MINUTE);
    const opened = new ClusterConnection(
      client,
      server,
      renewAt,
      world.log,
      (object) => world.insideChanged(op.shoot, object),
      (answers) => {
        if (state.connection === opened) lineChanged(op, answers);
      },
    );
    connection = opened;
    await connection.start(signal);
    state.connection = connection;
    world.openClusters.add(keyOf(op.shoot), connection);
  } catch (error) {
    // What has begun to follow the cluster would go on asking a closed client for ever.
    await (connection ? connection.stop() : client.close());
    throw error;
  }
}

/** Said at once, also while a task takes minutes; the next operation does what can be done about it. */
function lineChanged({ shoot, state, world }: Operation, answers: boolean): void {
  if (!answers) state.usable &&= SILENT;
  else if (state.usable && state.usableFor !== undefined) state.usable = USABLE;
  state.changed?.();
  world.again(shoot);
}

/** Whether no pod of the seed has to do with it. */
const isElsewhere = ({ controlPlanePool, provider }: Operation): boolean =>
  controlPlanePool !== undefined && provider.controlPlaneGroup !== undefined;

const apiServers = ({ seed, values }: Operation): Pod[] =>
  seed
    .podsOf(`${values.shoot.namespace}/${values.shoot.name}`)
    .filter((pod) => pod.metadata.labels?.app === COMPONENTS.apiServer);

const apiServerRuns = (op: Operation): boolean =>
  apiServers(op).some((pod) => pod.status?.containerStatuses?.[0]?.state?.running);

/** Resolves when a pod of the API server has become Ready that was not. */
async function untilMoreReady(op: Operation, signal: AbortSignal): Promise<void> {
  const ready = () =>
    apiServers(op)
      .filter((pod) => conditionIsTrue(pod, 'Ready'))
      .map(({ metadata }) => metadata.uid);
  const before = new Set(ready());
  await op.seed.pods.waitFor(() => ready().some((uid) => !before.has(uid)), {
    signal,
    timeoutMs: MINUTE,
    what: 'an API server to be Ready',
  });
}
