/** What is told of a series of measurements. */
export interface Summary {
  count: number;
  minimum: number;
  median: number;
  maximum: number;
}

/** Undefined for an empty series. The median of an even number of values lies halfway between the two in the middle. */
export function summarize(values: readonly number[]): Summary | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  const count = sorted.length;
  const [minimum, maximum] = [sorted[0], sorted.at(-1)];
  if (minimum === undefined || maximum === undefined) return undefined;
  const median = (sorted[Math.floor((count - 1) / 2)]! + sorted[Math.ceil((count - 1) / 2)]!) / 2;
  return { count, minimum, median, maximum };
}

/** A limit that a figure should not exceed; in the figure's unit. */
export interface Bar {
  median?: number;
  maximum?: number;
}

/** Undefined where there is nothing to compare. */
export function isMet(summary: Summary | undefined, bar: Bar | undefined): boolean | undefined {
  if (!summary || !bar) return undefined;
  return summary.median <= (bar.median ?? Infinity) && summary.maximum <= (bar.maximum ?? Infinity);
}
