import { findCondition } from '../../api/conditions.ts';
import type { ClusterSize } from '../../api/cost.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { OpenCluster } from '../../clusters/open-clusters.ts';
import { keyOf } from '../../kube/resources.ts';
import { type Core, type Part, workersOfNamespace } from '../core.ts';
import { clusterOfDecided } from '../decided-sizes.ts';
import { failuresOf } from '../failure.ts';
import type { ManagedController } from '../managed/controller.ts';
import { onlyStatusChanged } from '../status-writer.ts';
import { BATCH } from './batches.ts';
import { Autoscaler, type AutoscalingTimes } from './controller.ts';
import { isAutoscaled } from './observe.ts';

/** The wired autoscaler. */
interface Autoscaling extends Part {
  /** See Autoscaler. */
  readonly autoscaler: Pick<Autoscaler, 'condition'>;
}

const TIMES: AutoscalingTimes = { ...BATCH, patienceMs: 5 * 60_000 };

const CLUSTERS_AT_ONCE = 4;

/** Creates the controller that sizes pools. */
export function wireAutoscaling(
  core: Core,
  granted: Map<string, ClusterSize>,
  { managed }: { readonly managed: Pick<ManagedController, 'facts'> },
  times = TIMES,
): Autoscaling {
  const { clusters, shoots, profiles, quotas, openClusters } = core;
  const queue = core.queue('autoscaling', { perNamespace: workersOfNamespace(CLUSTERS_AT_ONCE) });
  const autoscaler = new Autoscaler(
    {
      ...core,
      granted,
      managed: (key, uid) => managed.facts(key, uid),
      tell: (key) => core.queues.clusters.add(key),
    },
    times,
  );
  const followed = new WeakSet<OpenCluster>();
  /** Clusters with autoscaled pools: pod changes of others are ignored. */
  const autoscaled = new Set<string>();
  const news = (key: string) => {
    const afterMs = autoscaled.has(key) ? autoscaler.noteChange(key) : undefined;
    if (afterMs !== undefined) queue.addAfter(key, afterMs);
  };
  const follow = (key: string) => {
    const open = openClusters.get(key);
    if (!open || followed.has(open) || !autoscaled.has(key)) return;
    followed.add(open);
    const changed = () => news(key);
    const ends = [open.nodes.onChange?.(changed), open.pods.onChange?.(changed)];
    open.onStop(() => {
      for (const end of ends) end?.();
    });
  };
  openClusters.onChange((key) => {
    follow(key);
    news(key);
  });
  clusters.onChange((event) => {
    const key = keyOf(event.object);
    const was = autoscaled.has(key);
    if (event.type !== 'deleted' && isAutoscaled(event.object)) autoscaled.add(key);
    else autoscaled.delete(key);
    if (autoscaled.has(key)) follow(key);
    const isNews =
      !onlyStatusChanged(event) || (event.type === 'updated' && isAccepted(event.old) !== isAccepted(event.object));
    if (was !== autoscaled.has(key) || (autoscaled.has(key) && isNews)) queue.add(key);
  });
  shoots.onChange(({ object }) => news(keyOf(object)));
  core.decidedSecrets.onChange(({ object }) => {
    const key = clusterOfDecided(object);
    if (key) news(key);
  });
  quotas.onChange((event) => {
    if (onlyStatusChanged(event)) return;
    for (const key of autoscaled) if (key.startsWith(`${event.object.metadata.namespace}/`)) news(key);
  });
  profiles.onChange((event) => {
    if (!onlyStatusChanged(event)) for (const key of autoscaled) news(key);
  });
  return {
    autoscaler,
    controllers: [
      {
        name: 'autoscaling',
        queue,
        concurrency: CLUSTERS_AT_ONCE,
        reconcile: (key, stop) => autoscaler.reconcile(key, stop),
        failed: failuresOf(core, clusters),
      },
    ],
  };
}

const isAccepted = ({ status }: WorkerCluster): string | undefined =>
  findCondition(status?.conditions, 'SpecAccepted')?.status;
