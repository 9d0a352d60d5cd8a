import { expect, it } from 'vitest';
import type { BurstPolicy } from '../../../operator/api/burstpolicy.ts';
import { policyMetrics } from '../../../operator/controllers/burst/policy-metrics.ts';
import { Registry } from '../../../operator/kube/metrics.ts';
import { policyNamed } from '../../kit/burst/testbed.ts';

it('policy metrics report clusters, spending and waiting work, until the policy is gone', async () => {
  const registry = new Registry();
  const peak: BurstPolicy = {
    ...policyNamed('peak', { budget: { hourly: '20', monthly: '2000', currency: 'USD' } }),
    status: {
      clusterCount: 2,
      hourly: '0.6',
      spend: { month: '2026-11', amount: '12.3', currency: 'USD', asOf: '2026-11-23T00:00:00Z' },
      demand: [3, 4, 9].map((count) => ({
        source: 'web',
        count,
        each: {},
        since: '2026-11-23T00:00:00Z',
        state: count === 9 ? 'LowPriority' : 'Refused',
      })),
    },
  };
  let policies = [peak, policyNamed('new')];
  const end = policyMetrics(registry, { list: () => policies });
  const told = async () =>
    (await registry.render())
      .split('\n')
      .filter((line) => line.startsWith('coppice_burst_'))
      .map((line) => line.replace('coppice_burst_', '').replace(`namespace="${peak.metadata.namespace}",`, ''));
  const of = (name: string) => told().then((lines) => lines.filter((line) => line.includes(`policy="${name}"`)));
  expect(await of('peak')).toEqual([
    'clusters{policy="peak"} 2',
    `clusters_maximum{policy="peak"} ${peak.spec.maximumClusters}`,
    'hourly_cost{policy="peak"} 0.6',
    'hourly_budget{policy="peak"} 20',
    'month_spent{policy="peak"} 12.3',
    'month_budget{policy="peak"} 2000',
    'waiting_replicas{policy="peak"} 7',
  ]);
  expect(await of('new')).toContain('clusters{policy="new"} 0');
  policies = [peak];
  expect(await of('new')).toEqual([]);
  end();
});
