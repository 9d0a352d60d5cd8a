import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { BurstDecision, BurstPolicyStatus } from '../../api/burstpolicy-status.ts';
import { findCondition, isTrue } from '../../api/conditions.ts';
import { accruedUntil } from '../../cost/accrual.ts';
import { parseMoney, roundMoney } from '../../cost/money.ts';
import { actionOf } from '../actions.ts';
import { countText } from '../clusterview.ts';
import { oneLine } from '../errors.ts';
import { ageOf } from './age.ts';
import { renderTable, type TableOptions } from './table.ts';
import { type Tone, textCell } from './text.ts';

const CLUSTERS_HEADER = ['CLUSTER', 'CANDIDATE', 'PHASE', 'HOURLY', 'AGE', 'IDLE'];
const WOKEN_HEADER = ['WOKEN', 'ENTRY', 'PHASE', 'HOURLY', 'AGE', 'IDLE'];
const NODES_HEADER = ['GROWN', 'POOL', 'NODES', 'HOURLY', 'AGE'];
const CANDIDATES_HEADER = ['CANDIDATE', 'FROM HOURLY', 'PROBLEM'];
const DEMAND_HEADER = ['SOURCE', 'REPLICAS', 'EACH', 'WAITS', 'STATE', 'WHY'];
/** Status entry of a cluster that the policy bought or woke. */
type Standing = NonNullable<BurstPolicyStatus['clusters'] | BurstPolicyStatus['woken']>[number];

const PHASES: Record<string, Tone> = { Joined: 'good' };

/** Everything known about a policy: clusters, waiting work, decisions, prices. @param now milliseconds since the epoch */
export function explainPolicy(policy: BurstPolicy, now: number, table: TableOptions = {}): string[] {
  const { metadata, spec, status } = policy;
  const { currency, hourly, monthly } = spec.budget;
  const said = ['Ready', 'DemandMet', 'Reconciled', 'Deleting'].flatMap((type) => {
    const condition = findCondition(status?.conditions, type);
    const action = actionOf(policy, condition);
    return condition
      ? [
          `  ${type}: ${condition.status} (${condition.reason}): ${oneLine(condition.message ?? '')}`,
          ...(action === undefined ? [] : [`      to do: ${action}`]),
        ]
      : [];
  });
  const spent = spentText(policy, now);
  const previous = (status?.spend?.previous ?? []).map(
    ({ month, amount }) => `${roundMoney(parseMoney(amount), 2)} ${status!.spend!.currency} in ${month}`,
  );
  const lines = [
    `BurstPolicy ${metadata.namespace}/${metadata.name}, Hub ${spec.hub}`,
    ...(said.length > 0 ? said : ['  the operator has not processed it yet']),
    `  Clusters: ${status?.clusterCount ?? 0} of ${limitsText(spec)}, ${status?.hourly ?? '0'} of ${hourly} ${currency} an hour`,
    ...(spec.maximumNodes === undefined ? [] : [`  Nodes: ${status?.nodeCount ?? 0} of ${spec.maximumNodes}`]),
    `  Spent: ${spent}${monthly === undefined ? '' : ` of ${monthly} ${currency} a month`}`,
    ...(previous.length > 0 ? [`  Before: ${previous.join(', ')}`] : []),
  ];
  if (status?.clusters?.length)
    lines.push(
      '',
      ...renderTable(
        CLUSTERS_HEADER,
        status.clusters.map((one) => standing(one.name, one.candidate, one)),
        table,
      ),
      ...grantLines(status.clusters, currency),
      ...staysLines(status.clusters),
    );
  if (status?.woken?.length)
    lines.push(
      '',
      ...renderTable(
        WOKEN_HEADER,
        status.woken.map((one) => standing(one.cluster, one.entry, one)),
        table,
      ),
    );
  if (status?.nodes?.length)
    lines.push(
      '',
      ...renderTable(
        NODES_HEADER,
        status.nodes.map((one) => [one.cluster, one.pool, String(one.count), one.hourly, ageOf(one.since, now)]),
        table,
      ),
    );
  if (status?.demand?.length)
    lines.push(
      '',
      ...renderTable(
        DEMAND_HEADER,
        status.demand.map((one) => [
          textCell(one.source),
          String(one.count),
          textCell([one.each.cpu, one.each.memory, one.each.gpu && `${one.each.gpu} GPU`].filter(Boolean).join(' ')),
          ageOf(one.since, now),
          one.state,
          textCell(one.message ?? ''),
        ]),
        table,
      ),
    );
  if (status?.candidates?.length)
    lines.push(
      '',
      ...renderTable(
        CANDIDATES_HEADER,
        status.candidates.map((one) => [one.name, one.hourly ?? '?', textCell(one.problem ?? '')]),
        table,
      ),
    );
  if (status?.decisions?.length)
    lines.push('', 'Decisions, the newest first', ...status.decisions.flatMap(decisionLines));
  return lines;

  function standing(cluster: string, of: string, { phase, hourly: price, since, idleSince }: Standing) {
    const idle = idleSince === undefined ? '' : ageOf(idleSince, now);
    return [cluster, of, { text: phase, tone: PHASES[phase] ?? 'busy' }, price, ageOf(since, now), idle];
  }

  function decisionLines(one: BurstDecision): string[] {
    const what = [one.dryRun && 'dry run', one.action, one.source, one.cluster ?? one.candidate];
    const price = priceText(one.action, one.hourly, currency);
    return [
      `  ${one.at}  ${what.filter(Boolean).map(String).map(oneLine).join(' ')}${price}: ${oneLine(one.why)}`,
      ...(one.alternatives ?? []).map(
        (other) =>
          `      not ${other.candidate}${other.hourly === undefined ? '' : ` (${other.hourly})`}: ${oneLine(other.whyNot ?? '')}`,
      ),
      ...outcomeLines(one),
    ];
  }
}

