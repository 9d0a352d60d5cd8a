import { describe, expect, it } from 'vitest';
import type { Log } from '../../../operator/kube/log.ts';
import { Registry } from '../../../operator/kube/metrics.ts';
import { TenantSteps, TURN_MS } from '../../../operator/kube/tenant-steps.ts';
import { partOf } from '../../kit/builders/partial.ts';

const of = (namespace: string, step = 'test') => ({ namespace, cluster: 'demo', step });
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Steps on a clock of their own, with what they log. */
function testbed() {
  const clock = { ms: 0 };
  const lines: object[] = [];
  const metrics = new Registry();
  const steps = new TenantSteps(() => clock.ms);
  const log = partOf<Log>({ warn: (fields: object) => lines.push(fields) });
  steps.reportTo(log, metrics);
  return { clock, lines, metrics, steps };
}

describe('TenantSteps', () => {
  it('yields the event loop after 50 ms, and resumes in the next turn', async () => {
    const { clock, steps } = testbed();
    const done: number[] = [];
    const all = steps.each(
      of('a'),
      Array.from({ length: 12 }, (_, index) => index),
      (item) => {
        clock.ms += 10;
        done.push(item);
      },
    );
    await nextTurn();
    expect(done).toHaveLength(TURN_MS / 10);
    await nextTurn();
    expect(done).toHaveLength((2 * TURN_MS) / 10);
    await all;
    expect(done).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  });

  it('alternates namespaces: much work of one does not delay the others', async () => {
    const { clock, steps } = testbed();
    const done: string[] = [];
    const work = (namespace: string, count: number) =>
      steps.each(of(namespace), Array(count).fill(namespace), (item: string) => {
        clock.ms += 10;
        done.push(item);
      });
    const greedy = [work('greedy', 100), work('greedy', 100)];
    const modest = work('modest', 2);
    await modest;
    expect(done.filter((one) => one === 'greedy').length).toBeLessThan(20);
    await Promise.all(greedy);
    expect(done).toHaveLength(202);
  });

  it('logs and counts a stretch that is too long, with its namespace, once a minute', async () => {
    const { clock, lines, metrics, steps } = testbed();
    const slow = () =>
      steps.measure(of('mallory', 'certificates'), () => {
        clock.ms += 200;
      });
    slow();
    slow();
    expect(lines).toEqual([{ namespace: 'mallory', cluster: 'demo', step: 'certificates', ms: 200 }]);
    expect(await metrics.render()).toContain(
      'coppice_tenant_step_overruns_total{step="certificates",namespace="mallory"} 2',
    );
    clock.ms += 60_000;
    slow();
    expect(lines).toHaveLength(2);
  });

  it('logs nothing for work that pauses in time', async () => {
    const { clock, lines, steps } = testbed();
    await steps.each(of('a'), Array(100).fill(0), () => {
      clock.ms += 40;
    });
    expect(lines).toEqual([]);
  });

  it('rejects with the error of the work, and runs other jobs', async () => {
    const { steps } = testbed();
    const failing = steps.each(of('a'), [1], () => {
      throw new Error('no');
    });
    const other = steps.each(of('a'), [1], () => {});
    await expect(failing).rejects.toThrow('no');
    await other;
  });

  it('ends work whose signal aborts, and runs its finally blocks', async () => {
    const { clock, steps } = testbed();
    const stop = new AbortController();
    let undone = false;
    function* work() {
      try {
        for (;;) {
          clock.ms += 10;
          yield;
        }
      } finally {
        undone = true;
      }
    }
    const running = steps.run(of('a'), work(), stop.signal);
    await nextTurn();
    stop.abort(new Error('stopping'));
    await expect(running).rejects.toThrow('stopping');
    expect(undone).toBe(true);
  });

  it('resolves with the result of the work', async () => {
    const { steps } = testbed();
    function* sum() {
      yield;
      return 3;
    }
    expect(await steps.run(of('a'), sum())).toBe(3);
  });
});
