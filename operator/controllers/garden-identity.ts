import type { KubeClient } from '../kube/client.ts';
import { sleep } from '../kube/clock.ts';
import { NAMESPACES } from '../kube/resources.ts';

const PATIENCE_MS = 10_000;

/** Identity of this garden in clouds and seeds: UID of its namespace kube-system, which lives as long as the garden. */
export async function gardenIdentity(garden: KubeClient, signal: AbortSignal): Promise<string> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const namespace = await garden.getOrUndefined(NAMESPACES, 'kube-system', undefined, { signal });
    if (namespace?.metadata.uid) return namespace.metadata.uid;
    // A new API server creates it a moment after it begins to serve.
    if (performance.now() > deadline)
      throw new Error('the garden has no namespace kube-system, which tells it from others');
    await sleep(200, signal);
    signal.throwIfAborted();
  }
}
