import type { CloudContext } from '../../providers/cloud.ts';
import type { CloudProfile } from '../api/cloudprofile.ts';
import type { CredentialsBinding } from '../api/credentialsbinding.ts';
import { configurationProblem } from '../api/errors.ts';
import { technicalID } from '../api/names.ts';
import { checkedRegion } from '../api/region.ts';
import type { Shoot } from '../api/shoot.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import { keyOf } from '../kube/resources.ts';
import { accountKeyOf, type CredentialsUse, credentialsOf, usedByBindingFor } from './credentials.ts';
import { hasAccount } from './has-account.ts';
import { stateBackend } from './state-backend.ts';
import { type AccountsSide, usedCredentials } from './used-credentials.ts';

/** The WorkerCluster that a shoot was created for; undefined for a shoot that a person wrote. */
function clusterOf(shoot: Shoot, clusters: Pick<AccountsSide['clusters'], 'get'>): WorkerCluster | undefined {
  const { namespace, ownerReferences = [] } = shoot.metadata;
  const owner = ownerReferences.find(({ kind }) => kind === 'WorkerCluster');
  const cluster = owner && clusters.get(`${namespace}/${owner.name}`);
  return cluster?.metadata.uid === owner?.uid ? cluster : undefined;
}

/** Whether a shoot uses a real account: its WorkerCluster does, or it names a CredentialsBinding itself. */
export function namesAccount(shoot: Shoot, clusters: Pick<AccountsSide['clusters'], 'get'>): boolean {
  const cluster = clusterOf(shoot, clusters);
  return cluster ? hasAccount(cluster, shoot) : shoot.spec.credentialsBindingName !== undefined;
}

/**
 * Credentials for a shoot's machines: those of its WorkerCluster, or of the CredentialsBinding that the shoot names;
 * always in its own namespace. Throws CoppiceErrors.
 */
export function credentialsOfShoot(
  shoot: Shoot,
  providerType: string,
  clusters: Pick<AccountsSide['clusters'], 'get'>,
  bindings: (namespace: string, name: string) => CredentialsBinding | undefined,
): CredentialsUse {
  const cluster = clusterOf(shoot, clusters);
  if (cluster?.spec.credentialsRef) return credentialsOf(cluster, providerType, bindings);
  const { name, namespace = '' } = shoot.metadata;
  const named = shoot.spec.credentialsBindingName;
  if (named === undefined) {
    throw configurationProblem(
      `Shoot ${namespace}/${name} names no credentials of the account that its machines are to be in`,
      'Name a CredentialsBinding in spec.credentialsBindingName, or credentials in spec.credentialsRef of its WorkerCluster.',
    );
  }
  return usedByBindingFor(bindings(namespace, named), { namespace, name: named }, providerType);
}

/**
 * Keys of the users of a binding: clusters that use it in at least one place, their shoots, and shoots without a
 * cluster. Pure.
 */
export function usersOf(
  { metadata: { name, namespace } }: CredentialsBinding,
  clusters: readonly WorkerCluster[],
  shoots: readonly Shoot[],
): { clusters: string[]; shoots: string[] } {
  const named = clusters
    .filter(({ metadata }) => metadata.namespace === namespace)
    .filter(({ spec }) => [spec, ...(spec.fallback ?? [])].some(({ credentialsRef }) => credentialsRef?.name === name))
    .map(keyOf);
  const using = shoots
    .filter(({ metadata }) => metadata.namespace === namespace)
    .filter((shoot) => shoot.spec.credentialsBindingName === name || named.includes(keyOf(shoot)))
    .map(keyOf);
  return { clusters: named, shoots: using };
}

/**
 * The tenant's account that holds a shoot's machines, with the context of calls to its cloud. Rejects with
 * CoppiceErrors.
 */
export async function accountOfShoot(
  side: AccountsSide,
  shoot: Shoot,
  profile: CloudProfile,
  signal: AbortSignal,
): Promise<CloudContext> {
  const use = credentialsOfShoot(shoot, profile.spec.type, side.clusters, (namespace, name) =>
    side.bindings.get(`${namespace}/${name}`),
  );
  const credentials = await usedCredentials(side, use, signal);
  const { name, namespace = '', uid = '' } = shoot.metadata;
  return {
    owner: {
      technicalID: technicalID(namespace, name),
      uid: clusterOf(shoot, side.clusters)?.metadata.uid ?? uid,
      name,
      namespace,
      garden: side.gardenID,
    },
    account: { id: accountKeyOf(use), credentials: credentials.values },
    region: checkedRegion(shoot.spec.region),
    profile,
    state: await stateBackend(side.state, profile, signal),
    log: side.log,
    signal,
    now: () => side.now(),
  };
}
