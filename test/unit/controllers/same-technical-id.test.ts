import { describe, expect, it } from 'vitest';
import { technicalID } from '../../../operator/api/names.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { byTechnicalID, technicalIDTakenBy } from '../../../operator/controllers/same-technical-id.ts';
import { Store } from '../../../operator/kube/store.ts';
import { buildShoot, buildWorkerCluster } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';

const NAMESPACE = `team-${'n'.repeat(30)}`;
/** Found among 124,583 names: their hashes are alike. */
const [FIRST, SECOND] = ['cluster-with-a-long-name-0011290', 'cluster-with-a-long-name-0124582'];

const cluster = (name: string, at: string, more: object = {}): WorkerCluster =>
  buildWorkerCluster({
    metadata: { name, namespace: NAMESPACE, uid: name, resourceVersion: '1', creationTimestamp: at },
    ...more,
  });

function caches(clusters: WorkerCluster[], shoots: string[] = []) {
  const known = { clusters: new Store<WorkerCluster>(byTechnicalID), shoots: new Store<Shoot>(byTechnicalID) };
  for (const one of clusters) known.clusters.put(one);
  for (const name of shoots) known.shoots.put(buildShoot({ metadata: cluster(name, '').metadata }));
  return [known.clusters, known.shoots] as const;
}

describe('two clusters with the same technical id', () => {
  const older = cluster(FIRST, '2026-11-22T10:00:00Z');
  const newer = cluster(SECOND, '2026-11-22T11:00:00Z');

  it('can be constructed within seconds', () => {
    expect(technicalID(NAMESPACE, FIRST)).toBe(technicalID(NAMESPACE, SECOND));
  });

  it('in any modes: the older one keeps it', () => {
    const [hosted, managed] = [
      { ...older, spec: { mode: 'Hosted' } } as WorkerCluster,
      { ...newer, spec: { mode: 'Managed' } } as WorkerCluster,
    ];
    expect(technicalIDTakenBy(managed, ...caches([hosted, managed]))).toBe(`WorkerCluster ${NAMESPACE}/${FIRST}`);
    expect(technicalIDTakenBy(hosted, ...caches([hosted, managed]))).toBeUndefined();
  });

  it('admitted first: that one keeps it, although the other is older', () => {
    const admitted = partOf<WorkerCluster>({ ...newer, status: { admitted: { pools: [] } } });
    expect(technicalIDTakenBy(older, ...caches([older, admitted]))).toBe(`WorkerCluster ${NAMESPACE}/${SECOND}`);
  });

  it('against a Shoot that people wrote: the Shoot keeps it', () => {
    expect(technicalIDTakenBy(older, ...caches([older], [SECOND]))).toBe(`Shoot ${NAMESPACE}/${SECOND}`);
  });

  it('are not assumed for a cluster and its own Shoot', () => {
    expect(technicalIDTakenBy(older, ...caches([older], [FIRST]))).toBeUndefined();
  });
});
