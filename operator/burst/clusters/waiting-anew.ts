import type { WaitingWork } from './model.ts';
import { haveCome, type Purchase } from './purchases.ts';
import { type BurstReceipt, restMs } from './receipt.ts';

/** However often something was bought for work of which nothing changes, it is tried again after so long. */
const LONGEST_MS = 3_600_000;

/** Something that a source was served by. */
interface Service {
  readonly sources: readonly string[];
  /** When it was decided; what was decided at once is one service. */
  readonly at: number;
  /** When it first had work. */
  readonly workedAt: number;
}

/**
 * Work that waits, where some of it was served: it waits anew from when a cluster that came for it first had work. What its hub says a moment later
 * may be what it has just placed there, and would be bought twice. Where the hub goes on to say the very same, it may do so for ever, or something
 * else may have taken the room: so it is served again, each time after twice as long. Pure.
 * @param receipts of all policies that may have bought for it
 */
export function waitingAnew<Work extends Pick<WaitingWork, 'source' | 'since'> & { readonly unchangedSince: number }>(
  waiting: readonly Work[],
  receipts: readonly BurstReceipt[],
): Work[] {
  const bySource = new Map<string, Service[]>();
  for (const one of receipts.flatMap(servicesOf))
    for (const source of one.sources) bySource.set(source, [...(bySource.get(source) ?? []), one]);
  return waiting.map((one) => {
    const services = bySource.get(one.source) ?? [];
    const since = Math.max(one.since, ...services.map(({ workedAt }) => workedAt));
    const repeated = services.filter(({ at }) => at >= one.unchangedSince);
    const times = new Set(repeated.map(({ at }) => at)).size;
    if (times === 0) return since > one.since ? { ...one, since } : one;
    const last = Math.max(...repeated.map(({ workedAt }) => workedAt));
    return { ...one, since, servedUntil: last + Math.min(LONGEST_MS, restMs(times)) };
  });
}

const servicesOf = ({ purchases }: BurstReceipt): Service[] => purchases.flatMap((one) => serviceOf(one) ?? []);

function serviceOf(one: Purchase): Service | undefined {
  const { sources } = one;
  const at = Date.parse(one.at);
  if (one.kind === 'nodes') return haveCome(one) ? { sources, at, workedAt: at } : undefined;
  if (one.work?.at === undefined) return undefined;
  const workedAt = Date.parse(one.work.at);
  switch (one.kind) {
    case 'cluster':
      // One that waited warm was ordered long before it was opened.
      return { sources, at: one.readyAt === undefined ? at : Date.parse(one.wokenAt ?? one.work.at), workedAt };
    case 'wake':
      return { sources, at, workedAt };
  }
}
