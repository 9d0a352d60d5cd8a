import { expect, it } from 'vitest';
import { type Compared, renderCompared, renderWaits } from '../../../operator/cli/render/rehearsal-work.ts';
import { renderTable } from '../../../operator/cli/render/table.ts';
import { holds } from '../../kit/property.ts';
import { playWork, policy, STANDING } from './policy-fixtures.ts';

const MINUTE = 60_000;
/** Of STANDING, for replicas of 1.5 CPU. */
const SLOTS = 2;
/** Too little for any cluster. */
const POOR = policy({ budget: { hourly: '0.01', currency: 'USD' } });

/** Each replica by itself: how long those waited that ran, and those that never did. */
function oneByOne(steps: readonly { at: number; replicas: number }[]) {
  let waiting: number[] = [];
  let running = 0;
  const [ran, never]: [number[], number[]] = [[], []];
  for (const { at, replicas } of steps) {
    while (waiting.length + running < replicas) waiting.push(at);
    while (waiting.length + running > replicas)
      if (waiting.length > 0) never.push(at - waiting.pop()!);
      else running--;
    for (; running < SLOTS && waiting.length > 0; running++) ran.push(at - waiting.shift()!);
  }
  const end = steps.at(-1)!.at;
  waiting = waiting.map((since) => end - since);
  return { ran, never: [...never, ...waiting] };
}

holds(
  'work that never ran is told beside the waits: how many, and how long it waited, counted one by one',
  async (choose) => {
    let at = 0;
    const steps = Array.from({ length: 25 }, () => {
      at += choose.integer(1, 9) * MINUTE;
      return { at, replicas: choose.integer(0, 7) };
    });
    const rows = steps.map(({ at, replicas }) => `${at / MINUTE}m,web,${replicas},,1500m,1Gi,,`).join('\n');
    const { report } = await playWork(rows, [STANDING, POOR], {});
    const { waits, neverRan, cancelled, waiting } = report.work!;
    const { ran, never } = oneByOne(steps);
    expect([waits.count, neverRan.count, cancelled + waiting]).toEqual([ran.length, never.length, never.length]);
    if (never.length === 0) return;
    expect(neverRan.max).toBe(Math.max(...never));
    const sorted = never.toSorted((a, b) => a - b);
    // Three digits of it are kept.
    expect(neverRan.p50! / sorted[Math.ceil(sorted.length / 2) - 1]!).toBeCloseTo(1, 2);
  },
  { runs: 8 },
);

it('work that never ran is in the tables, with its share of the total', async () => {
  const { report } = await playWork('20m,web,8,,1500m,1Gi,,\n50m,web,5,,,,,\n80m,web,5,,,,,', [STANDING, POOR], {});
  const lines = renderWaits(report.work!, undefined, {});
  expect(lines).toContainEqual(expect.stringMatching(/^never ran +6 +30m +60m +60m +60m$/));
  expect(lines).toContainEqual('Never ran: 6 of 8 (75 %). Cancelled before they ran: 3; waiting at the end: 3.');
  const compared: Compared = {
    ...{ currency: 'USD', stabilisationMs: 0, policy: report.work!, otherwise: [] },
    ...{ bound: undefined, nodesAlone: undefined },
  };
  expect(renderCompared(compared, {}).slice(0, 2)).toEqual([
    expect.stringContaining('NEVER RAN'),
    expect.stringMatching(/^the policy .* 0s +- +6 of 8 \(75 %\) /),
  ]);
});

it('a table with two equal column titles shows the figures of each', () => {
  expect(renderTable(['PAID FOR', 'A', '', 'B', ''], [['work', '1', '4 %', '2', '44 %']])[1]).toMatch(
    /1 +4 % +2 +44 %/,
  );
  const narrow = renderTable(['PAID FOR', 'A', '', 'AGE', ''], [['work', '1', '4 %', '2 years', '44 %']], {
    width: 28,
  });
  expect(narrow[1]).toMatch(/1 +4 % +44 %/);
});
