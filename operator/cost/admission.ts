import type { CloudProfile } from '../api/cloudprofile.ts';
import type { ClusterSize } from '../api/cost.ts';
import type { ErrorCode } from '../api/errors.ts';
import { isForProject, METRICS, type Metric, type Quota } from '../api/quota.ts';
import {
  type Amounts,
  addUsage,
  formatAmount,
  growth,
  NOTHING,
  parseAmount,
  plus,
  type Usage,
  usageOf,
} from './usage.ts';

/** A cluster that quotas of its namespace are shared with. */
export interface Claimant {
  /** `namespace/name`: decides between clusters that were made in the same second. */
  readonly key: string;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly profile: CloudProfile | undefined;
  /** What it was granted and has not given back. */
  readonly held: ClusterSize | undefined;
  /** What it asks for; absent: no more than it holds. */
  readonly asked: ClusterSize | undefined;
}

/** Why a quota does not let a cluster be as large as it asks. */
export interface Refusal {
  /** Name of the quota. */
  readonly quota: string;
  readonly code: ErrorCode;
  /** What is allowed, used, asked and left, and what to do. */
  readonly message: string;
}

/** The limits of a quota that are acted on. */
export const limitsOf = (quota: Quota): { metric: Metric; limit: bigint }[] =>
  METRICS.flatMap((metric) => {
    const limit = quota.spec.metrics[metric];
    return limit === undefined ? [] : [{ metric, limit: parseAmount(metric, limit as string | number) }];
  });

/** What all of them hold together, in the currency of a quota. */
export const usageTogether = (claimants: readonly Claimant[], currency: string): Usage =>
  claimants.map(({ key, held, profile }) => usageOf(key, held, profile, currency)).reduce(addUsage, NOTHING);

/** First come, first served. */
const byAge = (a: Claimant, b: Claimant): number =>
  a.createdAt === b.createdAt ? compare(a.key, b.key) : compare(a.createdAt, b.createdAt);
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/**
 * Why the cluster may not be as large as it asks; empty: it may, and holds it from this moment on. Only growth is judged: a
 * cluster above a lowered quota stays as it is, and may shrink. What clusters hold counts, whether or not it is there yet,
 * and before it what is about to be granted to older clusters that wait and fit: so the order in which clusters are
 * looked at does not matter, and a large one that does not fit keeps nobody waiting behind it.
 * @param others all other clusters of the namespace
 * @param quotas all quotas of the namespace
 */
export function admit(claimant: Claimant, others: readonly Claimant[], quotas: readonly Quota[]): Refusal[] {
  const enforced = quotas.filter(isForProject);
  if (enforced.length === 0 || !claimant.asked) return [];
  const accounts = enforced.map((quota): Account => {
    const used = usageTogether([claimant, ...others], quota.spec.currency).amounts;
    return { quota, used, promised: NOTHING.amounts };
  });
  const earlier = others.filter((other) => other.asked && byAge(other, claimant) < 0).sort(byAge);
  for (const other of earlier) {
    if (accounts.some((account) => refusals(account, other).length > 0)) continue;
    for (const account of accounts) account.promised = plus(account.promised, growthOf(other, account.quota).more);
  }
  return accounts.flatMap((account) => refusals(account, claimant));
}

interface Account {
  readonly quota: Quota;
  readonly used: Amounts;
  /** To older clusters that wait and fit. */
  promised: Amounts;
}

function growthOf({ key, held, asked, profile }: Claimant, { spec }: Quota) {
  const before = usageOf(key, held, profile, spec.currency);
  const after = asked ? usageOf(key, asked, profile, spec.currency) : before;
  return { before, after, more: growth(before.amounts, after.amounts) };
}

function refusals({ quota, used, promised }: Account, claimant: Claimant): Refusal[] {
  const { name } = quota.metadata;
  const { before, after, more } = growthOf(claimant, quota);
  const limits = limitsOf(quota);
  const exceeded = limits.flatMap(({ metric, limit }): Refusal[] => {
    const taken = used[metric] + promised[metric];
    if (more[metric] === 0n || taken + more[metric] <= limit) return [];
    const show = (amount: bigint) => formatAmount(metric, amount) + unit(metric, quota);
    const kept = promised[metric] > 0n ? ` (${show(promised[metric])} of it promised to clusters that are older)` : '';
    const left = limit > taken ? limit - taken : 0n;
    const message = `quota "${name}" allows ${metric} ${show(limit)}: ${show(taken)} used${kept}, ${show(more[metric])} more asked for, ${show(left)} left; ask for less, free something or have the quota raised, then it goes on by itself`;
    return [{ quota: name, code: 'ERR_INFRA_QUOTA_EXCEEDED', message }];
  });
  // What has no price could cost anything: a limit of money would be none.
  const money = limits.find(({ metric }) => metric.startsWith('cost.'));
  if (money && after.unpriced > before.unpriced) {
    const message = `quota "${name}" limits ${money.metric}, and not all that is asked for has a price in ${quota.spec.currency} (${after.unknown.join('; ')}); ask for what has one, or have the price added to the CloudProfile`;
    return [...exceeded, { quota: name, code: 'ERR_CONFIGURATION_PROBLEM', message }];
  }
  return exceeded;
}

const unit = (metric: Metric, quota: Quota): string => (metric.startsWith('cost.') ? ` ${quota.spec.currency}` : '');
