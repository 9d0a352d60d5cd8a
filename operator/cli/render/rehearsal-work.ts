import { type Micros, roundMoney } from '../../cost/money.ts';
import type { CostBound } from '../../rehearsal/bound/bound.ts';
import type { WaitPercentiles, WorkReport } from '../../rehearsal/burst-report.ts';
import { formatAge } from './age.ts';
import { type Row, renderTable, renderWrapped, type TableOptions } from './table.ts';

/** Results of a policy, and of other ways to run the same work. */
export interface Compared {
  readonly currency: string;
  /** How long the policy waits before it acts on demand, milliseconds. */
  readonly stabilisationMs: number;
  readonly policy: WorkReport;
  readonly bound: CostBound | undefined;
  /** The same policy with another number of waiting clusters. Empty: the policy has none. */
  readonly otherwise: readonly { readonly what: string; readonly work: WorkReport }[];
  /** One permanent cluster that grows by nodes alone. */
  readonly nodesAlone: WorkReport | undefined;
}

/** Most refusal reasons shown, by frequency. */
const SHOWN_REFUSALS = 3;
const time = (ms: number | undefined): string => (ms === undefined ? '-' : formatAge(ms));

const waitRow = (what: string, { count, p50, p95, p99, max }: WaitPercentiles): string[] => [
  what,
  String(count),
  ...[p50, p95, p99, max].map(time),
];

/** Lines about waiting times of work. */
export function renderWaits(work: WorkReport, stabilisationMs: number | undefined, options: TableOptions): string[] {
  const rows = [
    waitRow('all that ran', work.waits),
    waitRow('did not run at once', work.waited),
    ...(stabilisationMs === undefined
      ? []
      : [waitRow(`  less pendingFor (${formatAge(stabilisationMs)})`, work.waitedAfterStabilisation)]),
    waitRow("  less the cloud's start-up time", work.waitedBeyondStartup),
    waitRow('never ran', work.neverRan),
  ];
  const unserved = `Never ran: ${neverOf(work)}. Cancelled before they ran: ${work.cancelled}; waiting at the end: ${work.waiting}.`;
  const refused = work.refusals
    .slice(0, SHOWN_REFUSALS)
    .map(({ looks, source, why }): Row => ({ cells: [String(looks), source, why] }));
  return [
    ...renderTable(['WORK', 'COUNT', 'WAIT P50', 'P95', 'P99', 'MAX'], rows, options),
    unserved,
    ...(refused.length > 0 ? ['', ...renderWrapped(['LOOKS', 'NOTHING BOUGHT FOR', 'WHY'], refused, options)] : []),
  ];
}

/** Cost beside a cluster that grows by nodes alone, a permanent peak, and the lower bound. */
export function renderCompared(compared: Compared, options: TableOptions): string[] {
  const { policy, bound, nodesAlone, currency } = compared;
  const least = bound && bound.least + bound.forcedByMinimumLife;
  const money = (amount: Micros | undefined) => (amount === undefined ? '-' : `${roundMoney(amount, 2)} ${currency}`);
  const share = (amount: Micros | undefined, least = bound?.least) =>
    amount === undefined || !least ? '-' : `${Math.round(Number((amount * 1000n) / least) / 10)} %`;
  const did = (what: string, work: WorkReport): string[] => {
    const cost = boughtCostOf(work, currency);
    // Work that never ran costs nothing: compare with the bound of the work that did run.
    const itsLeast = bound?.leastFor(work.ran) ?? 0n;
    return [
      what,
      money(cost),
      money(work.bought.fees),
      share(cost, itsLeast),
      share(cost - work.bought.fees, itsLeast),
      time(work.waits.p95),
      time(work.waited.p95),
      neverOf(work),
      String(work.bought.clusters),
      String(work.bought.peakNodes),
      wasteOf(work),
    ];
  };
  const rest = (nodes: number | undefined) => ['', String(nodes ?? '-'), ''];
  const bounded = (what: string, amount: Micros | undefined, fees?: Micros): string[] => [
    what,
    money(amount),
    fees === undefined ? '' : money(fees),
    share(amount),
    '',
    '-',
    '-',
    '-',
    ...rest(undefined),
  ];
  const rows = [
    did('the policy', policy),
    ...(nodesAlone ? [did('nodes alone', nodesAlone)] : []),
    ...(bound
      ? [
          [
            bound.isStandingPlan ? 'the peak, standing' : 'the peak, at least',
            money(bound.standing),
            '',
            share(bound.standing),
            '',
            '0s',
            '-',
            '0',
            ...rest(bound.peakNodes),
          ],
          bounded('the least', bound.least),
          bounded('  with minimumLife', least),
          bounded('  and control planes', least! + bound.controlPlanes, bound.controlPlanes),
          bounded('  of clusters alone', bound.forced.byMinimumLife),
          bounded('    in whole machines', bound.forced.byWholeMachines),
          bounded('    and control planes', bound.forced.byControlPlanes, bound.controlPlanes),
          bounded('    for idleFor longer', bound.forced.byIdleFor),
          ...(bound.staying === undefined ? [] : [bounded('  where jobs stay', bound.staying)]),
        ]
      : []),
  ];
  const head = [
    'WHAT',
    'COST',
    'CONTROL PLANES',
    'OF LEAST',
    'MACHINES',
    'P95',
    'P95 WAITED',
    'NEVER RAN',
    'CLUSTERS',
    'NODES',
    'WASTE',
  ];
  return [
    ...renderTable(head, rows, options),
    ...(bound ? whyDearer(boughtCostOf(policy, currency), bound, policy, money) : []),
    '',
    ...renderPaidFor(compared, options),
    ...renderWaiting(compared, options),
  ];
}

