import { describe, expect, it } from 'vitest';
import type { DesiredPool } from '../../../operator/api/pools.ts';
import { learnNodes } from '../../../operator/burst/nodes/expected.ts';
import { DepletedOffers } from '../../../operator/capacity/depleted-offers.ts';
import { offerOf, poolMachinesOf } from '../../../operator/controllers/autoscaling/offers.ts';
import { profile } from '../../kit/autoscaled-cluster.ts';
import { buildWorkerCluster } from '../../kit/builders/objects.ts';
import { node } from '../../kit/burst.ts';

type OfferView = Parameters<typeof offerOf>[0];

const now = new Date('2026-11-23T00:00:00Z');
const types = [
  { name: 'medium', cpu: 4, gpu: 0, memory: '16Gi', price: { hourly: '0.20', spot: '0.05', currency: 'USD' } },
  { name: 'large', cpu: 8, gpu: 1, memory: '32Gi', price: { hourly: '0.40', currency: 'USD' } },
];
const pool = (more: Partial<DesiredPool> = {}): DesiredPool => ({
  name: 'a',
  machineType: 'medium',
  alternatives: ['large'],
  count: 0,
  minimum: 0,
  maximum: 9,
  labels: { team: 'shop' },
  taints: [],
  zones: [],
  spot: false,
  gpu: 0,
  sizedBy: 'minimum',
  ...more,
});
const view = (more: Partial<OfferView> = {}): OfferView => ({
  cluster: buildWorkerCluster({ metadata: { name: 'one', uid: 'u1' }, spec: { cloudProvider: 'cloud' } }),
  profile: profile(types),
  ...poolMachinesOf({ provider: { name: 'local', simulated: false }, isManaged: false }),
  capacity: { depleted: [], tries: [] },
  now,
  ...more,
});

it('labels that pods select most are kept also for nodes with too many labels', () => {
  const found = Object.fromEntries(
    Array.from({ length: 90 }, (_, index) => [`feature.node.kubernetes.io/cpu-${index}`, 'true']),
  );
  const known = {
    'kubernetes.io/os': 'linux',
    'multi-cluster.demo.io/pool': 'a',
    'node.kubernetes.io/instance-type': 'medium',
    'topology.kubernetes.io/region': 'here',
  };
  const there = node('n1', 'a', { metadata: { name: 'n1', labels: { ...found, ...known } } });
  const gives = { machineTypes: ['medium'], labels: {}, taintKeys: [] };
  const models = learnNodes(undefined, gives, [there], () => true);
  expect(offerOf(view(), pool(), [there], new Map(), models).offer?.template.labels).toMatchObject(known);
});

describe("the model of a pool's next node", () => {
  it('follows a node of the same pool and type, except name and zone', () => {
    const there = node('n1', 'a', {}, '3500m');
    const gives = { machineTypes: ['medium'], labels: {}, taintKeys: [] };
    const { offer } = offerOf(
      view(),
      pool({ labels: {} }),
      [there],
      new Map([['n1', { metadata: { name: 'n1' }, spec: { drivers: [{ name: 'd', allocatable: { count: 3 } }] } }]]),
      learnNodes(undefined, gives, [there], () => true),
    );
    expect(offer?.template.allocatable.cpu).toBe(3500);
    expect(offer?.template.attachLimits).toEqual(new Map([['d', 3]]));
    expect(offer?.template.labels).toEqual({
      'multi-cluster.demo.io/pool': 'a',
      'node.kubernetes.io/instance-type': 'medium',
    });
    expect(offer?.price).toBe(200_000);
  });

  it("follows the machine type without such a node, less the kubelet's reserve", () => {
    const cpuOf = (more: Partial<OfferView>) =>
      offerOf(view(more), pool(), [], new Map()).offer?.template.allocatable.cpu;
    expect(cpuOf({})).toBe(4000);
    expect(
      cpuOf(poolMachinesOf({ provider: { name: 'aws', simulated: false, inCloud: true }, isManaged: false })),
    ).toBe(3900);
    expect(cpuOf(poolMachinesOf({ provider: { name: 'aws', simulated: false }, isManaged: true }))).toBeLessThan(3950);
  });

  it('has the spot price for spot; a type without a price is the most expensive', () => {
    expect(offerOf(view(), pool({ spot: true }), [], new Map()).offer?.price).toBe(50_000);
    const unpriced = offerOf(view(), pool({ machineType: 'large', alternatives: [], spot: true }), [], new Map());
    expect(unpriced.offer!.price).toBeGreaterThan(1e9);
  });

  it('is of the next machine type where the first is sold out, and none where all are', () => {
    const known = new DepletedOffers(() => now);
    const told = (machineType: string) =>
      known.note('u1', { part: machineType, profile: 'cloud', region: 'here', zones: [], machineType, spot: false });
    told('medium');
    const next = offerOf(view({ capacity: known.known({ uid: 'u1' }) }), pool(), [], new Map());
    expect(next.offer?.template.allocatable.others.get('nvidia.com/gpu')).toBe(1);
    told('large');
    expect(offerOf(view({ capacity: known.known({ uid: 'u1' }) }), pool(), [], new Map())).toEqual({
      soldOut: 'all its machine types are sold out',
    });
  });

  it('has a zone only where the pool has a single one', () => {
    const ofCloud = poolMachinesOf({ provider: { name: 'aws', simulated: true }, isManaged: false });
    const zoneOf = (zones: string[]) =>
      offerOf(view(ofCloud), pool({ zones }), [], new Map()).offer?.template.labels['topology.kubernetes.io/zone'];
    expect(zoneOf(['here-a'])).toBe('here-a');
    expect(zoneOf(['here-a', 'here-b'])).toBeUndefined();
  });
});
