import type { ClusterSize } from '../../api/cost.ts';
import { profileNamesOf } from '../../capacity/places.ts';
import { keyOf } from '../../kube/resources.ts';
import type { Core, Part } from '../core.ts';
import { failuresOf } from '../failure.ts';
import { concernsUsers, onlyStatusChanged } from '../status-writer.ts';
import { type QuotaDependencies, reconcileQuota } from './controller.ts';
import { concernsOthers, sharesChanged } from './news.ts';

/** The wired controller of quotas. */
export interface Quotas extends Part {
  /** See ClaimantDependencies. */
  readonly granted: Map<string, ClusterSize>;
}

/** Creates the controller of Quotas: counts usage, and requeues waiting clusters that fit. */
export function wireQuotas(core: Core): Quotas {
  const { clusters, shoots, profiles, quotas } = core;
  const queue = core.queue('quota');
  const granted = new Map<string, ClusterSize>();
  const deps: QuotaDependencies = { ...core, granted, judge: (key) => core.queues.clusters.add(key) };
  const changedIn = (namespace = '') => sharesChanged(quotas, queue, namespace);
  quotas.onChange((event) => {
    if (!onlyStatusChanged(event)) queue.add(keyOf(event.object));
  });
  clusters.onChange((event) => {
    const { uid = '', namespace } = event.object.metadata;
    if (event.type === 'deleted') granted.delete(uid);
    if (concernsOthers(event)) changedIn(namespace);
  });
  shoots.onChange((event) => {
    // Shoots of WorkerClusters are counted with these.
    const { namespace, ownerReferences } = event.object.metadata;
    if (!onlyStatusChanged(event) && !ownerReferences?.length) changedIn(namespace);
  });
  profiles.onChange((event) => {
    if (!concernsUsers(event)) return;
    const { name } = event.object.metadata;
    const users = clusters.list().filter((cluster) => profileNamesOf(cluster).includes(name));
    for (const namespace of new Set(users.map((cluster) => cluster.metadata.namespace))) changedIn(namespace);
  });
  return {
    granted,
    controllers: [
      {
        name: 'quota',
        queue,
        concurrency: 2,
        reconcile: (key, stop) => reconcileQuota(deps, key, stop),
        failed: failuresOf(core, quotas),
      },
    ],
  };
}
