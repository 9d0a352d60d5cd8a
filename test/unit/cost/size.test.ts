import { describe, expect, it, test } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { LABELS } from '../../../operator/api/group.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { desiredSizes } from '../../../operator/capacity/desired-sizes.ts';
import {
  askedSize,
  CONTROL_PLANE_POOL,
  isLarger,
  nodesSize,
  runningSize,
  settledSize,
} from '../../../operator/cost/size.ts';
import { buildShoot, buildWorkerCluster } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { profile, size } from './objects.ts';

const cluster = (spec: object): WorkerCluster =>
  buildWorkerCluster({
    metadata: { name: 'a', namespace: 'shop' },
    spec: { cloudProvider: 'cloud', controlPlaneNodes: 3, ...spec },
  });
const managed: CloudProfile = profile({ defaults: { mode: 'Managed', region: 'there', machineType: 'gpu' } });

describe('askedSize', () => {
  test.each<[string, object, CloudProfile, object]>([
    [
      'what was left to the profile is filled in',
      { dataPlaneNodes: 4 },
      managed,
      { region: 'there', mode: 'Managed', pools: [{ name: 'default', machineType: 'gpu', count: 4 }] },
    ],
    [
      'pools, spot ones marked',
      {
        dataPlaneNodes: 3,
        pools: [
          { name: 'a', minimum: 1, maximum: 1 },
          { name: 'b', spot: true },
        ],
      },
      profile(),
      {
        region: 'here',
        mode: 'Hosted',
        pools: [
          { name: 'a', machineType: 'small', count: 1 },
          { name: 'b', machineType: 'small', count: 2, spot: true },
        ],
      },
    ],
    [
      'all that an autoscaler of the cloud may make',
      { pools: [{ name: 'a', minimum: 1, maximum: 7 }] },
      managed,
      { region: 'there', mode: 'Managed', pools: [{ name: 'a', machineType: 'gpu', count: 7 }] },
    ],
    [
      'no more than the minimum where nothing scales by itself',
      { pools: [{ name: 'a', minimum: 1, maximum: 7 }] },
      profile(),
      { region: 'here', mode: 'Hosted', pools: [{ name: 'a', machineType: 'small', count: 1 }] },
    ],
    [
      'the machines of a control plane of its own',
      { mode: 'SelfManaged', dataPlaneNodes: 1 },
      profile(),
      {
        region: 'here',
        mode: 'SelfManaged',
        pools: [
          { name: 'default', machineType: 'small', count: 1 },
          { name: CONTROL_PLANE_POOL, machineType: 'small', count: 3 },
        ],
      },
    ],
  ])('%s', (_what, spec, of, expected) => {
    const one = cluster(spec);
    expect(askedSize(one, of, desiredSizes({ cluster: one, profile: of }))).toEqual(expected);
  });
});

const shoot = (workers: [name: string, type: string, current: number][], nodes: number, reason = 'AllReady'): Shoot =>
  buildShoot({
    metadata: { name: 'a', namespace: 'shop' },
    spec: { region: 'here', provider: { workers: workers.map(([name, type]) => ({ name, machine: { type } })) } },
    status: {
      conditions: [{ type: 'EveryNodeReady', status: 'True', reason, lastTransitionTime: '2026-01-01T00:00:00Z' }],
      nodes: { desired: 0, current: nodes, ready: 0 },
      workers: workers.map(([name, , current]) => ({ name, desired: 0, current, ready: 0 })),
    },
  });

