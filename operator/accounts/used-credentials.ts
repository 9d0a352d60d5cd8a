import type { CredentialsBinding } from '../api/credentialsbinding.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import type { WorkloadIdentity } from '../api/workloadidentity.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Informer } from '../kube/informer.ts';
import type { Log } from '../kube/log.ts';
import { SECRETS, type Secret } from '../kube/resources.ts';
import type { Credentials, CredentialsUse } from './credentials.ts';
import type { IdentityTokens } from './identity-tokens.ts';
import { obtainCredentials } from './obtain-credentials.ts';
import type { StateOptions } from './state-backend.ts';

/** The parts of the garden from which cloud accounts and their credentials are resolved. */
export interface AccountsSide {
  readonly garden: KubeClient;
  /** UID of the namespace kube-system. */
  readonly gardenID: string;
  readonly log: Log;
  readonly clusters: Informer<WorkerCluster>;
  readonly bindings: Informer<CredentialsBinding>;
  /** Secrets with credentials, labelled as used. */
  readonly credentials: Informer<Secret>;
  readonly identities: Informer<WorkloadIdentity>;
  readonly tokens: IdentityTokens;
  readonly state: StateOptions;
  now(): Date;
}

/** The parts of a garden from which credentials are read. */
type CredentialsSide = Pick<AccountsSide, 'garden' | 'credentials' | 'identities' | 'tokens'>;

/** The Secret with credentials: from the cache once it is labelled as used, before that from the API server. */
export async function credentialsSecret(
  { garden, credentials }: Pick<AccountsSide, 'garden' | 'credentials'>,
  namespace: string,
  name: string,
  signal?: AbortSignal,
): Promise<Secret | undefined> {
  return (
    credentials.get(`${namespace}/${name}`) ??
    (await garden.getOrUndefined<Secret>(SECRETS, name, namespace, { signal }))
  );
}

/** See obtainCredentials. */
export const usedCredentials = (
  side: CredentialsSide,
  use: CredentialsUse,
  signal?: AbortSignal,
): Promise<Credentials> =>
  obtainCredentials(
    {
      secret: (namespace, name, ending) => credentialsSecret(side, namespace, name, ending),
      identity: async (namespace, name) => side.identities.get(`${namespace}/${name}`),
      tokens: side.tokens,
    },
    use,
    signal,
  );
