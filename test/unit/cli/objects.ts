import type { Quota } from '../../../operator/api/quota.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import type { WorkerClusterSpec, WorkerClusterStatus } from '../../../operator/api/workercluster.ts';
import { buildQuota, buildShoot, buildWorkerCluster } from '../../kit/builders/objects.ts';

export const NOW = Date.parse('2026-11-21T12:00:00Z');
export const AGO = '2026-11-21T11:58:00Z';

export const cluster = (
  name: string,
  spec: Partial<WorkerClusterSpec> = {},
  status?: WorkerClusterStatus,
  metadata: object = {},
) =>
  buildWorkerCluster({
    metadata: { name, namespace: 'default', creationTimestamp: AGO, generation: 1, ...metadata },
    spec: { cloudProvider: 'local', controlPlaneNodes: 1, dataPlaneNodes: 2, ...spec } as WorkerClusterSpec,
    ...(status === undefined ? {} : { status }),
  });

export const condition = (type: string, status: 'True' | 'False' | 'Unknown', reason: string, message = '') => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: AGO,
});

export const operation = (
  state: 'Processing' | 'Succeeded' | 'Error' | 'Failed' | 'Pending',
  progress: number,
  description: string,
) => ({
  type: 'Create' as const,
  state,
  progress,
  description,
  lastUpdateTime: AGO,
});

export const READY: WorkerClusterStatus = {
  observedGeneration: 1,
  phase: 'Ready',
  mode: 'Hosted',
  kubernetesVersion: '1.36.3',
  endpoint: 'https://10.0.0.1:6443',
  region: 'here',
  shootRef: { name: 'demo' },
  controlPlane: { desired: 1, ready: 1 },
  nodes: { desired: 2, current: 2, ready: 2 },
  resource: { total: { cpu: '4', memory: '8Gi' } },
  lastOperation: operation('Succeeded', 100, 'Created'),
  conditions: [condition('Ready', 'True', 'ClusterUsable')],
};

export const COST: WorkerClusterStatus['cost'] = {
  hourly: '1.152',
  accrued: '34.01',
  currency: 'USD',
  asOf: '2026-11-21T11:00:00Z',
};

export const quota = (metrics: Quota['spec']['metrics'], status?: Quota['status']) =>
  buildQuota({
    metadata: { name: 'team', namespace: 'default', creationTimestamp: AGO, generation: 1 },
    spec: { metrics, currency: 'USD' },
    ...(status === undefined ? {} : { status }),
  });

export const shoot = (name: string, workers: number): Shoot =>
  buildShoot({
    metadata: { name, namespace: 'default', creationTimestamp: AGO, generation: 1 },
    spec: {
      region: 'here',
      seedName: 'local',
      provider: { type: 'local', workers: [{ name: 'worker', minimum: workers, maximum: workers }] },
    },
    status: { observedGeneration: 1, conditions: [condition('Ready', 'True', 'Created')] },
  });
