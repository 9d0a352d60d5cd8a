/** Histogram of waits. Times are kept to three digits, so its size is bounded however long a rehearsal is. */
export interface WaitHistogram {
  /** Milliseconds -> nodes. */
  counts: Map<number, number>;
  served: number;
  /** Exact, in milliseconds. */
  max: number;
}

export const emptyHistogram = (): WaitHistogram => ({ counts: new Map(), served: 0, max: 0 });

const threeDigits = (value: number): number => {
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, value))) - 2);
  return Math.round(value / step) * step;
};

export function addWait(histogram: WaitHistogram, ms: number, nodes: number): void {
  const rounded = threeDigits(ms);
  histogram.counts.set(rounded, (histogram.counts.get(rounded) ?? 0) + nodes);
  histogram.served += nodes;
  histogram.max = Math.max(histogram.max, ms);
}

/** The shortest wait that this share of the served nodes did not exceed; undefined when none was served. */
export function waitQuantile({ counts, served }: WaitHistogram, share: number): number | undefined {
  let left = Math.max(1, Math.ceil(served * share));
  for (const [ms, nodes] of [...counts].sort(([a], [b]) => a - b)) {
    left -= nodes;
    if (left <= 0) return ms;
  }
  return undefined;
}

export function mergeHistograms(histograms: readonly WaitHistogram[]): WaitHistogram {
  const merged = emptyHistogram();
  for (const { counts, max } of histograms) {
    for (const [ms, nodes] of counts) {
      merged.counts.set(ms, (merged.counts.get(ms) ?? 0) + nodes);
      merged.served += nodes;
    }
    merged.max = Math.max(merged.max, max);
  }
  return merged;
}

/** A pool's queue of requested nodes: first come, first served. */
export interface WaitingLine {
  runs: { since: number; nodes: number }[];
  waiting: number;
  /** Cancelled before a node was Ready. */
  cancelled: number;
}

export const emptyLine = (): WaitingLine => ({ runs: [], waiting: 0, cancelled: 0 });

/**
 * Updates the queue after a change of demand: `missing` nodes are lacking now. The latest requests are cancelled first.
 */
export function demandChanged(line: WaitingLine, missing: number, now: number): void {
  while (line.waiting > missing) {
    const last = line.runs.at(-1)!;
    const nodes = Math.min(last.nodes, line.waiting - missing);
    last.nodes -= nodes;
    line.waiting -= nodes;
    line.cancelled += nodes;
    if (last.nodes === 0) line.runs.pop();
  }
  join(line, missing, now);
}

/** Updates the queue after nodes became Ready or were lost: `missing` nodes are lacking now. */
export function nodesChanged(line: WaitingLine, missing: number, now: number, histogram: WaitHistogram): void {
  while (line.waiting > missing) {
    const first = line.runs[0]!;
    const nodes = Math.min(first.nodes, line.waiting - missing);
    first.nodes -= nodes;
    line.waiting -= nodes;
    addWait(histogram, now - first.since, nodes);
    if (first.nodes === 0) line.runs.shift();
  }
  join(line, missing, now);
}

function join(line: WaitingLine, missing: number, now: number): void {
  const nodes = missing - line.waiting;
  if (nodes <= 0) return;
  const last = line.runs.at(-1);
  if (last?.since === now) last.nodes += nodes;
  else line.runs.push({ since: now, nodes });
  line.waiting = missing;
}
