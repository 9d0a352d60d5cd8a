import { type ClustersPlan, type Order, ordersOf } from '../burst/clusters/plan-model.ts';
import type { ClusterPurchase } from '../burst/clusters/purchases.ts';
import { clustersIn } from '../burst/clusters/receipt.ts';
import type { Outcome } from '../controllers/burst/seen.ts';
import type { RehearsedPolicy } from './rehearsed-policy.ts';
import { type EntryKind, type Simulation, tellEvent } from './state.ts';

/** Limit of recorded reasons; amounts of money multiply them. */
const MOST_REASONS = 20;

/** Records the actions of a policy's evaluation in the timeline, and why nothing was bought for which workload. */
export function tellOutcome(simulation: Simulation, rehearsed: RehearsedPolicy, outcome: Outcome): void {
  rehearsed.told = outcome;
  const { plan } = outcome;
  if (!plan) return;
  const { namespace } = rehearsed.policy.metadata;
  for (const [name, kind, message] of linesOf(plan, outcome)) {
    const cluster = simulation.clusters.get(`${namespace}/${name}`);
    if (cluster) tellEvent(simulation, cluster, kind, message);
  }
  noteRefusals(simulation, rehearsed, plan);
}

type Line = readonly [name: string, kind: EntryKind, message: string];

function linesOf({ orders, kept, removals }: ClustersPlan, { receipt }: Outcome): Line[] {
  const count = ordersOf(orders, 'cluster').length;
  const bought = count === 0 ? [] : clustersIn(receipt).slice(-count);
  const linesFor = (some: readonly Order[]) =>
    some.flatMap((one): Line[] => {
      const line = lineOf(one, bought);
      return line ? [line] : [];
    });
  return [
    ...linesFor(orders.filter(({ kind }) => kind !== 'empty')),
    ...kept.map(({ name, why }): Line => [name, 'kept', why]),
    ...linesFor(ordersOf(orders, 'empty')),
    ...removals.map(({ name, why, isFailure, toSleep, isOthers }): Line => {
      if (toSleep || isOthers) return [name, 'put-to-sleep', why];
      return [name, 'given-back', isFailure ? why : 'it has no work any more'];
    }),
  ];
}

/** @param bought clusters whose orders are not in the timeline yet; the first is removed */
function lineOf(order: Order, bought: ClusterPurchase[]): Line | undefined {
  const { why } = order;
  switch (order.kind) {
    case 'cluster':
      return [bought.shift()!.name, 'bought', why];
    case 'open':
      return [order.name, 'opened', why];
    case 'wake':
      return [order.name, 'woken', why];
    case 'empty':
      return [order.name, 'emptied', why];
    case 'cut':
      return [order.name, 'cut', why];
    // Nodes are reported when they come.
    case 'nodes':
    case 'grant':
      return undefined;
  }
}

function noteRefusals({ now }: Simulation, { refusals }: RehearsedPolicy, { verdicts }: ClustersPlan): void {
  const reasons = new Map<string, string>();
  for (const { state, source, alternatives = [] } of verdicts) {
    const why = alternatives.map(({ candidate, whyNot }) => `${candidate}: ${whyNot}`).join('; ');
    if (state === 'Refused' && !reasons.has(why)) reasons.set(why, source);
  }
  for (const [why, source] of reasons) {
    const known = refusals.get(why);
    if (known) Object.assign(known, { looks: known.looks + 1, last: now });
    else if (refusals.size < MOST_REASONS) refusals.set(why, { why, source, looks: 1, first: now, last: now });
  }
}