/** Limits on the number of clusters. */
const limitsText = ({ minimumClusters = 0, maximumClusters }: BurstPolicy['spec']): string =>
  minimumClusters > 0 ? `${maximumClusters} (at least ${minimumClusters})` : String(maximumClusters);

/** Outcome of a decision, once known. */
const outcomeLines = ({ outcome }: BurstDecision): string[] =>
  outcome ? [`      ${outcome.endedAt ? 'outcome' : 'so far'}: ${oneLine(outcome.message)}`] : [];

/** Hourly price or saving of a decision, as the end of its line. */
export const priceText = (action: BurstDecision['action'], hourly: string | undefined, currency: string): string =>
  hourly === undefined
    ? ''
    : ` ${action === 'Empty' || action === 'Cut' ? 'to save' : 'for'} ${hourly} ${currency} an hour`;

/** Granted nodes of clusters that Coppice sizes: what budgets count. */
const grantLines = (clusters: NonNullable<BurstPolicyStatus['clusters']>, currency: string): string[] =>
  clusters.flatMap(({ name, grantedNodes, counted }) =>
    grantedNodes === undefined
      ? []
      : [
          `  ${name} may have ${countText(grantedNodes, 'node')} (granted); the budget counts ${counted ?? '?'} ${currency} an hour`,
        ],
  );

/** Reasons why idle clusters stay. */
export const staysLines = (clusters: NonNullable<BurstPolicy['status']>['clusters'] = []): string[] =>
  clusters.flatMap(({ name, stays }) => (stays === undefined ? [] : [`  ${name} stays: ${oneLine(stays)}`]));

/** Header of the table of policies. */
export const POLICIES_HEADER = ['NAMESPACE', 'NAME', 'HUB', 'CLUSTERS', 'HOURLY', 'SPENT', 'DEMAND', 'WHY'];

export const policyRows = (policies: readonly BurstPolicy[], now: number) =>
  policies.map((policy) => {
    const { metadata, spec, status } = policy;
    const ready = isTrue(status?.conditions, 'Ready');
    const said = findCondition(status?.conditions, ready ? 'DemandMet' : 'Ready');
    const tone: Tone = said?.status === 'True' ? 'good' : ready ? 'busy' : 'bad';
    return [
      metadata.namespace ?? '',
      metadata.name,
      spec.hub,
      `${status?.clusterCount ?? 0}/${spec.maximumClusters}`,
      `${status?.hourly ?? '0'}/${spec.budget.hourly}`,
      spentText(policy, now),
      { text: said?.reason ?? 'Unknown', tone },
      textCell(said?.message ?? 'the operator has not processed it yet'),
    ];
  });

/** Money spent in the status's month, until now. */
function spentText({ status }: BurstPolicy, now: number): string {
  if (!status?.spend) return '0';
  const { amount, currency, asOf, month } = status.spend;
  const [year = 0, number = 0] = month.split('-').map(Number);
  const until = Math.min(now, Date.UTC(year, number));
  const cost = { hourly: status.hourly ?? '0', accrued: amount, currency, asOf };
  return `${roundMoney(accruedUntil(cost, new Date(until)), 2)} ${currency} in ${month}`;
}
