import { findCondition } from '../../api/conditions.ts';
import type { Condition } from '../../api/meta.ts';
import type { Registry } from '../../kube/metrics.ts';
import { BACKUP_READY } from '../backup/conditions.ts';
import type { Core } from '../core.ts';

/**
 * Metrics about clusters, seeds and backups from their statuses, computed on scrape. Counts only, so that a tenant with
 * many clusters creates no more series. Returns a function that unregisters them.
 */
export function fleetMetrics(
  registry: Registry,
  { clusters, seeds, shoots }: { [kind in 'clusters' | 'seeds' | 'shoots']: Pick<Core[kind], 'list'> },
): () => void {
  const byPhase = registry.gauge('coppice_clusters', 'WorkerClusters by phase.', ['phase']);
  const seedsReady = registry.gauge('coppice_seeds', 'Seeds by the status of their condition Ready.', ['ready']);
  const backupsReady = registry.gauge('coppice_backups', 'Shoots by the status of their condition BackupReady.', [
    'ready',
  ]);
  return registry.collect(() => {
    for (const gauge of [byPhase, seedsReady, backupsReady]) gauge.reset();
    for (const { status } of clusters.list()) byPhase.inc({ phase: status?.phase ?? 'Pending' });
    const ready = (conditions: readonly Condition[] | undefined, type: string) =>
      findCondition(conditions, type)?.status;
    for (const { status } of seeds.list()) seedsReady.inc({ ready: ready(status?.conditions, 'Ready') ?? 'Unknown' });
    for (const { status } of shoots.list()) {
      const backup = ready(status?.conditions, BACKUP_READY);
      if (backup) backupsReady.inc({ ready: backup });
    }
  });
}
