import { describe, expect, it } from 'vitest';
import {
  addWait,
  demandChanged,
  emptyHistogram,
  emptyLine,
  mergeHistograms,
  nodesChanged,
  waitQuantile,
} from '../../../operator/rehearsal/waits.ts';

describe('the queue for nodes', () => {
  it('serves first come first, and cancels the latest first', () => {
    const [line, waits] = [emptyLine(), emptyHistogram()];
    demandChanged(line, 3, 0);
    demandChanged(line, 5, 100);
    nodesChanged(line, 4, 200, waits);
    demandChanged(line, 3, 250);
    expect(line).toMatchObject({ waiting: 3, cancelled: 1 });
    nodesChanged(line, 0, 300, waits);
    expect([...waits.counts]).toEqual([
      [200, 2],
      [300, 2],
    ]);
    expect(line.runs).toEqual([]);
  });

  it('restarts the wait for a lost node', () => {
    const [line, waits] = [emptyLine(), emptyHistogram()];
    nodesChanged(line, 1, 1000, waits);
    nodesChanged(line, 0, 1700, waits);
    expect(waits).toMatchObject({ served: 1, max: 700 });
  });

  it('has quantiles to three digits, with any number of waits', () => {
    const waits = emptyHistogram();
    for (let ms = 0; ms < 1_000_000; ms += 7) addWait(waits, ms, 1);
    expect(waits.counts.size).toBeLessThan(4000);
    expect(Math.abs(waitQuantile(waits, 0.5)! - 500_000)).toBeLessThan(1000);
    expect(waits.max).toBe(999_999);
    expect(waitQuantile(emptyHistogram(), 0.5)).toBeUndefined();
    expect(mergeHistograms([waits, waits]).served).toBe(2 * waits.served);
  });
});
