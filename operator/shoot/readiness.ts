/** The part of a client that `usable` needs; KubeClient has it. */
export interface UsableClient {
  ready(): Promise<boolean>;
  request(method: string, path: string, options?: Record<string, unknown>): Promise<unknown>;
}

/** Whether a cluster can be used, and if not, why not yet. */
export type Usability = { usable: true } | { usable: false; reason: string };

/**
 * Whether the holder of the client's credentials can work with the cluster now: the API server says that it is ready, and
 * lets the client make a namespace (as a dry run, which authorization and admission treat like any other request).
 * Never throws.
 */
export async function usable(client: UsableClient): Promise<Usability> {
  try {
    if (!(await client.ready())) return { usable: false, reason: 'the API server does not say yet that it is ready' };
    await client.request('POST', '/api/v1/namespaces', {
      query: { dryRun: 'All', fieldManager: 'coppice' },
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'coppice-readiness' } },
    });
    return { usable: true };
  } catch (error) {
    return { usable: false, reason: error instanceof Error ? error.message : String(error) };
  }
}
