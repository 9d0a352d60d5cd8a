import { describe, expect, it } from 'vitest';
import { LABELS } from '../../../operator/api/group.ts';
import { parseMoney } from '../../../operator/cost/money.ts';
import { rehearse } from '../../../operator/rehearsal/rehearse.ts';
import type { RehearsedCluster, Simulation } from '../../../operator/rehearsal/state.ts';
import { type Draw, holds } from '../../kit/property.ts';
import { playWork, policy, SLOW, STANDING } from './policy-fixtures.ts';

/** What a node and a control plane of the fixtures cost an hour, in millionths of USD. */
const [NODE, CONTROL_PLANE] = [100_000n, 500_000n];

const bought = (hourly: string, maximum: number, more: object = {}) =>
  policy({
    budget: { hourly, currency: 'USD' },
    candidates: [
      {
        name: 'public',
        template: {
          spec: {
            cloudProvider: 'cloud',
            pools: [{ name: 'workers', machineType: 'm', maximum, autoscale: 'Coppice', scaleInAfter: '5m' }],
          },
        },
      },
    ],
    ...more,
  });

/** What the clusters of the policy cost in an hour at this moment: control planes that are ordered, and nodes that are asked for or there. */
const runningCost = ({ clusters }: Simulation): bigint =>
  [...clusters.values()].reduce((sum, state) => sum + (isBought(state) ? CONTROL_PLANE + nodesCost(state) : 0n), 0n);

const isBought = ({ object }: RehearsedCluster): boolean => object?.metadata.labels?.[LABELS.burstPolicy] !== undefined;

const nodesCost = ({ pools, machines }: RehearsedCluster): bigint =>
  NODE *
  BigInt(
    Math.max(
      machines.size,
      [...pools.values()].reduce((sum, { wanted }) => sum + wanted, 0),
    ),
  );

/** Plays it. @returns the most that clusters of the policy have cost in an hour, asked at each entry of the timeline and at each look */
async function playCosts(rows: string, spec: ReturnType<typeof policy>, simulation: object = SLOW) {
  const played = await playWork(rows, [STANDING, spec], simulation);
  let seen: Simulation | undefined;
  let most = 0n;
  const note = () => {
    const cost = seen ? runningCost(seen) : 0n;
    if (cost > most) most = cost;
  };
  const report = await rehearse(played.scenario, played.trace(), played.survey, {
    ...played.options,
    onEntry: note,
    worldOf: (world, of) => {
      seen = of;
      note();
      return world;
    },
  });
  return { most, report };
}

describe('a budget', () => {
  it('buys one node for one replica in pools of up to a hundred, and counts more nodes as they are granted', async () => {
    // A hundred nodes cost 10 USD an hour.
    const rows = '20m,web,2,,1500m,1Gi,,\n1h,web,3,,,,,\n2h,web,12,,,,,\n3h,web,60,,,,,\n9h,web,60,,,,,';
    const { most, report } = await playCosts(rows, bought('2', 100));
    expect(report.work!.bought).toMatchObject({ clusters: 1, peakNodes: 10 });
    // The rest of the budget has 15 nodes in all: 48 replicas more, which are one source, do not fit.
    expect(most).toBe(CONTROL_PLANE + 10n * NODE);
    expect(report.work!.waiting).toBeGreaterThan(0);
  });

  it('is used to its last node by waiting jobs', async () => {
    // Two clusters of thirty nodes cost 7 of 10 USD. A third counted 3.5 at its largest: 3 USD were unused while jobs waited.
    const rows = '20m,batch,,200,1500m,1Gi,8h,\n9h,end,,1,100m,1Mi,1m,';
    const { most, report } = await playCosts(rows, bought('10', 30));
    expect(most).toBe(parseMoney('10'));
    expect(report.work!.bought).toMatchObject({ clusters: 3, peakNodes: 85 });
  });

  it('grants returned money to the next that needs it', async () => {
    const rows =
      '20m,web,2,,1500m,1Gi,,\n1h,api,12,,1500m,1Gi,,\n3h,api,1,,,,,\n5h,ml,11,,1500m,1Gi,,,\n8h,ml,11,,,,,,';
    const { most, report } = await playCosts(rows, bought('1.8', 40));
    expect(report.work!.waiting).toBe(0);
    expect(most).toBeLessThanOrEqual(parseMoney('1.8'));
  });

  it('counts a cloud-sized pool with its maximum', async () => {
    const [candidate] = bought('2', 100).spec.candidates;
    const [pool] = candidate.template.spec.pools;
    const template = { spec: { ...candidate.template.spec, pools: [{ ...pool, autoscale: 'Cloud' }] } };
    const clouds = bought('2', 100, { candidates: [{ ...candidate, template }] });
    const { report } = await playCosts('20m,web,3,,1500m,1Gi,,\n2h,web,3,,,,,', clouds);
    expect(report.work!.bought.clusters).toBe(0);
    expect(report.work!.refusals[0]!.why).toMatch(
      /it costs 10\.5 USD an hour, and 2 USD of the budget of 2 USD are left/,
    );
  });

  holds(
    'is not exceeded at any moment, whatever work comes and goes',
    async (choose) => {
      const hourly = choose.pick(['0.7', '1.1', '2', '3.5']);
      const { most } = await playCosts(rowsOf(choose), bought(hourly, choose.integer(1, 40)), cloudOf(choose));
      expect(most).toBeLessThanOrEqual(parseMoney(hourly));
    },
    { runs: 5 },
  );
});

/** Work of the hub that comes and goes; what is placed stays on a cluster and may lack a node there. */
const rowsOf = (choose: Draw): string => {
  const rows = Array.from({ length: choose.integer(4, 14) }, () => choose.integer(1, 360))
    .sort((a, b) => a - b)
    .map((minute) => {
      const cpu = choose.pick(['900m', '1500m']);
      return `${minute}m,web-${choose.integer(1, 4)}-${cpu},${choose.integer(0, 14)},,${cpu},1Gi,,`;
    });
  return `${rows.join('\n')}\n8h,end,0,,900m,1Gi,,`;
};

const cloudOf = (choose: Draw): object => ({
  controlPlane: { creation: { p50: choose.pick(['1m', '5m']) } },
  machines: { creation: { p50: choose.pick(['30s', '2m']) } },
  ...(choose.chance(0.3) && { spot: { interruptionsPerHour: 1.5 } }),
  ...(choose.chance(0.3) && { capacity: { depletionRate: 0.4 } }),
});
