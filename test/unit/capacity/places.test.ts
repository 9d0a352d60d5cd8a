import { describe, expect, it } from 'vitest';
import { type WorkerCluster, workerClusterSpec } from '../../../operator/api/workercluster.ts';
import { atPlace, nextPlace, placeOf, profileNamesOf } from '../../../operator/capacity/places.ts';
import { buildWorkerCluster } from '../../kit/builders/objects.ts';

const cluster = (spec: object) =>
  buildWorkerCluster({
    metadata: { name: 'one', namespace: 'shop' },
    spec: workerClusterSpec.parse({ cloudProvider: 'aws', dataPlaneNodes: 3, ...spec }),
  });

const OURS = cluster({
  region: 'frankfurt',
  zones: ['frankfurt-a'],
  machineType: 'm7i',
  credentialsRef: { name: 'aws' },
  networking: { pods: '10.0.0.0/16' },
  pools: [{ name: 'blue', machineTypes: ['m7i', 'm6i'], zones: ['frankfurt-a'], spot: true }],
  fallback: [
    { region: 'dublin' },
    { cloudProvider: 'gcp', credentialsRef: { name: 'gcp' }, machineTypes: ['e2', 'n2'] },
    { cloudProfile: 'aws-china' },
  ],
});
const regionOf = ({ spec }: WorkerCluster) => spec.region ?? 'default';

describe('a cluster at a fallback place', () => {
  it('in another region keeps its machine types, but no zones', () => {
    const { cloudProvider, region, zones, machineType, credentialsRef, networking, pools } = atPlace(OURS, 1).spec;
    expect([cloudProvider, region, zones, machineType, credentialsRef]).toEqual([
      'aws',
      'dublin',
      undefined,
      'm7i',
      { name: 'aws' },
    ]);
    expect(networking).toEqual({ pods: '10.0.0.0/16' });
    expect(pools).toEqual([{ name: 'blue', machineTypes: ['m7i', 'm6i'], spot: true }]);
  });

  it("in another cloud has the place's machine types and credentials", () => {
    const { cloudProvider, region, machineType, machineTypes, credentialsRef, pools } = atPlace(OURS, 2).spec;
    expect([cloudProvider, region, machineType, machineTypes, credentialsRef]).toEqual([
      'gcp',
      undefined,
      undefined,
      ['e2', 'n2'],
      { name: 'gcp' },
    ]);
    expect(pools).toEqual([{ name: 'blue', spot: true }]);
    expect(atPlace(OURS, 3).spec).toMatchObject({ cloudProvider: 'aws', cloudProfile: 'aws-china' });
    expect(atPlace(OURS, 3).spec).not.toHaveProperty('machineType');
  });

  it("is the cluster's own spec where there is no fallback", () => {
    expect(atPlace(OURS, 0)).toBe(OURS);
    expect(atPlace(OURS, 9)).toBe(OURS);
    expect(profileNamesOf(OURS)).toEqual(['aws', 'gcp', 'aws-china']);
  });
});

describe('the place of a cluster', () => {
  it.each<[what: string, madeIn: { profile: string; region: string } | undefined, left: number[], place: number]>([
    ['is its own at first', undefined, [], 0],
    ['is the next when it has left that', undefined, [0], 1],
    ['is its own again when all were left', undefined, [0, 1, 2, 3], 0],
    ['is where it was made, whatever it has left', { profile: 'gcp', region: 'default' }, [0, 2], 2],
    ['is told by region as well', { profile: 'aws', region: 'dublin' }, [], 1],
    ['is told by profile when the region is off the list', { profile: 'gcp', region: 'oslo' }, [], 2],
    ['is its own when nothing tells', { profile: 'gone', region: 'oslo' }, [], 0],
  ])('%s', (_what, madeIn, left, place) => {
    expect(placeOf(OURS, madeIn, new Set(left), regionOf)).toBe(place);
  });

  it('is known by number where two are in one region, while that place exists', () => {
    const types = cluster({
      machineType: 'm7i',
      region: 'frankfurt',
      fallback: [{ region: 'frankfurt', machineTypes: ['m6i'] }],
    });
    const madeIn = { profile: 'aws', region: 'frankfurt' };
    // What was left does not count: something of the cluster is there still.
    expect(placeOf(types, { ...madeIn, place: 1 }, new Set([1]), regionOf)).toBe(1);
    expect(placeOf(types, madeIn, new Set(), regionOf)).toBe(0);
    expect(placeOf(OURS, { ...madeIn, place: 2 }, new Set(), regionOf)).toBe(0);
  });

  it('is followed by the first that was not recently left', () => {
    expect(nextPlace(OURS, 0, new Set())).toBe(1);
    expect(nextPlace(OURS, 1, new Set([0, 1]))).toBe(2);
    expect(nextPlace(OURS, 0, new Set([0, 1, 2, 3]))).toBeUndefined();
    expect(nextPlace(cluster({}), 0, new Set())).toBeUndefined();
  });
});
