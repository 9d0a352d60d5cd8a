import { expect, it } from 'vitest';
import { FINALIZER } from '../../../operator/api/group.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { planWorkerCluster } from '../../../operator/controllers/workercluster/plan.ts';
import type { Provider } from '../../../providers/contract.ts';
import { buildWorkerCluster } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { profile } from '../cost/objects.ts';

const at = (minutes: number): Date => new Date(Date.parse('2026-11-21T00:00:00Z') + minutes * 60_000);
const cluster = buildWorkerCluster({
  metadata: { name: 'a', namespace: 'shop', uid: 'u', generation: 1, finalizers: [FINALIZER] },
  spec: { cloudProvider: 'cloud', controlPlaneNodes: 1, dataPlaneNodes: 3 },
});
const provider = partOf<Provider>({ name: 'fake', simulated: false, validate: () => [] });

/** Status of the cluster with so many machines, at that time. */
function statusWith(machines: number | undefined, minutes: number, before: WorkerCluster = cluster) {
  const view = { cluster: before, profile: profile(), profileNames: [], provider, shoot: undefined };
  const { shoot } = planWorkerCluster({ ...view, cluster }, at(minutes));
  const nodes = { desired: 3, current: machines ?? 0, ready: machines ?? 0 };
  const reason = machines === undefined ? 'NotObserved' : 'AllReady';
  const seen = {
    conditions: [{ type: 'EveryNodeReady', status: 'True', reason, lastTransitionTime: '2026-11-21T00:00:00Z' }],
    nodes,
    workers: [{ name: 'default', ...nodes }],
  };
  return planWorkerCluster({ ...view, shoot: { ...shoot, status: seen } as Shoot }, at(minutes)).status;
}
const having = (status: WorkerCluster['status'], metadata: object = {}): WorkerCluster => ({
  ...cluster,
  metadata: { ...cluster.metadata, ...metadata },
  ...(status && { status }),
});

it("a cluster's cost is that of its machines, and zero before", () => {
  const none = statusWith(0, 0);
  expect(none).not.toHaveProperty('cost');
  const one = statusWith(1, 10, having(none));
  expect(one.cost).toMatchObject({ hourly: '0.1', accrued: '0', currency: 'USD', asOf: '2026-11-21T00:10:00Z' });
  const three = statusWith(3, 40, having(one));
  expect(three.cost).toMatchObject({ hourly: '0.3', accrued: '0.05', asOf: '2026-11-21T00:40:00Z' });
});

it("a cluster's cost status is constant while nothing changes", () => {
  const three = statusWith(3, 0);
  expect(statusWith(3, 500, having(three))).toEqual({ ...three, phase: expect.anything() });
});

it("a cluster's cost continues while its machines cannot be counted, until the last one is gone", () => {
  const three = statusWith(3, 0);
  expect(statusWith(undefined, 60, having(three)).cost).toEqual(three.cost);
  const dying = having(three, { deletionTimestamp: '2026-11-21T01:00:00Z' });
  expect(statusWith(3, 60, dying)).toMatchObject({ phase: 'Deleting', cost: three.cost!, admitted: three.admitted! });
  expect(statusWith(0, 60, dying).cost).toMatchObject({ hourly: '0', accrued: '0.3' });
});
