import type { CloudKubeconfig } from '../../providers/cloud.ts';
import { KubeClient } from '../kube/client.ts';
import { isNotFound } from '../kube/errors.ts';
import { TENANT_LIMITS } from '../kube/http/answer-limits.ts';
import { parseUntrustedKubeconfig } from '../kube/kubeconfig.ts';
import type { Log } from '../kube/log.ts';
import type { KubeObject, Node, Pod } from '../kube/resources.ts';
import { writeKubeconfigText } from '../pki/kubeconfig.ts';
import { ClusterConnection } from './cluster-connection.ts';
import type { OpenCluster } from './open-clusters.ts';
import { requestToken } from './service-account-token.ts';

const NAMESPACE = 'kube-system';
const ACCOUNT = 'coppice-admin';
/** A day outlasts an outage of the operator overnight. Clouds may grant less; their answer counts. */
const TOKEN_SECONDS = 24 * 3600;
/** Nothing is renewed through this connection. */
const NEVER = new Date(8.64e15);

/** Coppice's ServiceAccount in a managed cluster: cluster-admin, as the kubeconfig handed out requires. */
const ACCESS: readonly KubeObject[] = [
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: ACCOUNT, namespace: NAMESPACE } },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: ACCOUNT },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', name: ACCOUNT, namespace: NAMESPACE }],
  },
];

/** An open connection to a managed cluster's API server: nodes and pods are watched, never polled. */
export interface KubeconfigConnection {
  readonly nodes: readonly Node[];
  readonly pods: readonly Pod[];
  /** False from when the API server was found not to answer until it answers again. */
  readonly answers: boolean;
  /** Whether the API server answers a client with cluster-admin rights. */
  ready(signal: AbortSignal): Promise<boolean>;
  /**
   * A kubeconfig of Coppice's ServiceAccount in the cluster; undefined where the cloud's identity may not create one.
   */
  ownKubeconfig(signal: AbortSignal): Promise<CloudKubeconfig | undefined>;
  /** Replaces the credentials, from the next request on. */
  use(kubeconfig: string): void;
  close(): Promise<void>;
}

/** Callbacks of a connection to a managed cluster. */
export interface ConnectionListener {
  /** A node or pod has changed. */
  changed(): void;
  /** The API server stopped answering, or answers again. */
  answers(now: boolean): void;
}

/**
 * Opens a connection to the API server of a kubeconfig.
 * @param of `tenant`: namespace of the cluster in the garden; `opened` is called once
 */
export async function connectCluster(
  text: string,
  news: ConnectionListener,
  { tenant, log, opened }: { tenant: string; log: Log; opened?: (cluster: OpenCluster) => void },
  signal: AbortSignal,
): Promise<KubeconfigConnection> {
  let current = parseUntrustedKubeconfig(text);
  const { server, ca, serverName } = current;
  const client = new KubeClient({
    server,
    ca,
    serverName,
    limits: TENANT_LIMITS,
    // Read again after each 401: a watch outlives the token it began with.
    credentials: async () => ({ token: current.token, cert: current.cert, key: current.key }),
  });
  const connection = new ClusterConnection(
    client,
    { server, tenant },
    NEVER,
    log,
    () => news.changed(),
    (answers) => news.answers(answers),
  );
  try {
    // Informers retry for ever, so the right to list is checked first and reported.
    await listOne(client, signal);
    await connection.start(signal);
  } catch (error) {
    await connection.stop();
    throw error;
  }
  opened?.(connection);
  return {
    get nodes() {
      return connection.nodes.list();
    },
    get pods() {
      return connection.pods.list();
    },
    get answers() {
      return connection.health.answers;
    },
    ready: (ending) =>
      listOne(client, ending).then(
        () => true,
        () => false,
      ),
    ownKubeconfig: (ending) => ownKubeconfig(client, { server, ca: ca ?? '' }, ending),
    use: (next) => {
      current = parseUntrustedKubeconfig(next);
    },
    close: () => connection.stop(),
  };
}

const listOne = (client: KubeClient, signal: AbortSignal): Promise<unknown> =>
  client.request('GET', '/api/v1/namespaces', { query: { limit: 1 }, signal, timeoutMs: 10_000, retries: 0 });

async function ownKubeconfig(
  client: KubeClient,
  where: { server: string; ca: string },
  signal: AbortSignal,
): Promise<CloudKubeconfig> {
  const token = () => requestToken(client, { namespace: NAMESPACE, name: ACCOUNT }, TOKEN_SECONDS, signal);
  const granted = await token().catch(async (error: unknown) => {
    if (!isNotFound(error)) throw error;
    for (const object of ACCESS) await client.apply(object, { signal });
    return token();
  });
  return {
    kubeconfig: writeKubeconfigText({ ...where, token: granted.token, name: 'cluster', user: ACCOUNT }),
    // The API server may grant a shorter life than requested.
    expiresAt: granted.expiresAt,
  };
}
