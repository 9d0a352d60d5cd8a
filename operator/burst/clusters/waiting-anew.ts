import type { WaitingWork } from './model.ts';
import { haveCome, type Purchase } from './purchases.ts';
import { type BurstReceipt, restMs } from './receipt.ts';

/** Unchanged work is served again after this time at the latest. */
const LONGEST_MS = 3_600_000;

/** A purchase that served a source. */
interface Service {
  readonly sources: readonly string[];
  /** When it was decided; simultaneous decisions are one service. */
  readonly at: number;
  /** When it first had work. */
  readonly workedAt: number;
}

/**
 * Waiting work with adjusted start times: after a service, the wait restarts when the cluster first had work. A hub's
 * report shortly after may show work that it has just placed, which would be bought twice. If the hub keeps reporting
 * the same, which may be for ever or because other work took the room, the work is served again, each time after twice
 * as long. Pure.
 * @param receipts of all policies that may have served it
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
      // A warm cluster was ordered long before it was opened.
      return { sources, at: one.readyAt === undefined ? at : Date.parse(one.wokenAt ?? one.work.at), workedAt };
    case 'wake':
      return { sources, at, workedAt };
  }
}
