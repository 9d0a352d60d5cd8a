import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { type Compared, renderCompared } from '../../../operator/cli/render/rehearsal-work.ts';
import { nodesAlone } from '../../../operator/rehearsal/baselines.ts';
import { boundOf } from '../../../operator/rehearsal/bound/bound.ts';
import type { Standing } from '../../../operator/rehearsal/standings.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { type Draw, holds } from '../../kit/property.ts';
import { HOUR, profile } from './fixtures.ts';
import { HEADER, playWork, policy, STANDING } from './policy-fixtures.ts';

const MACHINES = {
  m: { cpu: 1900, gpu: 0, price: 100_000 },
  g: { cpu: 7900, gpu: 4, price: 3_000_000 },
};

/** Without a fee, so that only machines are paid for. */
const cloud = partOf<KubeObject>({
  ...profile,
  spec: {
    ...profile.spec,
    controlPlaneFee: { hourly: '0', currency: 'USD' },
    machineTypes: [
      ...profile.spec.machineTypes,
      { name: 'g', cpu: 8, gpu: 4, memory: '64Gi', price: { hourly: '3', currency: 'USD', region: 'north' } },
    ],
  },
});
const both = policy({
  candidates: [
    {
      name: 'public',
      template: {
        spec: {
          cloudProvider: 'cloud',
          pools: [
            { name: 'm', machineType: 'm', maximum: 9 },
            { name: 'g', machineType: 'g', maximum: 9 },
          ],
        },
      },
    },
  ],
});

interface Item {
  readonly cpu: number;
  readonly gpu: number;
}

/** The cheapest machines on which each has its place, by trying all ways. */
function cheapest(items: readonly Item[]): number {
  let best = Number.POSITIVE_INFINITY;
  const bins: { cpu: number; gpu: number }[] = [];
  const place = (index: number, cost: number): void => {
    if (cost >= best) return;
    const item = items[index];
    if (!item) {
      best = cost;
      return;
    }
    const into = (bin: { cpu: number; gpu: number }, more: number) => {
      if (bin.cpu < item.cpu || bin.gpu < item.gpu) return;
      bin.cpu -= item.cpu;
      bin.gpu -= item.gpu;
      place(index + 1, cost + more);
      bin.cpu += item.cpu;
      bin.gpu += item.gpu;
    };
    for (const bin of [...bins]) into(bin, 0);
    for (const { cpu, gpu, price } of Object.values(MACHINES)) {
      const bin = { cpu, gpu };
      bins.push(bin);
      into(bin, price);
      bins.pop();
    }
  };
  place(0, 0);
  return best;
}

const itemsOf = (choose: Draw): Item[] => [
  ...choose.many(choose.integer(1, 4), () => ({ cpu: choose.pick([500, 700, 1100, 1500]), gpu: 0 })),
  ...choose.many(choose.integer(0, 3), () => ({ cpu: 100, gpu: choose.integer(1, 4) })),
];

const rowsOf = (items: readonly Item[]) => [
  ...items.map(({ cpu, gpu }, index) => `0,work-${index},1,,${cpu}m,1Gi,,,,${gpu > 0 ? gpu : ''}`),
  '1h,work-0,1,,,,,,,',
];

async function boundFor(items: readonly Item[], more: readonly string[] = []) {
  const rows = [...rowsOf(items).slice(0, -1), ...more, rowsOf(items).at(-1)].join('\n');
  const { scenario, report, trace } = await playWork(rows, [both, cloud], {}, `${HEADER},gpu`);
  return (await boundOf(scenario, scenario.policy!, trace(), report))!;
}

describe('the bounds of a rehearsal with mixed sizes and GPUs', () => {
  holds(
    'the least is no more, and the peak standing no less, than the cheapest machines by trying all ways',
    async (choose) => {
      const items = itemsOf(choose);
      const { least, standing, isStandingPlan } = await boundFor(items);
      const exact = cheapest(items);
      expect(isStandingPlan).toBe(true);
      expect(Number(least)).toBeLessThanOrEqual(exact + 1);
      expect(Number(standing)).toBeGreaterThanOrEqual(exact - 1);
      // First fit takes less than twice as many of the cheapest, and each GPU node is one at most too many.
      const gpus = items.reduce((sum, { gpu }) => sum + gpu, 0);
      expect(Number(least)).toBeGreaterThanOrEqual((gpus / MACHINES.g.gpu) * MACHINES.g.price - 1);
      expect(Number(standing)).toBeLessThanOrEqual(2 * exact + MACHINES.g.price + MACHINES.m.price);
    },
    { runs: 25 },
  );

  it('need six standing nodes for 24 GPUs, at their price', async () => {
    const items = Array.from({ length: 12 }, (_, index) => ({ cpu: 100 + index, gpu: 2 }));
    expect(await boundFor(items)).toMatchObject({ least: 18_000_000n, standing: 18_000_000n, peakNodes: 6 });
  });

  it('need as many standing nodes as have a place for each pod, where divisible pods would need fewer', async () => {
    const items = [1100, 1000, 1200].map((cpu) => ({ cpu, gpu: 0 }));
    expect(await boundFor(items)).toMatchObject({ peakNodes: 3, standing: 300_000n, isStandingPlan: true });
  });

  it('are marked as a lower bound where some work has no certain place', async () => {
    const items = [1100, 1000, 1200].map((cpu) => ({ cpu, gpu: 0 }));
    const bound = await boundFor(items, ['0,some,1,,100m,1Gi,,tier=public,,']);
    expect(bound).toMatchObject({ peakNodes: 2, isStandingPlan: false });
    const { report } = await playWork('0,web,1,,1,1Gi,,\n1h,web,1,,,,,');
    const [, peak] = renderCompared(comparedOf(report.work!, { bound }), {}).filter((line) => !line.startsWith('WHAT'));
    expect(peak).toMatch(/^the peak, at least /);
  });
});

