import type { Quota } from '../../operator/api/quota.ts';
import { decide, type Situation } from '../../operator/controllers/managed/decide.ts';
import { admit, type Claimant, nextInLine } from '../../operator/cost/admission.ts';
import { profile, quota, size } from '../unit/cost/objects.ts';

const NOW = new Date('2026-11-21T12:00:00Z');
const CLUSTERS = 1000;

/** A managed cluster that is made and in order: what is decided about again and again. */
const SETTLED: Situation = {
  deleting: false,
  wish: 'w1',
  exists: true,
  applied: 'w1',
  reachable: true,
  credentials: 'c1',
  accepted: 'c1',
  forced: false,
  drift: { lookedAt: NOW, everyMs: 6 * 3600_000, found: false, mend: false },
  access: { open: true, dueAt: new Date(+NOW + 300_000) },
  failures: new Map(),
};

/** CPU time of one call in microseconds, over so many calls; the first tenth is not counted, in which the code is compiled. */
function microseconds(calls: number, call: (index: number) => unknown): number {
  for (let index = 0; index < calls / 10; index++) call(index);
  const before = process.cpuUsage();
  for (let index = 0; index < calls; index++) call(index);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / calls;
}

function fleet(): { claimants: Claimant[]; quotas: Quota[] } {
  const sharing = profile();
  const claimants = Array.from({ length: CLUSTERS }, (_, index) => ({
    key: `shop/c${index}`,
    createdAt: new Date(+NOW + index * 1000).toISOString(),
    profile: sharing,
    held: size('here', 'Managed', 'small*3'),
    asked: index % 10 === 0 ? size('here', 'Managed', 'small*4') : undefined,
  }));
  return { claimants, quotas: [quota({ nodes: 4000, cpu: '8000', 'cost.hourly': '400' })] };
}

/** Times of pure decisions, by title, in microseconds. */
export function measureDecisions(): Record<string, number> {
  const { claimants, quotas } = fleet();
  const others = claimants.slice(0, -1);
  const last = { ...claimants.at(-1)!, asked: size('here', 'Managed', 'small*4') };
  return {
    'next step of a managed cluster (decide)': microseconds(200_000, () => decide(SETTLED, NOW)),
    'a cluster among 1000 of its namespace against a quota, 100 of them waiting (admit)': microseconds(200, () =>
      admit(last, others, quotas),
    ),
    'who of these 1000 is next in line (nextInLine)': microseconds(200, () => nextInLine(claimants, quotas)),
  };
}
