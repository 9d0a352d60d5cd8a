import { KubeClient } from '../../kube/client.ts';
import { TENANT_LIMITS } from '../../kube/http/answer-limits.ts';
import { parseUntrustedKubeconfig } from '../../kube/kubeconfig.ts';
import { gardenBindings, issueDaemon } from '../control-plane/administrators.ts';
import { readText } from '../host/files.ts';
import type { StateDirectory } from '../state/state.ts';
import { applyPatiently } from './manifests.ts';

/**
 * A client of the garden's API server with rights independent of bindings. Throws where the garden has no certificates
 * yet.
 */
export async function daemonClient(directory: StateDirectory): Promise<KubeClient> {
  const admin = await readText(directory.kubeconfigFile('admin'));
  if (admin === undefined) throw new Error("the garden's kubeconfig is missing");
  return new KubeClient({
    ...parseUntrustedKubeconfig(admin, "the garden's kubeconfig"),
    // The administrator has no rights before the bindings exist. A new certificate is issued after expiry.
    credentials: () => issueDaemon(directory, new Date()),
    limits: TENANT_LIMITS,
    userAgent: 'coppice-garden',
  });
}

/** Recreates the administrators' bindings in a running garden after a deletion. */
export async function restoreBindings(directory: StateDirectory, signal?: AbortSignal): Promise<void> {
  const client = await daemonClient(directory);
  try {
    for (const binding of gardenBindings()) await applyPatiently(client, binding, signal);
  } finally {
    await client.close();
  }
}
