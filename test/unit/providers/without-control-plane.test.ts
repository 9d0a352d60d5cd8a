import { describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { CoppiceError } from '../../../operator/api/errors.ts';
import type { KubeObject } from '../../../operator/api/meta.ts';
import type { ClustersWithoutControlPlane, Pool, ProviderContext } from '../../../providers/contract.ts';
import { simulatedProvider } from '../../../providers/simulated/index.ts';
import { context, profile as plain, pool } from './fixtures.ts';

const START = Date.parse('2026-11-21T00:00:00Z');
const SECOND = 1000;
const HOUR = 3600 * SECOND;

const profile = (simulation: object = {}): CloudProfile => ({
  ...plain,
  spec: { ...plain.spec, providerConfig: { simulation: { controlPlane: { run: false }, ...simulation } } },
});

/** A cluster without a control plane, with a clock that the test moves. */
function cluster(simulation: object = {}) {
  let time = START;
  const withoutControlPlane = simulatedProvider(() => time).withoutControlPlane as ClustersWithoutControlPlane;
  const ctx: ProviderContext = context({ profile: profile(simulation) });
  let configMap: KubeObject | undefined;
  let applied = '';
  return {
    withoutControlPlane,
    after: (ms: number) => {
      time += ms;
    },
    /** As the controller does: asks for the configMap as it should be, and stores it. */
    want(pools: Pool[], members = 1) {
      const { refusal, ...result } = withoutControlPlane.update(ctx, { members, pools }, configMap);
      // By what is sent, as the applier does.
      const changed = applied !== JSON.stringify(result.configMap);
      applied = JSON.stringify(result.configMap);
      // The API server keeps the keys of a map in an order of its own.
      const data = Object.fromEntries(Object.entries(result.configMap.data as object).reverse());
      configMap = changed ? { ...result.configMap, data } : configMap;
      return { changed, refusal, names: Object.keys(result.configMap.data as object) };
    },
    seen: (pools: Pool[]) => withoutControlPlane.read(ctx, pools, configMap),
    spoil: (name: string) => {
      applied = '';
      configMap = { ...configMap!, data: { ...(configMap!.data as object), [name]: '{"number":' } };
    },
    stored: () => configMap,
  };
}

const machine = (number: number, name = 'workers') => `shoot--team--one-${name}-${number}`;
const MEMBER = 'control-plane.0';

describe('clusters without a control plane', () => {
  it('are those of profiles with controlPlane.run false', () => {
    const { withoutControlPlane } = cluster();
    expect(withoutControlPlane.includes(profile())).toBe(true);
    expect(withoutControlPlane.includes(plain)).toBe(false);
    expect(withoutControlPlane.includes(profile({ controlPlane: { run: true } }))).toBe(false);
    // Settings that cannot be read say nothing: they are refused elsewhere.
    expect(withoutControlPlane.includes(profile({ speed: 1 }))).toBe(false);
  });

  const steps: [string, [pools: Pool[], members: number, names: string[]][]][] = [
    ['a control plane and no nodes', [[[], 1, [MEMBER]]]],
    ['one and two', [[[pool()], 1, [MEMBER, machine(0), machine(1)]]]],
    [
      'three members, then one',
      [
        [[pool({ count: 0 })], 3, [MEMBER, 'control-plane.1', 'control-plane.2']],
        [[pool({ count: 0 })], 1, [MEMBER]],
      ],
    ],
    [
      'out and in again: the youngest go',
      [
        [[pool({ count: 1 })], 1, [MEMBER, machine(0)]],
        [[pool({ count: 3 })], 1, [MEMBER, machine(0), machine(1), machine(2)]],
        [[pool({ count: 2 })], 1, [MEMBER, machine(0), machine(1)]],
      ],
    ],
    [
      'a pool that comes and one that goes',
      [
        [[pool({ count: 1 })], 1, [MEMBER, machine(0)]],
        [[pool({ name: 'other', count: 1 })], 1, [MEMBER, machine(0, 'other')]],
      ],
    ],
  ];
  it.each(steps)('have the requested machines: %s', (_what, rows) => {
    const one = cluster();
    for (const [pools, members, names] of rows) {
      expect(one.want(pools, members).names.sort()).toEqual([...names].sort());
      one.after(SECOND);
      expect(one.want(pools, members).changed).toBe(false);
    }
  });

  it('show the nodes that machines would have registered', () => {
    const one = cluster();
    const pools = [pool({ machineType: 'gpu', count: 2, labels: { team: 't' } })];
    one.want(pools);
    const { controlPlane, machines, nodes, changesAt } = one.seen(pools);
    expect(controlPlane).toMatchObject([{ name: MEMBER, ready: true, phase: 'Running' }]);
    expect(machines.map(({ pool: name, ready }) => [name, ready])).toEqual([
      ['workers', true],
      ['workers', true],
    ]);
    expect(nodes[0]).toMatchObject({
      metadata: { labels: { team: 't', 'node.kubernetes.io/instance-type': 'gpu' } },
      status: { allocatable: { cpu: '4', memory: '16Gi', 'nvidia.com/gpu': '1' }, conditions: [{ status: 'True' }] },
    });
    expect(new Set(nodes.map(({ metadata }) => metadata.labels?.['topology.kubernetes.io/zone'])).size).toBe(2);
    expect(changesAt).toBeUndefined();
  });

  it("take the simulated cloud's time, also across a restart", () => {
    const one = cluster({
      controlPlane: { run: false, creation: { p50: '9m' } },
      machines: { creation: { p50: '40s' } },
    });
    const pools = [pool()];
    one.want(pools);
    const ready = () => {
      const { controlPlane, machines } = one.seen(pools);
      return [controlPlane, machines].map((list) => list.filter((each) => each.ready).length);
    };
    expect(ready()).toEqual([0, 0]);
    expect(one.seen(pools).changesAt).toEqual(new Date(START + 40 * SECOND));
    one.after(40 * SECOND);
    expect(ready()).toEqual([0, 2]);
    expect(one.want(pools).changed).toBe(false);
    expect(one.seen(pools).changesAt).toEqual(new Date(START + 540 * SECOND));
    one.after(500 * SECOND);
    expect(ready()).toEqual([1, 2]);
  });

  it('lose spot machines at their time, and get others', () => {
    const one = cluster({ spot: { interruptionsPerHour: 60 } });
    const pools = [pool({ spot: true, count: 1 })];
    one.want(pools);
    const before = JSON.stringify(one.stored());
    const { changesAt } = one.seen(pools);
    expect(+changesAt!).toBeLessThan(START + HOUR);
    one.after(+changesAt! - START);
    expect(one.seen(pools).machines).toMatchObject([{ phase: 'Terminating', ready: false }]);
    expect(one.seen(pools).nodes).toEqual([]);
    expect(one.want(pools).changed).toBe(true);
    expect(one.seen(pools).machines).toMatchObject([{ phase: 'Running', ready: true }]);
    expect(JSON.stringify(one.stored())).not.toBe(before);
  });

  it('have what the cloud provides, and report refusals with their code', () => {
    const one = cluster({ quota: { nodes: 2 } });
    const { names, refusal } = one.want([pool({ count: 3 })]);
    expect(names).toHaveLength(1 + 2);
    expect(refusal).toBeInstanceOf(CoppiceError);
    expect(refusal).toMatchObject({ code: 'ERR_INFRA_QUOTA_EXCEEDED' });
  });

  it('repair a broken ConfigMap', () => {
    const one = cluster();
    one.want([pool({ count: 1 })]);
    one.spoil(machine(0));
    expect(one.seen([pool({ count: 1 })]).machines).toEqual([]);
    expect(one.want([pool({ count: 1 })])).toMatchObject({ changed: true, names: [MEMBER, machine(0)] });
    expect(one.seen([pool({ count: 1 })]).machines).toHaveLength(1);
  });
});
