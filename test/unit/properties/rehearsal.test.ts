import { describe, expect, it } from 'vitest';
import { EXPECTED_SYSTEM_POD } from '../../../operator/burst/clusters/offer.ts';
import { isUseless } from '../../../operator/burst/clusters/purchases.ts';
import type { BurstWorld } from '../../../operator/controllers/burst/world.ts';
import type { RehearsedGarden } from '../../kit/burst/rehearsed-garden.ts';
import { compared, emptyingHistoryOf, type History, historyOf } from '../../kit/burst/rehearsed-history.ts';
import { hasAllCases } from '../../kit/cases.ts';
import { holds } from '../../kit/property.ts';

/** Of a garden that was looked at as often as the rehearsal, and decided the same. */
function expectSame({ differences, lookCount }: RehearsedGarden): void {
  expect(lookCount).toBeGreaterThan(0);
  const [first] = differences;
  expect(first && { at: first.at, ...(first.rehearsal as object) }).toEqual(
    first && { at: first.at, ...(first.garden as object) },
  );
}

describe('a rehearsal', () => {
  const actions = new Set<string>();
  const said = new Set<string>();
  const tried = async (history: History) => {
    const garden = await compared(history);
    expectSame(garden);
    for (const action of garden.actions) actions.add(action);
    for (const message of garden.said) said.add(message);
  };

  holds(
    'decides at each look what the controller decides in a garden that is so',
    (choose) => tried(historyOf(choose)),
    {
      runs: 10,
    },
  );
  holds('empties the clusters that the controller empties', (choose) => tried(emptyingHistoryOf(choose)), { runs: 6 });

  const QUICK = { controlPlane: { creation: { p50: '1m' } }, machines: { creation: { p50: '1m' } } };
  const POOL = { name: 'a', machineType: 'm', minimum: 1, maximum: 9 };
  const candidate = (pool: object) => ({
    name: 'one',
    assumedHourly: '0.5',
    template: { spec: { mode: 'Hosted', cloudProvider: 'cloud', pools: [{ ...POOL, ...pool }] } },
  });
  const clusters = { own: { mode: 'Hosted', dataPlaneNodes: undefined, pools: [{ ...POOL, autoscale: 'Coppice' }] } };

  /** Of three workloads of one cluster two go while it starts. */
  const SHRINKING: History = {
    rows: ['10m,web,2', '10m,more,3', '10m,most,3', '12m,more,0', '12m,most,0', '40m,end,0']
      .map((row) => `${row},,1500m,1Gi,,,,`)
      .join('\n'),
    simulation: { controlPlane: { creation: { p50: '15m' } }, machines: { creation: { p50: '1m' } } },
    spec: { candidates: [candidate({})] },
    clusters: { own: { ...clusters.own, pools: [{ ...POOL, maximum: 1 }] } },
  };

  it('cuts the order that the controller cuts, and no machine of it is made for nothing', async () => {
    const garden = await compared(SHRINKING);
    expectSame(garden);
    expect([...garden.actions]).toContain('Cut');
    for (const action of garden.actions) actions.add(action);
  });

  const LIMITED: History = {
    rows: `10m,web,6,,1500m,1Gi,,,,\n30m,end,0,,900m,1Gi,,,,`,
    limit: 3,
    simulation: QUICK,
    spec: {
      grow: [{ name: 'own', clusterSelector: {}, maximumNodes: 9, assumedHourly: '0.1' }],
      budget: { hourly: '0.5', currency: 'USD' },
    },
    clusters,
  };
  const unlimited = (world: BurstWorld): BurstWorld => ({
    ...world,
    profiles: {
      get(name) {
        const known = world.profiles.get(name);
        return known && { ...known, spec: { ...known.spec, limits: {} } };
      },
    },
  });

  /** The cloud refuses machines and the candidate rests; then the version of Kubernetes expires that its clusters got. */
  const EXPIRING: History = {
    rows: '70m,web,9,,1500m,1Gi,,,,\n85m,end,0,,900m,1Gi,,,,',
    simulation: { ...QUICK, quota: { nodes: 3 } },
    spec: { candidates: [candidate({})] },
    clusters: { own: { ...clusters.own, pools: [{ ...POOL, maximum: 1 }] } },
  };
  const ignoringRevisions = (world: BurstWorld): BurstWorld => ({
    ...world,
    profiles: {
      get(name) {
        const known = world.profiles.get(name);
        const versions = known?.spec.kubernetes.versions?.map((one) => ({ ...one, expirationDate: undefined }));
        return known && { ...known, spec: { ...known.spec, kubernetes: { ...known.spec.kubernetes, versions } } };
      },
    },
  });

  /** Of machine type l, which the work needs, none are left: the cluster comes with smaller nodes and gets none of it. */
  const USELESS: History = {
    rows: '10m,web,1,,6,1Gi,,,,\n50m,end,0,,900m,1Gi,,,,',
    simulation: { ...QUICK, capacity: { depleted: [{ machineType: 'l' }] } },
    spec: {
      candidates: [candidate({ machineType: undefined, machineTypes: ['l', 'm'], autoscale: 'Coppice' })],
      scaleIn: { idleFor: '2h', minimumLife: '2h' },
    },
    clusters,
  };
  const ignoringNoUse = (world: BurstWorld): BurstWorld => ({
    ...world,
    receipts: {
      ...world.receipts,
      async read(...args) {
        const receipt = await world.receipts.read(...args);
        const purchases = receipt?.purchases.map((one) =>
          one.kind === 'cluster' && isUseless(one) ? { ...one, work: {} } : one,
        );
        return receipt && { ...receipt, purchases: purchases ?? [] };
      },
      save: (key, receipt, before, signal) =>
        world.receipts.save(
          key,
          {
            ...receipt,
            purchases: receipt.purchases.map((one) => {
              if (one.kind !== 'cluster' || !isUseless(one)) return one;
              const { work: _, ...without } = one;
              return without;
            }),
          },
          before,
          signal,
        ),
    },
  });

  /** Work for a whole node, and a pool without a node: system pods take their share. */
  const WHOLE_NODE: History = {
    rows: `10m,web,2,,2,1Gi,,,,\n30m,end,0,,900m,1Gi,,,,`,
    simulation: QUICK,
    spec: {
      grow: [{ name: 'own', clusterSelector: {}, maximumNodes: 9, assumedHourly: '0.1' }],
    },
    clusters: { own: { ...clusters.own, pools: [{ ...POOL, minimum: 0, autoscale: 'Coppice' }] } },
  };
  const withoutSystemPods = (world: BurstWorld): BurstWorld => ({
    ...world,
    pools: (...of) =>
      world.pools(...of)?.map((one) => {
        const { template } = one;
        const more = template && {
          ...template.allocatable,
          cpu: template.allocatable.cpu + EXPECTED_SYSTEM_POD.requests.cpu,
        };
        return { ...one, template: template && { ...template, allocatable: more! } };
      }),
  });

  it.each([
    ['system pods of a pool without a node', WHOLE_NODE, withoutSystemPods],
    ['the limit of a CloudProfile', LIMITED, unlimited],
    ['of which template it is that rests', EXPIRING, ignoringRevisions],
    ['that a cluster is of no use', USELESS, ignoringNoUse],
  ])('is found to decide something else where it does not see %s', async (_, history, fault) => {
    await tried(history);
    expect((await compared(history, fault)).differences).not.toEqual([]);
  });

  it.skipIf(process.env.COPPICE_SEED || !hasAllCases())('is compared in decisions and refusals of each kind', () => {
    const all = ['Buy', 'Cut', 'Empty', 'Fail', 'Grow', 'Open', 'Refuse', 'Remove', 'Sleep', 'Wake'];
    expect([...actions].sort()).toEqual(all);
    const every = [...said].join('\n');
    for (const why of [
      'quota "all" allows nodes',
      'the API server refuses its template',
      'offers no Kubernetes 1.20.0',
      'minimumPriority',
      'peak rush',
      'minimumClusters',
      'the budget',
    ])
      expect(every).toContain(why);
  });
});