const PARTS: Readonly<Record<Exclude<keyof WorkReport['bought']['paidFor'], 'work'>, string>> = {
  warm: 'clusters that wait warm',
  asleep: 'clusters that wait asleep',
  woken: 'clusters of others, woken',
  controlPlanes: 'control planes',
  starting: 'machines that start or stop',
  idle: 'clusters without work',
  spare: 'nodes without work, of others',
  room: 'room on nodes with work',
};

/** Explains why buying on demand costs more than permanent machines, if it does. */
function whyDearer(
  cost: Micros,
  { standing }: CostBound,
  { bought: { paidFor } }: WorkReport,
  money: (of: Micros) => string,
) {
  if (cost <= standing) return [];
  const parts = (Object.keys(PARTS) as (keyof typeof PARTS)[]).map((part) => ({ part, amount: paidFor[part] }));
  const { part, amount } = parts.reduce((most, one) => (one.amount > most.amount ? one : most));
  const why = amount > 0n ? `, of which ${money(amount)} went to ${PARTS[part]}` : '';
  return [`The policy costs ${money(cost - standing)} more than the peak standing. It paid ${money(cost)}${why}.`];
}

/** Cost and benefit of waiting clusters, with this policy's number and others. */
function renderWaiting({ policy, otherwise, currency }: Compared, options: TableOptions): string[] {
  if (otherwise.length === 0) return [];
  const money = (amount: Micros) => `${roundMoney(amount, 2)} ${currency}`;
  const rows = [{ what: 'as the policy says', work: policy }, ...otherwise].map(({ what, work }) => {
    const { warm, asleep, woken } = work.bought.paidFor;
    const { count, p50, p95, max } = work.waited;
    return [
      what,
      money(boughtCostOf(work, currency)),
      money(warm + asleep + woken),
      String(work.waits.count),
      String(count),
      ...[p50, p95, max].map(time),
      String(work.cancelled + work.waiting),
    ];
  });
  const head = ['CLUSTERS WAIT', 'COST', 'OF IT FOR THAT', 'RAN', 'NOT AT ONCE', 'P50', 'P95', 'MAX', 'NEVER'];
  return ['', ...renderTable(head, rows, options)];
}

/** What the policy's money and that of nodes alone was spent on. */
function renderPaidFor({ policy, nodesAlone, currency }: Compared, options: TableOptions): string[] {
  const all = [policy, ...(nodesAlone ? [nodesAlone] : [])];
  const row = (what: string, of: (work: WorkReport) => Micros): string[] => [
    what,
    ...all.flatMap((work) => {
      const cost = boughtCostOf(work, currency);
      const share = cost === 0n ? '-' : `${Math.round(Number((of(work) * 1000n) / cost) / 10)} %`;
      return [`${roundMoney(of(work), 2)} ${currency}`, share];
    }),
  ];
  const known = ({ bought: { paidFor } }: WorkReport) =>
    Object.values<Micros>({ ...paidFor }).reduce((sum, amount) => sum + amount, 0n);
  const waiting = (what: string, wait: 'warm' | 'asleep' | 'woken') =>
    policy.bought.paidFor[wait] > 0n ? [row(what, ({ bought: { paidFor } }) => paidFor[wait])] : [];
  const rows = [
    ...waiting(PARTS.warm, 'warm'),
    ...waiting(PARTS.asleep, 'asleep'),
    ...waiting(PARTS.woken, 'woken'),
    row(PARTS.controlPlanes, ({ bought: { paidFor } }) => paidFor.controlPlanes),
    row(PARTS.starting, ({ bought: { paidFor } }) => paidFor.starting),
    row(PARTS.idle, ({ bought: { paidFor } }) => paidFor.idle),
    row(PARTS.spare, ({ bought: { paidFor } }) => paidFor.spare),
    row(PARTS.room, ({ bought: { paidFor } }) => paidFor.room),
    row('work', ({ bought: { paidFor } }) => paidFor.work),
    row('billing steps', (work) => boughtCostOf(work, currency) - known(work)),
  ];
  const head = ['PAID FOR', 'THE POLICY', '', ...(nodesAlone ? ['NODES ALONE', ''] : [])];
  return renderTable(head, rows, options);
}

/** How much of the work never ran, shown beside the waits of the work that did. */
function neverOf({ waits, neverRan }: WorkReport): string {
  const all = waits.count + neverRan.count;
  return neverRan.count === 0 ? '0' : `${neverRan.count} of ${all} (${Math.round((100 * neverRan.count) / all)} %)`;
}

function wasteOf({ paidCpu, usedCpu }: WorkReport): string {
  return paidCpu === 0 ? '-' : `${Math.round((1 - usedCpu / paidCpu) * 100)} %`;
}

/** Cost of purchases in this currency. */
export const boughtCostOf = ({ bought }: WorkReport, currency: string): Micros =>
  bought.costs.find((cost) => cost.currency === currency)?.amount ?? 0n;
