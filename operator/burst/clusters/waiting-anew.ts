import type { WaitingWork } from './model.ts';
import type { BurstReceipt } from './receipt.ts';

/**
 * Work that waits, where some of it waits anew: from when a cluster that came for it first had work. What its hub says a moment later may be what it
 * has just placed there, and would be bought twice. Pure.
 * @param receipts of all policies that may have bought for it
 */
export function waitingAnew<Work extends Pick<WaitingWork, 'source' | 'since'>>(
  waiting: readonly Work[],
  receipts: readonly BurstReceipt[],
): Work[] {
  const served = new Map<string, number>();
  for (const { purchases, wakes = [] } of receipts)
    for (const { sources, workedAt } of [...purchases, ...wakes])
      for (const source of workedAt === undefined ? [] : sources)
        served.set(source, Math.max(served.get(source) ?? 0, Date.parse(workedAt!)));
  return waiting.map((one) => {
    const since = served.get(one.source) ?? 0;
    return since > one.since ? { ...one, since } : one;
  });
}
