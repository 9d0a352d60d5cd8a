import { usedCredentials } from '../../accounts/used-credentials.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { type ChangeEvent, Informer } from '../../kube/informer.ts';
import { keyOf, SECRETS, type Secret } from '../../kube/resources.ts';
import { type Core, OPERATIONS_AT_ONCE, type Part, workersOfNamespace } from '../core.ts';
import type { CredentialsWiring } from '../credentials/wiring.ts';
import { noteShortages } from '../shortages.ts';
import { ManagedController } from './controller.ts';
import { moveEarlierReceipts } from './earlier-receipts.ts';
import { gardenDependencies } from './garden-dependencies.ts';
import { type LeftOverDependencies, reportLeftOver } from './left-over.ts';
import { clusterOfReceipt, managedReceiptIn, managedReceipts, RECEIPT_SELECTOR } from './receipt.ts';

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
