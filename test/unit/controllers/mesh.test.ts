import { describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { findCondition } from '../../../operator/api/conditions.ts';
import { FINALIZER, LABELS } from '../../../operator/api/group.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { knownByShoot } from '../../../operator/controllers/workercluster/networking.ts';
import { planWorkerCluster } from '../../../operator/controllers/workercluster/plan.ts';
import type { WorkerClusterView } from '../../../operator/controllers/workercluster/view.ts';
import {
  allocateRanges,
  type MeshEntry,
  type MeshRequest,
  NO_CLUSTERS,
  rangesOverlap,
  release,
} from '../../../operator/mesh/allocate.ts';
import { meshRequest } from '../../../operator/mesh/request.ts';
import { takenIn } from '../../../operator/mesh/taken.ts';
import { providerNamed } from '../../../providers/index.ts';
import { buildCloudProfile, buildSeed, buildWorkerCluster } from '../../kit/builders/objects.ts';

type MeshView = NonNullable<WorkerClusterView['mesh']>;

const NOW = new Date('2026-11-22T00:00:00Z');
const OLD = { pods: '100.96.0.0/11', services: '100.64.0.0/13' };

const profile = (mesh: CloudProfile['spec']['mesh'] = { name: 'default' }) =>
  buildCloudProfile({
    metadata: { name: 'local' },
    spec: {
      type: 'local',
      kubernetes: { versions: [{ version: '1.36.3', classification: 'supported' }] },
      machineTypes: [{ name: 'medium', cpu: 2, gpu: 0, memory: '8Gi' }],
      regions: [{ name: 'here', zones: [{ name: 'here-a' }] }],
      defaults: { mode: 'Hosted', region: 'here', machineType: 'medium', ...OLD },
      ...(mesh && { mesh }),
    },
  });
const cluster = (spec: object = {}, name = 'one'): WorkerCluster =>
  buildWorkerCluster({
    metadata: { name, namespace: 'shop', uid: `uid-${name}`, generation: 1, finalizers: [FINALIZER] },
    spec: { cloudProvider: 'local', controlPlaneNodes: 1, dataPlaneNodes: 2, ...spec },
  });
const entry = (more: Partial<MeshEntry> = {}): MeshEntry => ({
  uid: 'uid-one',
  id: 7,
  name: 'shop--one',
  pods: '100.72.0.0/18',
  services: '100.72.64.0/20',
  given: ['pods', 'services'],
  ...more,
});
const known = (more: Partial<MeshEntry> = {}): MeshView => ({
  known: { mesh: 'default', entry: entry(more) },
  overlapping: [],
});

const plan = (wc: WorkerCluster, mesh: MeshView | undefined, shoot?: Shoot, its: CloudProfile = profile()) =>
  planWorkerCluster(
    {
      cluster: wc,
      profile: its,
      profileNames: ['local'],
      provider: providerNamed('simulated'),
      shoot,
      ...(mesh && { mesh }),
    },
    NOW,
  );
const wanted = (wc: WorkerCluster, its = profile()): MeshRequest =>
  plan(wc, { overlapping: [] }, undefined, its).allocate!;
const conditionOf = (made: ReturnType<typeof plan>, type: string) => findCondition(made.status.conditions, type);

describe('a new cluster of a profile with a mesh', () => {
  it('gets its ranges before anything is created, and is created with them', () => {
    const first = plan(cluster(), { overlapping: [] });
    expect(first.shoot).toBeUndefined();
    expect(first.allocate).toMatchObject({
      mesh: 'default',
      wants: ['pods', 'services'],
      prefixes: { pods: 18, services: 20 },
    });
    const then = plan(cluster(), known());
    expect(then.allocate).toBeUndefined();
    expect(then.shoot?.spec.networking).toMatchObject({ pods: '100.72.0.0/18', services: '100.72.64.0/20' });
    expect(then.shoot?.metadata.labels).toMatchObject({
      [LABELS.mesh]: 'default',
      [LABELS.clusterID]: '7',
      [LABELS.meshClusterName]: 'shop--one',
    });
    expect(then.status.networking).toMatchObject({ mesh: 'default', clusterID: 7, clusterName: 'shop--one' });
    expect(conditionOf(then, 'RangesUnique')?.status).toBe('True');
  });

  it('has ranges for twice its largest requested size', () => {
    const prefix = (spec: object) => wanted(cluster(spec)).prefixes.pods;
    expect(prefix({ dataPlaneNodes: 32 })).toBe(18);
    expect(prefix({ dataPlaneNodes: 33 })).toBe(17);
    expect(prefix({ dataPlaneNodes: undefined, pools: [{ name: 'a', minimum: 0, maximum: 300 }] })).toBe(14);
    expect(prefix({ dataPlaneNodes: 5000 })).toBe(11);
  });

  it('keeps ranges that a person wrote, and gets an id', () => {
    const own = cluster({ networking: { pods: '10.1.0.0/16' } });
    expect(wanted(own)).toMatchObject({ has: { pods: '10.1.0.0/16' }, written: ['pods'], wants: ['services'] });
    const shot = plan(own, known({ pods: '10.1.0.0/16', given: ['services'] })).shoot;
    expect(shot?.spec.networking).toMatchObject({ pods: '10.1.0.0/16', services: '100.72.64.0/20' });
  });

  it('waits with advice when nothing is left, and retries in a minute', () => {
    const tiny = wanted(cluster(), profile({ name: 'default', pods: ['10.1.0.0/18'], services: ['10.2.0.0/16'] }));
    const full = allocateRanges(NO_CLUSTERS, tiny, { ranges: ['10.1.3.0/24'], ids: [] });
    expect(full.refused?.message).toContain('add a range to spec.mesh.pods of CloudProfile local');
    const refused = plan(cluster(), { overlapping: [], ...(full.refused && { refused: full.refused }) });
    expect(refused.shoot).toBeUndefined();
    expect(conditionOf(refused, 'SpecAccepted')).toMatchObject({
      status: 'False',
      message: expect.stringContaining('spec.networking.pods: mesh default has no /18 left'),
    });
    expect(refused.next).toEqual(new Date(+NOW + 60_000));
  });

  it('refused for another reason takes no range', () => {
    expect(plan(cluster({ machineType: 'none-such' }), { overlapping: [] }).allocate).toBeUndefined();
  });
});

describe('a running cluster', () => {
  const running = plan(cluster(), undefined).shoot!;
  it('keeps its ranges, and joins no mesh by itself', () => {
    expect(running.spec.networking).toEqual(OLD);
    const later = plan(cluster(), { overlapping: [] }, running);
    expect(later.allocate).toBeUndefined();
    expect(later.shoot).toEqual(running);
    expect(later.status.networking).toEqual(OLD);
    expect(conditionOf(later, 'RangesUnique')).toBeUndefined();
  });

  it('reports clusters with overlapping addresses, which are permitted outside a mesh', () => {
    const overlapping = ['shop/a', 'shop/b', 'shop/c', 'shop/d'];
    const said = plan(cluster({ networking: OLD }), { overlapping }, running);
    expect(conditionOf(said, 'RangesUnique')).toMatchObject({
      status: 'False',
      message: expect.stringContaining('shop/a, shop/b, shop/c and 1 more'),
    });
    expect(said.shoot).toBeDefined();
  });

  it("is recognized by its Shoot when the mesh's receipt is lost", () => {
    const shot = plan(cluster(), known()).shoot!;
    const again = knownByShoot(shot);
    expect(again).toMatchObject({ mesh: 'default', entry: { id: 7, name: 'shop--one' } });
    expect(plan(cluster(), { known: again, overlapping: [] }, shot).shoot).toEqual(shot);
    const taken = takenIn(
      { clusters: [], shoots: [shot], seeds: [], profile: () => profile() },
      'default',
      () => false,
    );
    expect(taken).toMatchObject({ ids: [7] });
    expect(taken.ranges).toContain('100.72.0.0/18');
  });
});

it('a managed cluster gets an id, and the same ranges as without a mesh', () => {
  const request = meshRequest(cluster(), profile(), { mode: 'Managed', pools: [], ranges: OLD });
  expect(request).toMatchObject({ wants: [], has: OLD, written: [] });
  const one = allocateRanges(NO_CLUSTERS, request!, { ranges: [], ids: [] });
  const second = { ...request!, cluster: { namespace: 'shop', name: 'two', uid: 'uid-two' } };
  // They overlap, as they do today; that is said, and stops nobody.
  const two = allocateRanges(one.refused ? NO_CLUSTERS : one.receipt, second, { ranges: [], ids: [] });
  expect([one, two]).toMatchObject([{ entry: { id: 1, ...OLD } }, { entry: { id: 2, ...OLD } }]);
});

describe('the ranges of a mesh', () => {
  const seed = buildSeed({
    spec: { networks: { pods: '10.160.0.0/17', nodes: '10.160.128.0/24', services: '10.161.0.0/16' } },
  });
  const shoots = ['a', 'b'].map((name) => ({ ...plan(cluster({}, name), undefined).shoot! }));
  const taken = takenIn({ clusters: [], shoots, seeds: [seed], profile: () => profile() }, 'default', () => false);

  it('exclude those of seeds, nodes and earlier clusters, though these share the same', () => {
    expect(new Set(taken.ranges).size).toBe(taken.ranges.length);
    for (const range of [OLD.pods, OLD.services, '10.160.0.0/17', '10.161.0.0/16', '10.250.0.0/16'])
      expect(taken.ranges).toContain(range);
    const first = allocateRanges(NO_CLUSTERS, wanted(cluster()), taken);
    expect(first).toMatchObject({
      entry: { id: 1, name: 'shop--one', pods: '100.72.0.0/18', services: '100.72.64.0/20' },
    });
  });

  it('suffice for a thousand clusters by default', () => {
    let receipt = NO_CLUSTERS;
    const request = wanted(cluster(), profile({ name: 'default', highestClusterID: 2000 }));
    for (let index = 0; index < 1000; index++) {
      const one = { ...request, cluster: { namespace: 'shop', name: `c${index}`, uid: `u${index}` } };
      const result = allocateRanges(receipt, one, {
        ranges: ['10.160.0.0/17', '10.161.0.0/16', '10.250.0.0/16'],
        ids: [],
      });
      if (result.refused) expect.fail(`cluster ${index}: ${result.refused.message}`);
      receipt = result.receipt;
    }
    expect(Object.keys(receipt.clusters)).toHaveLength(1000);
  });

  it('cannot be a range that a person wrote in another cluster of the mesh', () => {
    const first = allocateRanges(NO_CLUSTERS, wanted(cluster()), taken);
    const receipt = first.refused ? NO_CLUSTERS : first.receipt;
    const own = wanted(cluster({ networking: { pods: '100.72.32.0/20' } }, 'two'));
    expect(allocateRanges(receipt, own, taken).refused).toMatchObject({
      field: 'networking.pods',
      message: expect.stringContaining('WorkerCluster shop/one'),
    });
  });

  it('are reused last, after a deletion and for a new cluster of the same name', () => {
    const request = wanted(cluster());
    const first = allocateRanges(NO_CLUSTERS, request, taken);
    if (first.refused) throw new Error(first.refused.message);
    const freed = release(first.receipt, ['shop/one']);
    const second = allocateRanges(freed, { ...request, cluster: { ...request.cluster, uid: 'another' } }, taken);
    if (second.refused) throw new Error(second.refused.message);
    expect(second.entry.id).toBe(2);
    expect(rangesOverlap(second.entry.pods!, first.entry.pods!)).toBe(false);
  });
});