const comparedOf = (work: Compared['policy'], more: Partial<Compared>): Compared => ({
  ...{ currency: 'USD', stabilisationMs: 0, policy: work, otherwise: [], bound: undefined, nodesAlone: undefined },
  ...more,
});

/** A machine of 0.1 USD for each replica of 1.5 CPU that ran beyond the two that stand. */
const summed = (standings: readonly Standing[], end: number): number =>
  standings.reduce((sum, { at, running }, index) => {
    const ms = (standings[index + 1]?.at ?? end) - at;
    return sum + Math.max(0, running / 1500 - 2) * (ms / HOUR) * 100_000;
  }, 0);

holds(
  'what is paid is held against the least for what ran, which nobody can pay less than, added up replica by replica',
  async (choose) => {
    let minute = 0;
    const steps = choose.many(8, () => {
      minute += choose.integer(1, 25);
      return `${minute}m,web,${choose.integer(0, 9)},,1500m,1Gi,,`;
    });
    const { scenario, report, trace, again } = await playWork(`${steps.join('\n')}\n${minute + 30}m,web,0,,,,,`);
    const bound = (await boundOf(scenario, scenario.policy!, trace(), report))!;
    const alone = await again(nodesAlone(scenario, 'public')!);
    for (const { work, standings, start, end } of [report, alone]) {
      const least = Number(bound.leastFor(work!.ran));
      const own = start === undefined ? 0 : summed(standings, end);
      expect(Math.abs(least - own)).toBeLessThan(2);
      const paid = work!.bought.costs.reduce((sum, { amount }) => sum + Number(amount), 0);
      expect(paid - Number(work!.bought.fees)).toBeGreaterThanOrEqual(least - 2);
    }
    const lines = renderCompared(comparedOf(report.work!, { bound, nodesAlone: alone.work }), {});
    for (const row of [/^the policy/, /^nodes alone/]) {
      const [machines] = /(?<=\d+ % +)\d+(?= %)/.exec(lines.find((line) => row.test(line))!) ?? ['100'];
      expect(Number(machines)).toBeGreaterThanOrEqual(100);
    }
    expect(lines.find((line) => line.startsWith('the least'))).toMatch(/ (100 %|-) /);
  },
  { runs: 12 },
);

it('are correct when standing work is the only work', async () => {
  const { scenario, report, trace } = await playWork('0,web,2,,1500m,1Gi,,\n1h,web,2,,,,,', [STANDING, policy()]);
  const bound = (await boundOf(scenario, scenario.policy!, trace(), report))!;
  expect(bound.leastFor(report.work!.ran)).toBe(0n);
  const line = renderCompared(comparedOf(report.work!, { bound }), {}).find((text) => text.startsWith('the policy'));
  expect(line).not.toContain('NaN');
});

it('explain the largest part of the cost of a policy that costs more than standing nodes', async () => {
  const { scenario, report, trace } = await playWork('20m,web,5,,1500m,1Gi,,\n25m,web,2,,,,,\n1h,web,2,,,,,');
  const bound = (await boundOf(scenario, scenario.policy!, trace(), report))!;
  const lines = (standing: bigint) => renderCompared(comparedOf(report.work!, { bound: { ...bound, standing } }), {});
  const { amount } = report.work!.bought.costs[0]!;
  const dearer = lines(amount - 50_000n).filter((line) => line.includes('more than'));
  expect(dearer).toEqual([
    expect.stringMatching(
      /^The policy costs 0.05 USD more than the peak standing\. It paid .* USD went to control planes\.$/,
    ),
  ]);
  expect(lines(amount).filter((line) => line.includes('more than'))).toEqual([]);
});
