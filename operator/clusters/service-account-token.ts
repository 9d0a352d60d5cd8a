import type { KubeClient } from '../kube/client.ts';
import { pathOf, SERVICEACCOUNTS } from '../kube/resources.ts';

interface TokenRequest {
  status: { token: string; expirationTimestamp: string };
}

/**
 * A token of a ServiceAccount and its expiry (RFC 3339): the API server may grant a shorter life than requested. Throws
 * as KubeClient does.
 */
export async function requestToken(
  client: Pick<KubeClient, 'request'>,
  account: { readonly namespace: string; readonly name: string },
  seconds: number,
  signal: AbortSignal,
): Promise<{ token: string; expiresAt: string }> {
  const path = pathOf(SERVICEACCOUNTS, account.namespace, account.name, 'token');
  const { status } = await client.request<TokenRequest>('POST', path, {
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: seconds } },
    signal,
  });
  return { token: status.token, expiresAt: status.expirationTimestamp };
}
