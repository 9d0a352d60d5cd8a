import { isAttached } from '../../api/workercluster.ts';
import { Informer } from '../../kube/informer.ts';
import { keyOf, SECRETS, type Secret } from '../../kube/resources.ts';
import { type Core, type Part, workersOfNamespace } from '../core.ts';
import { onlyStatusChanged } from '../status-writer.ts';
import { wireClusterAPI } from './cluster-api.ts';
import { AttachedController } from './controller.ts';
import { ATTACHED_RECEIPTS, attachedReceiptIn, attachedReceipts, clusterOfAttachedReceipt } from './receipt.ts';

/** The wired controller of attached clusters. */
interface Attached extends Part {
  readonly attached: AttachedController;
}

/** Workers mostly wait for an API server. */
const CLUSTERS_AT_ONCE = 64;
/** Interval of status updates for pods inside of a cluster. */
const INSIDE_CHANGES_MS = 500;

/** Creates the controller of attached clusters. Its facts go to the controller of WorkerClusters. */
export function wireAttached(core: Core): Attached {
  const { garden, gardenID, log, clusters, registry } = core;
  const { namespace } = core.state;
  const queue = core.queue('attached', { perNamespace: workersOfNamespace(CLUSTERS_AT_ONCE) });
  const told = core.queues.clusters;
  const secrets = new Informer<Secret>(garden, SECRETS, { log, labelSelector: ATTACHED_RECEIPTS, namespace });
  const allReceipts = () => secrets.list().flatMap((secret) => attachedReceiptIn(secret) ?? []);
  const attached = new AttachedController({
    garden,
    namespace,
    log,
    clusters,
    openClusters: core.openClusters,
    receipts: attachedReceipts(garden, namespace, secrets),
    allReceipts,
    platform() {
      const seeds = registry.all();
      return {
        servers: [garden.server, ...seeds.map(({ client }) => client.server)],
        identities: new Map([
          ...seeds.map(({ name, identity }): [string, string] => [identity, `Seed ${name}`]),
          [gardenID, 'the garden'],
        ]),
      };
    },
    allowed: core.attachable,
    random: Math.random,
    enqueue: (key) => queue.add(key),
    changed: (key, inside) => (inside ? told.addAfter(key, INSIDE_CHANGES_MS) : told.add(key)),
  });
  clusters.onChange((event) => {
    if (isAttached(event.object) && !onlyStatusChanged(event)) queue.add(keyOf(event.object));
  });
  const clusterAPI = wireClusterAPI(core);
  return {
    attached,
    caches: [secrets],
    async prepare(signal) {
      await clusterAPI.prepare?.(signal);
      // Only receipts show clusters that were force-deleted while no operator ran.
      for (const receipt of allReceipts()) queue.add(clusterOfAttachedReceipt(receipt));
    },
    controllers: [
      {
        name: 'attached',
        queue,
        concurrency: CLUSTERS_AT_ONCE,
        reconcile: (key, stop) => attached.reconcile(key, stop),
      },
      ...clusterAPI.controllers,
    ],
    async close() {
      await Promise.all([attached.stop(), clusterAPI.close?.()]);
    },
  };
}
