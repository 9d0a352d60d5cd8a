import { expect, it } from 'vitest';
import { fleetMetrics } from '../../../operator/controllers/workercluster/fleet-metrics.ts';
import { Registry } from '../../../operator/kube/metrics.ts';

const having = (type: string, status: string) => ({ status: { conditions: [{ type, status }] } });

it('fleet metrics count clusters by phase, and seeds and backups by readiness', async () => {
  let clusters: object[] = [{ status: { phase: 'Ready' } }, { status: { phase: 'Ready' } }, {}];
  const seeds = [having('Ready', 'True'), having('Ready', 'False'), {}];
  // One whose seed has no bucket says nothing of backups.
  const shoots = [having('BackupReady', 'False'), having('APIServerAvailable', 'True'), {}];
  const registry = new Registry();
  const list = (objects: () => object[]) => ({ list: objects as never });
  const end = fleetMetrics(registry, {
    clusters: list(() => clusters),
    seeds: list(() => seeds),
    shoots: list(() => shoots),
  });
  const series = async () => (await registry.render()).split('\n').filter((line) => /^coppice/.test(line));
  expect(await series()).toEqual([
    'coppice_clusters{phase="Ready"} 2',
    'coppice_clusters{phase="Pending"} 1',
    'coppice_seeds{ready="True"} 1',
    'coppice_seeds{ready="False"} 1',
    'coppice_seeds{ready="Unknown"} 1',
    'coppice_backups{ready="False"} 1',
  ]);
  // A phase that no cluster is in any more would go on in an alert.
  clusters = [{ status: { phase: 'Deleting' } }];
  expect(await series()).toContain('coppice_clusters{phase="Deleting"} 1');
  expect(await series()).not.toContain('coppice_clusters{phase="Ready"} 2');
  end();
});
