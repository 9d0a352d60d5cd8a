import { EMBEDDED_SEED, KUBECONFIG_KEY, kubeconfigSecretName } from '../api/names.ts';
import type { Shoot } from '../api/shoot.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import { KubeClient } from '../kube/client.ts';
import { isTransient } from '../kube/errors.ts';
import { SECRETS, SHOOTS } from '../kube/resources.ts';
import { showsNoControlPlane } from './clusterview.ts';
import { type CliConnection, EMBEDDED_GARDEN } from './connect.ts';
import type { Context } from './context.ts';
import { gardenDirectory } from './garden.ts';
import type { WaitOptions } from './waiting.ts';

const ANSWER_MS = 2_000;

/**
 * Whether the API server of a cluster answers, if this machine's garden hosts the cluster: after a stop of the garden the status is
 * stale while control planes start again. Undefined for any other garden, whose clusters are not probed.
 */
export async function askWhetherServes(
  { client, namespace, source }: CliConnection,
  { env }: Pick<Context, 'env'>,
): Promise<WaitOptions['serves']> {
  if (source !== EMBEDDED_GARDEN || (await gardenDirectory(env).read())?.seed !== 'local') return undefined;
  return async (cluster, signal) => {
    try {
      return (
        !(await isHostedHere(client, cluster, signal)) ||
        (await answers(client, cluster.metadata.name, namespace, signal))
      );
    } catch (error) {
      if (isTransient(error)) return false;
      throw error;
    }
  };
}

/** Whether the control plane stops and starts with this garden; one in another seed or on cloud machines keeps running. */
async function isHostedHere(garden: KubeClient, cluster: WorkerCluster, signal: AbortSignal): Promise<boolean> {
  const { shootRef, mode, provider } = cluster.status ?? {};
  if (!shootRef || showsNoControlPlane(cluster) || (mode === 'SelfManaged' && provider !== 'local')) return false;
  const namespace = shootRef.namespace ?? cluster.metadata.namespace;
  const shoot = await garden.getOrUndefined<Shoot>(SHOOTS, shootRef.name, namespace, { signal });
  return shoot?.status?.seedName === EMBEDDED_SEED;
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
