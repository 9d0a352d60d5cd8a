import type { AccountChecks } from '../../accounts/account-checks.ts';
import { credentialsOf } from '../../accounts/credentials.ts';
import { stateBackend } from '../../accounts/state-backend.ts';
import { type AccountsSide, usedCredentials } from '../../accounts/used-credentials.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { ANNOTATIONS } from '../../api/group.ts';
import { KUBECONFIG_KEY, kubeconfigSecretName } from '../../api/names.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { Decided } from '../../capacity/desired-sizes.ts';
import { connectCluster } from '../../clusters/kubeconfig-cluster.ts';
import {
  kubeconfigMayBeWritten,
  kubeconfigOwner,
  kubeconfigSecret,
  removeKubeconfigSecret,
} from '../../clusters/kubeconfig-secret.ts';
import type { OpenCluster, OpenClusters } from '../../clusters/open-clusters.ts';
import { systemClock } from '../../kube/clock.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Receipts } from '../../kube/receipt.ts';
import { keyOf, type Secret, splitKey, WORKERCLUSTERS } from '../../kube/resources.ts';
import type { ManagedDependencies, StoredKubeconfig } from './dependencies.ts';
import { assertOwnNames, clusterOfReceipt, type ManagedReceipt } from './receipt.ts';
import { leavingIn } from './removal.ts';

/** The garden's objects for the controller of managed clusters. */
interface GardenSide extends AccountsSide {
  /** Kubeconfig Secrets of clusters. */
  readonly kubeconfigs: Informer<Secret>;
  readonly receipts: Receipts<ManagedReceipt>;
  /** Their Secrets. */
  readonly receiptSecrets: Pick<Informer<Secret>, 'list'>;
  readonly checks: AccountChecks;
  /** Decided sizes of a cluster's pools. */
  decided(cluster: WorkerCluster): Decided;
  /** Registry of open connections to clusters. */
  readonly openClusters: OpenClusters;
}

/** A cache that lacks a deletion after this time is broken, and reports that itself. */
const HEARD_MS = 10_000;

/** Dependencies of the controller of managed clusters on a real garden. */
export function gardenDependencies(
  side: GardenSide,
  notify: Pick<ManagedDependencies, 'enqueue' | 'changed' | 'recordEvent' | 'depleted'>,
): ManagedDependencies {
  const { garden, log, receipts, kubeconfigs } = side;
  const keyAt = (key: string): string => {
    const { namespace, name: cluster } = splitKey(key);
    return `${namespace}/${kubeconfigSecretName(cluster)}`;
  };
  return {
    garden: side.gardenID,
    log,
    clock: systemClock,
    now: () => side.now(),
    random: Math.random,
    async credentials(cluster, profile, signal) {
      const use = credentialsOf(cluster, profile.spec.type, (namespace, name) =>
        side.bindings.get(`${namespace}/${name}`),
      );
      return usedCredentials(side, use, signal);
    },
    checkAccount: (wish, ctx, version) => side.checks.check(wish.clouds!, ctx, version),
    stateBackend: (profile: CloudProfile, signal) => stateBackend(side.state, profile, signal),
    leaving: (cluster) => leavingIn(side.decided(cluster)),
    receipts: {
      get: (key) => receipts.get(key),
      async save(receipt, before, signal) {
        const key = clusterOfReceipt(receipt);
        if (!receipts.get(key)) assertOwnNames(receipt, side.receiptSecrets.list());
        await receipts.save(key, receipt, before, signal);
      },
      remove: (key, signal) => receipts.remove(key, signal),
    },
    kubeconfigs: {
      get: (key) => storedKubeconfig(kubeconfigs.get(keyAt(key))),
      async save(cluster, { kubeconfig, expiresAt, renewAt }, signal) {
        const owner = kubeconfigOwner('WorkerCluster', cluster);
        const annotations = {
          ...(expiresAt && { [ANNOTATIONS.expiresAt]: expiresAt }),
          ...(renewAt && { [ANNOTATIONS.renewAt]: renewAt }),
        };
        await kubeconfigMayBeWritten(garden, owner, kubeconfigs.get(keyAt(keyOf(cluster))), signal);
        kubeconfigs.absorb(await garden.apply(kubeconfigSecret(owner, kubeconfig, annotations), { signal }));
      },
      async remove(cluster, signal) {
        const key = keyAt(keyOf(cluster));
        const removed = await removeKubeconfigSecret(garden, kubeconfigOwner('WorkerCluster', cluster), { signal });
        if (removed === undefined) return;
        await kubeconfigs.waitFor(() => kubeconfigs.get(key)?.metadata.uid !== removed, {
          timeoutMs: HEARD_MS,
          signal,
          what: `Secret ${key} to be gone`,
        });
      },
    },
    connect: (key, kubeconfig, news, signal) => {
      const opened = (cluster: OpenCluster) => side.openClusters.add(key, cluster);
      return connectCluster(kubeconfig, news, { tenant: splitKey(key).namespace, log, opened }, signal);
    },
    async clearRequest({ metadata: { name, namespace } }, signal) {
      const annotations = { [ANNOTATIONS.operation]: null };
      side.clusters.absorb(
        await garden.mergePatch<WorkerCluster>(
          WORKERCLUSTERS,
          name,
          namespace,
          { metadata: { annotations } },
          { signal },
        ),
      );
    },
    ...notify,
  };
}

function storedKubeconfig(secret: Secret | undefined): StoredKubeconfig | undefined {
  const text = secret?.data?.[KUBECONFIG_KEY];
  if (!text) return undefined;
  const { [ANNOTATIONS.expiresAt]: expiresAt, [ANNOTATIONS.renewAt]: renewAt } = secret.metadata.annotations ?? {};
  return {
    kubeconfig: Buffer.from(text, 'base64').toString(),
    ...(expiresAt && { expiresAt }),
    ...(renewAt && { renewAt }),
  };
}