describe('the running size', () => {
  const held = size('here', 'Managed', 'small*2*spot', 'gpu*5');
  it('is counted by the Shoot, as spot where that was granted', () => {
    expect(runningSize(shoot([['p0', 'small', 1]], 1), held)).toEqual({
      region: 'here',
      mode: 'Managed',
      pools: [{ name: 'p0', machineType: 'small', count: 1, spot: true }],
    });
  });
  it('includes machines of a removed pool', () => {
    expect(runningSize(shoot([['p0', 'small', 2]], 5), held)?.pools).toContainEqual({
      name: 'p1',
      machineType: 'gpu',
      count: 3,
    });
  });
  it('includes control plane machines, which a Shoot counts separately', () => {
    const own = { name: CONTROL_PLANE_POOL, machineType: 'small', count: 3 };
    const before = shoot([['p0', 'small', 1]], 1);
    const shrunk = { ...before, status: { ...before.status, controlPlane: { desired: 1, ready: 1 } } } as Shoot;
    const pools = runningSize(shrunk, { region: 'here', mode: 'SelfManaged', pools: [own] })?.pools;
    expect(pools).toEqual([
      { name: 'p0', machineType: 'small', count: 1 },
      { ...own, count: 1 },
    ]);
  });
  it('is unknown, not zero, while the Shoot cannot count', () => {
    expect(runningSize(shoot([['p0', 'small', 0]], 0, 'NotObserved'), held)).toBeUndefined();
    expect(runningSize(partOf<Shoot>({ ...shoot([], 0), status: undefined }), held)).toBeUndefined();
  });
  it('of a managed cluster follows from its nodes in any order', () => {
    const node = (type: string, pool?: string) => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name: 'n',
        labels: { 'node.kubernetes.io/instance-type': type, ...(pool && { [LABELS.pool]: pool }) },
      },
    });
    const nodes = [node('gpu'), node('small', 'p0'), node('gpu', 'p1'), node('other')];
    const expected = [
      { name: 'p0', machineType: 'small', count: 1, spot: true },
      { name: 'p1', machineType: 'gpu', count: 2 },
      { name: 'unknown', machineType: 'other', count: 1 },
    ];
    expect(nodesSize(nodes, held).pools).toEqual(expected);
    expect(nodesSize(nodes.reverse(), held).pools).toEqual(expected);
  });
});

describe('isLarger', () => {
  const [five, three] = [size('here', 'Hosted', 'small*5'), size('here', 'Hosted', 'small*3')];
  test.each<[string, ReturnType<typeof size>, typeof five | undefined, typeof five | undefined, typeof five]>([
    ['what was asked, at once', five, undefined, undefined, five],
    [
      'what is given back, until it is gone',
      three,
      five,
      size('here', 'Hosted', 'small*4'),
      size('here', 'Hosted', 'small*4'),
    ],
    ['no more once it is gone', three, five, three, three],
    ['all of it while nobody can count', three, five, undefined, five],
    ['no machine that was never granted', three, five, size('here', 'Hosted', 'small*9'), five],
    [
      'a pool that is taken away, until it is empty',
      size('here', 'Hosted', 'small*1'),
      size('here', 'Hosted', 'small*1', 'gpu*2'),
      size('here', 'Hosted', 'small*1', 'gpu*1'),
      size('here', 'Hosted', 'small*1', 'gpu*1'),
    ],
    [
      'a pool that is taken away, gone',
      size('here', 'Hosted', 'small*1'),
      size('here', 'Hosted', 'small*1', 'gpu*2'),
      size('here', 'Hosted', 'small*1'),
      size('here', 'Hosted', 'small*1'),
    ],
    ['the new machine type', size('here', 'Hosted', 'gpu*3'), three, three, size('here', 'Hosted', 'gpu*3')],
  ])('%s', (_what, asked, held, running, expected) => {
    expect(settledSize(asked, held, running)).toEqual(expected);
  });

  it('is true when one pool grew', () => {
    expect(isLarger(five, three)).toBe(true);
    expect(isLarger(three, five)).toBe(false);
    expect(isLarger(three, three)).toBe(false);
    expect(isLarger(size('here', 'Hosted', 'gpu*1'), three)).toBe(true);
    expect(isLarger(size('here', 'Hosted'), undefined)).toBe(true);
  });
});
