import { setTimeout as sleep } from 'node:timers/promises';
import { KUBECONFIG_KEY, kubeconfigSecretName } from '../api/names.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import { KubeClient } from '../kube/client.ts';
import { SECRETS } from '../kube/resources.ts';
import { isReady, lacksControlPlane } from './clusterview.ts';
import { type Connection, EMBEDDED_GARDEN } from './connect.ts';
import type { Context } from './context.ts';
import { gardenDirectory } from './garden.ts';
import { WORKER_CLUSTER } from './kinds.ts';

const LOOK_MS = 300;
const ANSWER_MS = 2_000;
/** By then the operator has told of an API server that does not answer. */
const PATIENCE_MS = 30_000;

/**
 * Resolves when the API server of a cluster answers whose status calls it Ready, or the status no longer does: that of a garden of this
 * machine which was stopped is from before, and its control planes start again. Says so once where it does not answer.
 */
export async function untilServes(
  { client, namespace, source }: Connection,
  { env, signal, terminal }: Pick<Context, 'env' | 'signal' | 'terminal'>,
  name: string,
): Promise<void> {
  if (source !== EMBEDDED_GARDEN || (await gardenDirectory(env).read())?.seed !== 'local') return;
  const deadline = performance.now() + PATIENCE_MS;
  for (let isFirst = true; performance.now() < deadline; isFirst = false) {
    const cluster = await client.getOrUndefined<WorkerCluster>(WORKER_CLUSTER.resource, name, namespace, { signal });
    const isHostedHere = cluster?.status?.shootRef !== undefined && !lacksControlPlane(cluster);
    if (!isHostedHere || !isReady(cluster) || (await answers(client, name, namespace, signal))) return;
    if (isFirst) terminal.note(`WorkerCluster ${name}: its control plane starts again.`);
    await sleep(LOOK_MS, undefined, { signal });
  }
}

async function answers(garden: KubeClient, name: string, namespace: string, signal: AbortSignal): Promise<boolean> {
  const secret = await garden.getOrUndefined(SECRETS, kubeconfigSecretName(name), namespace, { signal });
  const value = (secret?.data as Record<string, string> | undefined)?.[KUBECONFIG_KEY];
  if (value === undefined) return false;
  const text = Buffer.from(value, 'base64').toString('utf8');
  const source = `the kubeconfig in Secret ${namespace}/${kubeconfigSecretName(name)}`;
  const client = KubeClient.fromKubeconfig(text, undefined, { userAgent: 'coppice-cli', source });
  try {
    return await client.ready({ timeoutMs: ANSWER_MS, signal });
  } finally {
    await client.close();
  }
}
