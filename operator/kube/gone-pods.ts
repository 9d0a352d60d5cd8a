import type { KubeClient } from './client.ts';
import type { Log } from './log.ts';
import { hasEnded } from './pods.ts';
import { PODS, type Pod } from './resources.ts';

export interface GonePodsOptions {
  client: KubeClient;
  /** Of the pods. */
  namespace: string;
  /** Names of pods that ran this program; of any other name nothing is known. */
  ours: () => readonly string[];
  log: Log;
}

/**
 * Whether a host was a pod of ours that is gone for good: the API server has it no longer, or says that it has ended. A pod's
 * object goes when its node has stopped it, or when a person vouches for that (deletion by force). Names of a Deployment's
 * pods are not used again. False where it cannot be told.
 */
export const gonePods =
  ({ client, namespace, ours, log }: GonePodsOptions) =>
  async (host: string): Promise<boolean> => {
    if (!ours().includes(host)) return false;
    try {
      const pod = await client.getOrUndefined<Pod>(PODS, host, namespace, { signal: AbortSignal.timeout(10_000) });
      return pod === undefined || hasEnded(pod);
    } catch (error) {
      log.warn({ err: error, pod: host }, 'it cannot be told whether a pod that led before is gone');
      return false;
    }
  };
