import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Registry } from '../../kube/metrics.ts';

const LABELS = ['namespace', 'policy'] as const;

/**
 * Metrics about policies' clusters, spending and waiting work from their statuses, computed on scrape. Money in each
 * budget's currency. Returns a function that unregisters them.
 */
export function policyMetrics(registry: Registry, policies: Pick<Informer<BurstPolicy>, 'list'>): () => void {
  const clusters = registry.gauge('coppice_burst_clusters', 'Clusters of a BurstPolicy.', LABELS);
  const most = registry.gauge('coppice_burst_clusters_maximum', 'Most clusters a BurstPolicy may have.', LABELS);
  const hourly = registry.gauge('coppice_burst_hourly_cost', 'What a BurstPolicy has costs in an hour.', LABELS);
  const hourlyBudget = registry.gauge('coppice_burst_hourly_budget', 'Budget of an hour of a BurstPolicy.', LABELS);
  const spent = registry.gauge('coppice_burst_month_spent', 'What a BurstPolicy has spent in this month.', LABELS);
  const monthlyBudget = registry.gauge('coppice_burst_month_budget', 'Budget of a month of a BurstPolicy.', LABELS);
  const waiting = registry.gauge(
    'coppice_burst_waiting_replicas',
    'Unplaced replicas that the hub reports, without those below minimumPriority.',
    LABELS,
  );
  return registry.collect(() => {
    // Drops series of deleted policies.
    for (const one of [clusters, most, hourly, hourlyBudget, spent, monthlyBudget, waiting]) one.reset();
    for (const { metadata, spec, status } of policies.list()) {
      const of = { namespace: metadata.namespace ?? '', policy: metadata.name };
      clusters.set(of, status?.clusterCount ?? 0);
      most.set(of, spec.maximumClusters);
      hourly.set(of, Number(status?.hourly ?? 0));
      hourlyBudget.set(of, Number(spec.budget.hourly));
      spent.set(of, Number(status?.spend?.amount ?? 0));
      if (spec.budget.monthly !== undefined) monthlyBudget.set(of, Number(spec.budget.monthly));
      waiting.set(
        of,
        // Excludes low-priority work, for which an alert would never end.
        (status?.demand ?? []).reduce((sum, { count, state }) => sum + (state === 'LowPriority' ? 0 : count), 0),
      );
    }
  });
}
