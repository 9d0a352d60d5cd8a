import { notYetConfigured } from '../api/errors.ts';
import { API_VERSION, LABELS } from '../api/group.ts';
import { KUBECONFIG_KEY, kubeconfigSecretName } from '../api/names.ts';
import type { KubeClient } from '../kube/client.ts';
import { SECRETS, type Secret } from '../kube/resources.ts';

/** The object whose API server a kubeconfig leads to. */
interface KubeconfigOwner {
  readonly kind: 'Shoot' | 'WorkerCluster';
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
}

/** Cluster API's convention. */
const TYPE = 'cluster.x-k8s.io/secret';
const KINDS: readonly string[] = ['Shoot', 'WorkerCluster'] satisfies KubeconfigOwner['kind'][];

/** The owner of a kubeconfig. */
export const kubeconfigOwner = (
  kind: KubeconfigOwner['kind'],
  { metadata: { name, namespace = '', uid = '' } }: { metadata: { name: string; namespace?: string; uid?: string } },
): KubeconfigOwner => ({ kind, name, namespace, uid });

/** The Secret with the kubeconfig for people. */
export const kubeconfigSecret = (
  { kind, name, namespace, uid }: KubeconfigOwner,
  kubeconfig: string,
  annotations: Record<string, string> = {},
): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: {
    name: kubeconfigSecretName(name),
    namespace,
    labels: { [LABELS.clusterName]: name, [LABELS.managedBy]: 'coppice' },
    ...(Object.keys(annotations).length > 0 && { annotations }),
    ownerReferences: [{ apiVersion: API_VERSION, kind, name, uid, controller: true, blockOwnerDeletion: false }],
  },
  type: TYPE,
  data: { [KUBECONFIG_KEY]: Buffer.from(kubeconfig).toString('base64') },
});

/** Whether Coppice created the Secret for this owner; the name alone proves nothing, since anybody may choose it. */
const isKubeconfigOf = ({ metadata, type }: Secret, { uid }: Pick<KubeconfigOwner, 'uid'>): boolean =>
  type === TYPE && uid !== '' && (metadata.ownerReferences?.some((owner) => owner.uid === uid) ?? false);

/**
 * A kubeconfig of an earlier cluster of the same name: the garbage collector deletes it, unless it is overwritten
 * before.
 */
const isEarlier = ({ metadata, type }: Secret, { name }: KubeconfigOwner): boolean =>
  type === TYPE &&
  metadata.labels?.[LABELS.managedBy] === 'coppice' &&
  (metadata.ownerReferences?.some(
    (owner) => owner.apiVersion === API_VERSION && KINDS.includes(owner.kind) && owner.name === name,
  ) ??
    false);

/**
 * Throws when another Secret has the kubeconfig's name.
 * @param known the cached Secret; absent: the API server is asked, since caches hold labelled Secrets only
 */
export async function kubeconfigMayBeWritten(
  garden: Pick<KubeClient, 'getOrUndefined'>,
  owner: KubeconfigOwner,
  known: Secret | undefined,
  signal?: AbortSignal,
): Promise<void> {
  const name = kubeconfigSecretName(owner.name);
  const live = known ?? (await garden.getOrUndefined<Secret>(SECRETS, name, owner.namespace, { signal }));
  if (!live || isKubeconfigOf(live, owner) || isEarlier(live, owner)) return;
  throw notYetConfigured(
    `Secret ${owner.namespace}/${name} was not made for this cluster, whose kubeconfig belongs there`,
    'Delete the Secret or give it another name; or give the cluster another name.',
  );
}

/**
 * Deletes the kubeconfig handed out to people. A foreign Secret of the same name stays, also one created meanwhile.
 * @param known the cached Secret; absent: the API server is asked
 * @returns UID of the deleted Secret
 */
export async function removeKubeconfigSecret(
  garden: Pick<KubeClient, 'getOrUndefined' | 'delete'>,
  owner: KubeconfigOwner,
  { known, signal }: { known?: Secret | undefined; signal?: AbortSignal } = {},
): Promise<string | undefined> {
  const name = kubeconfigSecretName(owner.name);
  const live = known ?? (await garden.getOrUndefined<Secret>(SECRETS, name, owner.namespace, { signal }));
  if (!live || !isKubeconfigOf(live, owner)) return undefined;
  const { uid } = live.metadata;
  await garden.delete(SECRETS, name, owner.namespace, { signal, preconditions: { ...(uid && { uid }) } });
  return uid;
}
