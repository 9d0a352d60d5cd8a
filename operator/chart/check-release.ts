import { OPERATOR_LEASE } from '../api/names.ts';
import type { KubeClient } from '../kube/client.ts';
import { LEASES, type Lease } from '../kube/resources.ts';

const PATIENCE_MS = 10_000;

/** What `helm test` checks of an installed release. */
interface ReleaseCheck {
  /** URL of the operator's Service, without a path. */
  url: string;
  /** Namespace of the operator's Lease. */
  namespace: string;
}

/** Faults of an installed release, a line each; empty if it works. */
export async function checkRelease(client: KubeClient, { url, namespace }: ReleaseCheck): Promise<string[]> {
  const [ready, metrics, lease] = await Promise.allSettled([
    text(`${url}/readyz`),
    text(`${url}/metrics`),
    client.get<Lease>(LEASES, OPERATOR_LEASE, namespace),
  ]);
  const problems: string[] = [];
  if (ready.status === 'rejected') problems.push(`the operator is not ready: ${(ready.reason as Error).message}`);
  if (metrics.status === 'rejected') problems.push(`no metrics are served: ${(metrics.reason as Error).message}`);
  else if (!metrics.value.includes('coppice_api_requests_total'))
    problems.push('the metrics are not those of an operator');
  if (lease.status === 'rejected') problems.push(`the Lease cannot be read: ${(lease.reason as Error).message}`);
  else if (!lease.value.spec?.holderIdentity) problems.push('no replica leads: see the log of each');
  return problems;
}

async function text(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS) }).catch((error: Error) => {
    // fetch reports only "fetch failed"; its cause names the failure.
    const cause = error.cause as NodeJS.ErrnoException | undefined;
    throw new Error(`${url} does not answer (${cause?.code ?? error.message})`);
  });
  const body = await response.text();
  if (!response.ok) throw new Error(`${url} answers ${response.status}: ${body.trim().replaceAll('\n', ', ')}`);
  return body;
}
