import { OPERATOR_USER } from '../../operator/api/roles.ts';
import { KubeClient } from '../../operator/kube/client.ts';
import type { KubeClientOptions } from '../../operator/kube/requests/api-requests.ts';
import { issue, type KeyPair } from '../../operator/pki/certificates.ts';
import { writeKubeconfigText } from '../../operator/pki/kubeconfig.ts';

/** All that it takes to use an API server of the tests, in any process. */
export interface ApiserverKeys {
  url: string;
  ca: KeyPair;
  /** Of a member of system:masters. */
  admin: KeyPair;
  readerToken: string;
}

/** Ways into an API server of the tests. */
export interface ApiserverAccess {
  url: string;
  /** PEM. */
  ca: string;
  /** Of a member of system:masters, with a client certificate. */
  kubeconfig: string;
  client: KubeClient;
  /** Bearer token of the user `reader`, who may read nothing until RBAC says so. */
  readerToken: string;
  /** A client with options of its own, closed with the access. */
  connect(more?: Partial<KubeClientOptions>): KubeClient;
  /** A client with all rights and the operator's name, by which admission policies know it. */
  asOperator(): Promise<KubeClient>;
  /** A client certificate of this user. */
  certificate(user: string, groups?: string[]): Promise<KeyPair>;
}

/** @param onRequest hears of what `client` asks, and of nobody else's requests */
export function accessTo(
  { url, ca, admin, readerToken }: ApiserverKeys,
  onRequest?: KubeClientOptions['onRequest'],
): ApiserverAccess & { close: () => Promise<void> } {
  const clients = new Set<KubeClient>();
  const connect = (more: Partial<KubeClientOptions> = {}) => {
    const anonymous = more.token !== undefined || more.tokenFile !== undefined || more.credentials !== undefined;
    const identity = anonymous ? {} : { cert: admin.cert, key: admin.key };
    const made = new KubeClient({ server: url, ca: ca.cert, ...identity, ...more });
    clients.add(made);
    return made;
  };
  const certificate = (user: string, groups: string[] = []) => issue(ca, certificateOf(user, groups));
  return {
    url,
    ca: ca.cert,
    kubeconfig: writeKubeconfigText({ server: url, ca: ca.cert, ...admin, name: 'test', user: 'admin' }),
    client: connect(onRequest ? { onRequest } : {}),
    readerToken,
    connect,
    asOperator: async () => connect(await certificate(OPERATOR_USER, ['system:masters'])),
    certificate,
    async close() {
      await Promise.all([...clients].map((client) => client.close()));
    },
  };
}

/** What a client certificate of this user says. */
export const certificateOf = (user: string, groups: string[]) => ({
  commonName: user,
  organizations: groups,
  usages: ['client' as const],
  days: 1,
});
