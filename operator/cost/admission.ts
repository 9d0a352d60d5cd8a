import type { CloudProfile } from '../api/cloudprofile.ts';
import type { ClusterSize } from '../api/cost.ts';
import type { ErrorCode } from '../api/errors.ts';
import { isForProject, METRICS, type Metric, type Quota } from '../api/quota.ts';
import {
  formatAmount,
  NOTHING,
  parseAmount,
  plus,
  type Usage,
  type UsageAmounts,
  usageGrowth,
  usageOf,
} from './usage.ts';

/** A cluster that shares quotas with the others of its namespace. */
export interface Claimant {
  /** `namespace/name`: breaks ties between clusters created in the same second. */
  readonly key: string;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly profile: CloudProfile | undefined;
  /** Size that it was granted and has not given back. */
  readonly held: ClusterSize | undefined;
  /** Size that it requests; absent: no more than it holds. */
  readonly asked: ClusterSize | undefined;
}

/** Why a quota refuses a cluster's requested size. */
export interface QuotaRefusal {
  /** Name of the quota. */
  readonly quota: string;
  readonly code: ErrorCode;
  /** Hard limit, used, requested and remaining amounts, with advice. */
  readonly message: string;
  /** The limits that are exceeded. */
  readonly metrics: readonly Metric[];
}

/** The enforced limits of a quota. */
export const quotaLimitsOf = (quota: Quota): Limit[] =>
  METRICS.flatMap((metric) => {
    const limit = quota.spec.metrics[metric];
    return limit === undefined ? [] : [{ metric, limit: parseAmount(metric, limit) }];
  });

/** Usage of all claimants together, money in the quota's currency. `unknown`: amounts left out, with their cluster. */
export function usageTogether(claimants: readonly Claimant[], currency: string): Pick<Usage, 'amounts' | 'unknown'> {
  let { amounts } = NOTHING;
  const unknown: string[] = [];
  for (const { key, held, profile } of claimants) {
    if (!held) continue;
    const usage = usageOf(held, profile, currency);
    amounts = plus(amounts, usage.amounts);
    for (const line of usage.unknown) unknown.push(`${key}: ${line}`);
  }
  return { amounts, unknown };
}

/** First come, first served. */
const byAge = (a: Claimant, b: Claimant): number =>
  a.createdAt === b.createdAt ? compare(a.key, b.key) : compare(a.createdAt, b.createdAt);
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/**
 * Refusals of a cluster's requested size; empty: it is granted and held from now on. Pure. Only growth is judged: a
 * cluster above a lowered quota stays and may shrink. Held sizes count, whether or not their machines exist, then the
 * requests of older waiting clusters that fit. So the result does not depend on the order of evaluation, and a large
 * cluster that does not fit blocks no smaller one.
 * @param others all other clusters of the namespace
 * @param quotas all quotas of the namespace
 */
export function admit(claimant: Claimant, others: readonly Claimant[], quotas: readonly Quota[]): QuotaRefusal[] {
  if (!claimant.asked) return [];
  const accounts = accountsOf([claimant, ...others], quotas);
  serve(
    others.filter((other) => byAge(other, claimant) < 0),
    accounts,
  );
  return accounts.flatMap((account) => refusals(account, changeOf(claimant, account)));
}

/** The waiting clusters of a namespace that fit, in order of service. */
export const nextInLine = (claimants: readonly Claimant[], quotas: readonly Quota[]): Claimant[] =>
  serve(claimants, accountsOf(claimants, quotas));

const accountsOf = (claimants: readonly Claimant[], quotas: readonly Quota[]): Account[] =>
  quotas.filter(isForProject).map((quota) => {
    const { amounts } = usageTogether(claimants, quota.spec.currency);
    return { quota, limits: quotaLimitsOf(quota), used: amounts, promised: NOTHING.amounts };
  });

/** Reserves each fitting request, the oldest first. */
function serve(claimants: readonly Claimant[], accounts: readonly Account[]): Claimant[] {
  const inTurn = claimants.filter(({ asked }) => asked).sort(byAge);
  return inTurn.filter((claimant) => {
    const changes = accounts.map((account) => changeOf(claimant, account));
    if (changes.some(({ exceeded, unpriced }) => unpriced || exceeded.length > 0)) return false;
    accounts.forEach((account, index) => {
      account.promised = plus(account.promised, changes[index]!.more);
    });
    return true;
  });
}

interface Limit {
  readonly metric: Metric;
  readonly limit: bigint;
}

interface Account {
  readonly quota: Quota;
  readonly limits: readonly Limit[];
  readonly used: UsageAmounts;
  /** Reserved for older waiting clusters that fit. */
  promised: UsageAmounts;
}

/** Effect of a cluster's request on one quota. */
interface Change {
  readonly more: UsageAmounts;
  readonly exceeded: readonly Limit[];
  /** Resources without a price could cost any amount: no limit of money admits their growth. */
  readonly unpriced: { readonly metric: Metric; readonly what: readonly string[] } | undefined;
}

function changeOf({ held, asked, profile }: Claimant, { quota, limits, used, promised }: Account): Change {
  const { currency } = quota.spec;
  const before = usageOf(held, profile, currency);
  const after = asked ? usageOf(asked, profile, currency) : before;
  const more = usageGrowth(before.amounts, after.amounts);
  const exceeded = limits.filter(
    ({ metric, limit }) => more[metric] > 0n && used[metric] + promised[metric] + more[metric] > limit,
  );
  const money = after.unpriced > before.unpriced ? limits.find(({ metric }) => metric.startsWith('cost.')) : undefined;
  return { more, exceeded, unpriced: money && { metric: money.metric, what: after.unknown } };
}

function refusals({ quota, used, promised }: Account, { more, exceeded, unpriced }: Change): QuotaRefusal[] {
  const { name } = quota.metadata;
  const { currency } = quota.spec;
  const lines = exceeded.map(({ metric, limit }) => {
    const show = (amount: bigint) =>
      `${formatAmount(metric, amount)}${metric.startsWith('cost.') ? ` ${currency}` : ''}`;
    const taken = used[metric] + promised[metric];
    const kept = promised[metric] > 0n ? ` (${show(promised[metric])} of it promised to clusters that are older)` : '';
    const left = limit > taken ? limit - taken : 0n;
    return `${metric} ${show(limit)}: ${show(taken)} used${kept}, ${show(more[metric])} more requested, ${show(left)} left`;
  });
  const told = `quota "${name}" allows ${lines.join(', and ')}. Ask for less, delete something, or have the quota raised; Coppice then continues by itself`;
  const metrics = exceeded.map(({ metric }) => metric);
  const refused: QuotaRefusal[] =
    lines.length > 0 ? [{ quota: name, code: 'ERR_INFRA_QUOTA_EXCEEDED', message: told, metrics }] : [];
  if (!unpriced) return refused;
  const message = `quota "${name}" limits ${unpriced.metric}, but these have no price in ${currency}: ${unpriced.what.join('; ')}. Choose others, or have prices added to the CloudProfile`;
  return [...refused, { quota: name, code: 'ERR_CONFIGURATION_PROBLEM', message, metrics: [unpriced.metric] }];
}
