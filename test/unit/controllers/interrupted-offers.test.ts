import { describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { DepletedOffers } from '../../../operator/capacity/depleted-offers.ts';
import { noteInterrupted } from '../../../operator/controllers/interrupted-offers.ts';
import type { Node } from '../../../operator/kube/resources.ts';
import { profile } from '../../kit/autoscaled-cluster.ts';
import { buildWorkerCluster } from '../../kit/builders/objects.ts';
import { MINUTE, NOW, node } from '../../kit/burst.ts';

const TYPE = 'node.kubernetes.io/instance-type';
const ZONE = 'topology.kubernetes.io/zone';
const zoned = (name: string, region: string, types: string[]): CloudProfile => {
  const { spec, ...known } = profile(types.map((type) => ({ name: type, cpu: 4, gpu: 0, memory: '8Gi' })));
  const regions = [region, `${region}-east`].map((one) => ({
    name: one,
    zones: ['a', 'b'].map((zone) => ({ name: `${one}-${zone}` })),
  }));
  return { ...known, metadata: { name }, spec: { ...spec, regions, defaults: { region, machineType: types[0]! } } };
};
const profiles = new Map([
  ['cloud', zoned('cloud', 'here', ['medium', 'large', 'huge'])],
  ['other', zoned('other', 'there', ['small', 'tiny'])],
]);
const CLUSTER = buildWorkerCluster({
  metadata: { name: 'one', namespace: 'shop', uid: 'u1' },
  spec: {
    cloudProvider: 'cloud',
    pools: [
      { name: 'a', minimum: 0, maximum: 9, spot: true, machineTypes: ['medium', 'large'] },
      { name: 'steady', minimum: 0, maximum: 9 },
    ],
    fallback: [{ region: 'here-east' }, { cloudProvider: 'other', machineTypes: ['small', 'tiny'] }],
  },
  status: { region: 'here' },
});
const inRegion = (region: string) => ({ ...CLUSTER, status: { region } }) as WorkerCluster;

/** A node that its cloud takes away. */
const going = (name: string, labels: Record<string, string>, pool = 'a'): Node => {
  const taints = [{ key: 'aws-node-termination-handler/spot-itn', effect: 'NoSchedule' }];
  const { metadata, ...made } = node(name, pool, { spec: { taints } });
  return { ...made, metadata: { ...metadata, labels: { ...metadata.labels, ...labels } } };
};

describe('a reclaimed machine of a cluster', () => {
  const noted = (cluster: WorkerCluster, nodes: readonly Node[]) => {
    const capacity = new DepletedOffers(() => new Date(NOW));
    noteInterrupted({ profiles, capacity }, cluster, nodes);
    return capacity
      .known(cluster.metadata)
      .depleted.map(({ profile: of, zone, machineType, spot }) =>
        [of, zone, machineType, spot ? 'spot' : ''].join(' '),
      );
  };

  it('is remembered by its offer, for spot machines only', () => {
    const nodes = [
      going('n1', { [TYPE]: 'large', [ZONE]: 'here-b' }),
      going('n2', { [TYPE]: 'medium', [ZONE]: 'here-a' }, 'steady'),
      going('n3', { [TYPE]: 'medium' }),
    ];
    expect(noted(CLUSTER, nodes)).toEqual(['cloud here-b large spot']);
  });

  it("is remembered at the cluster's fallback place", () => {
    const east = going('n1', { [TYPE]: 'medium', [ZONE]: 'here-east-a' });
    const other = going('n1', { [TYPE]: 'tiny', [ZONE]: 'there-b' });
    expect(noted(inRegion('here-east'), [east])).toEqual(['cloud here-east-a medium spot']);
    expect(noted(inRegion('there'), [other])).toEqual(['other there-b tiny spot']);
    expect(noted(CLUSTER, [east, other])).toEqual([]);
  });

  it('does not affect other namespaces, since tenants can write nodes', () => {
    const capacity = new DepletedOffers(() => new Date(NOW));
    noteInterrupted({ profiles, capacity }, CLUSTER, [going('n1', { [TYPE]: 'large', [ZONE]: 'here-b' })]);
    const knownTo = (namespace: string) => capacity.known({ namespace, uid: 'u2' }).depleted.length;
    expect(['shop', 'other'].map(knownTo)).toEqual([1, 0]);
  });

  it("is limited to the pool's and CloudProfile's offers, each once", () => {
    const zone = { [ZONE]: 'here-a' };
    const nodes = ['medium', 'medium', 'huge', 'none', ...Array.from({ length: 2_000 }, (_, index) => `t${index}`)];
    const labelled = nodes.map((type, index) => going(`n${index}`, { [TYPE]: type, ...zone }));
    const [pool, ...others] = CLUSTER.spec.pools!;
    const asking = (more: object) =>
      ({ ...CLUSTER, spec: { ...CLUSTER.spec, pools: [{ ...pool, ...more }, ...others] } }) as WorkerCluster;
    expect(noted(CLUSTER, labelled)).toEqual(['cloud here-a medium spot']);
    expect(noted(asking({ machineTypes: ['none', 'medium'] }), labelled)).toEqual(['cloud here-a medium spot']);
    expect(noted(asking({ zones: ['nowhere'] }), labelled)).toEqual([]);
  });

  it('counts once, for existing nodes', () => {
    let now = NOW;
    const capacity = new DepletedOffers(() => new Date(now));
    const look = (...nodes: Node[]) => {
      noteInterrupted({ profiles, capacity }, CLUSTER, nodes);
      return capacity.known(CLUSTER.metadata).depleted.map(({ until }) => (until - NOW) / MINUTE);
    };
    const labels = { [TYPE]: 'medium', [ZONE]: 'here-a' };
    const [first, second] = ['n1', 'n2'].map((name) => going(name, labels)) as [Node, Node];
    expect(look({ ...first, metadata: { ...first.metadata, deletionTimestamp: '2026-11-23T00:00:00Z' } })).toEqual([]);
    expect(look(first)).toEqual([3]);
    now += 10 * MINUTE;
    expect(look(first)).toEqual([3]);
    expect(look(first, second)).toEqual([16]);
    now += 10 * MINUTE;
    expect(look(first, second)).toEqual([16]);
  });
});
