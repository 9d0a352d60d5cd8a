import { KubeClient } from '../../kube/client.ts';
import { TENANT_LIMITS } from '../../kube/http/answer-limits.ts';
import { parseUntrustedKubeconfig } from '../../kube/kubeconfig.ts';
import { gardenBindings, issueDaemon } from '../control-plane/administrators.ts';
import { readText } from '../host/files.ts';
import type { StateDirectory } from '../state/state.ts';
import { applyPatiently } from './manifests.ts';

/** A client of the garden's API server with rights that no binding gives. Throws where the garden has no certificates yet. */
export async function daemonClient(directory: StateDirectory): Promise<KubeClient> {
  const admin = await readText(directory.kubeconfigFile('admin'));
  if (admin === undefined) throw new Error("the garden's kubeconfig is missing");
  return new KubeClient({
    ...parseUntrustedKubeconfig(admin, "the garden's kubeconfig"),
    // The administrator's own has no rights before the bindings are made. Asked for anew when it is over.
    credentials: () => issueDaemon(directory, new Date()),
    limits: TENANT_LIMITS,
    userAgent: 'coppice-garden',
  });
}

/** Makes the bindings of administrators in a garden that runs, where somebody has deleted them. */
export async function restoreBindings(directory: StateDirectory, signal?: AbortSignal): Promise<void> {
  const client = await daemonClient(directory);
  try {
    for (const binding of gardenBindings()) await applyPatiently(client, binding, signal);
  } finally {
    await client.close();
  }
}
