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
import { type ChangeEvent, Informer } from '../../kube/informer.ts';
import type { Receipts } from '../../kube/receipt.ts';
import { keyOf, SECRETS, type Secret, splitKey, WORKERCLUSTERS } from '../../kube/resources.ts';
import { type Core, OPERATIONS_AT_ONCE, type Part, workersOfNamespace } from '../core.ts';
import type { CredentialsWiring } from '../credentials/wiring.ts';
import { noteShortages } from '../shortages.ts';
import { ManagedController } from './controller.ts';
import type { ManagedDependencies, StoredKubeconfig } from './dependencies.ts';
import { moveEarlierReceipts } from './earlier-receipts.ts';
import { type LeftOverDependencies, reportLeftOver } from './left-over.ts';
import {
  assertOwnNames,
  clusterOfReceipt,
  type ManagedReceipt,
  managedReceiptIn,
  managedReceipts,
  RECEIPT_SELECTOR,
} from './receipt.ts';
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
function gardenDependencies(
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

/** The wired controller of managed clusters. */
interface Managed extends Part {
  readonly managed: ManagedController;
}

const OPERATION_LIMIT_MS = 3 * 3600_000;
/** Interval of status updates for pods inside of a cluster. */
const INSIDE_CHANGES_MS = 500;

/** Creates the controller of managed clusters. Its facts go to the controller of WorkerClusters. */
export function wireManaged(
  core: Core,
  { accounts, onChange, onAccepted }: Pick<CredentialsWiring, 'accounts' | 'onChange' | 'onAccepted'>,
): Managed {
  const { garden, gardenID, log, clusters, profiles, recordEvent } = core;
  const { namespace } = core.state;
  const queue = core.queue('managed', { perNamespace: workersOfNamespace(OPERATIONS_AT_ONCE) });
  const told = core.queues.clusters;
  // The operator's namespace only, where tenants cannot write.
  const receiptSecrets = new Informer<Secret>(garden, SECRETS, { log, labelSelector: RECEIPT_SELECTOR, namespace });
  const receipts = managedReceipts(garden, namespace, receiptSecrets);
  const deps = gardenDependencies(
    { ...core, ...accounts, receipts, receiptSecrets },
    {
      enqueue: (key) => queue.add(key),
      changed: (key, inside) => (inside ? told.addAfter(key, INSIDE_CHANGES_MS) : told.add(key)),
      recordEvent,
      depleted({ cluster, profile, desired }, error) {
        if (profile)
          noteShortages(core.capacity, { recordEvent, cluster, profile, pools: desired?.pools ?? [] }, error);
      },
    },
  );
  const managed = new ManagedController(deps);
  const leftOverDependencies: LeftOverDependencies = {
    ...deps,
    profile: (name) => profiles.get(name),
    clouds: (profile) => core.provider(profile, true)?.managed,
    credentialsIn: (use, stop) => usedCredentials(accounts, use, stop),
  };

  const clusterChanged = async (event: ChangeEvent<WorkerCluster>) => {
    const key = keyOf(event.object);
    if (event.type === 'deleted' && (await managed.forget(key))) queue.add(key);
  };
  clusters.onChange((event) => {
    clusterChanged(event).catch((error: unknown) =>
      log.warn({ err: error }, 'a connection to a cluster did not close'),
    );
  });
  onChange((of) => {
    for (const cluster of clusters.list())
      if (cluster.metadata.namespace === of && cluster.spec.credentialsRef) queue.add(keyOf(cluster));
  });
  onAccepted((key) => managed.credentialsAccepted(key));

  return {
    managed,
    caches: [receiptSecrets],
    async prepare(signal) {
      await moveEarlierReceipts(
        {
          garden: gardenID,
          client: garden,
          namespace,
          log,
          recordEvent,
          receipts: deps.receipts,
          cluster: (key) => clusters.get(key),
          profile: (name) => profiles.get(name),
        },
        signal,
      );
      // Only receipts show clusters that were force-deleted while no operator ran.
      for (const secret of receiptSecrets.list()) {
        const found = managedReceiptIn(secret);
        if (found) queue.add(clusterOfReceipt(found));
      }
    },
    controllers: [
      {
        name: 'managed',
        queue,
        // The runner bounds parallel runs, by account.
        concurrency: OPERATIONS_AT_ONCE,
        timeoutMs: OPERATION_LIMIT_MS,
        async reconcile(key, stop) {
          const left = clusters.get(key) ? undefined : deps.receipts.get(key);
          return left ? reportLeftOver(leftOverDependencies, key, left, stop) : managed.reconcile(key, stop);
        },
      },
    ],
    close: () => managed.stop(),
  };
}
