import type { KubeClient } from './client.ts';
import type { Log } from './log.ts';
import { hasEnded } from './pods.ts';
import { PODS, type Pod } from './resources.ts';

interface GonePodsOptions {
  client: KubeClient;
  /** Namespace of the pods. */
  namespace: string;
  /** Names of pods that ran this program; any other name is unknown. */
  ours: () => readonly string[];
  log: Log;
}

/**
 * Returns a check whether a host was an operator pod that has ended for good: its Pod object is missing or says that it
 * ended. A Pod object disappears when its node has stopped the pod, or by forced deletion, with which a person vouches
 * for that. A Deployment never reuses pod names. In doubt false.
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
