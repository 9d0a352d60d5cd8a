import { expect, it } from 'vitest';
import { afterLoopTime, loopTimeout } from '../../../operator/kube/clock.ts';

/** Timers that fire one at a time, as in an event loop that is busy between any two of them for as long as you like. */
function busyLoop() {
  let due: { ms: number; run: () => void } | undefined;
  let asked = 0;
  return {
    clock: {
      after(ms: number, run: () => void) {
        due = { ms, run };
        asked += ms;
        return () => {
          due = undefined;
        };
      },
    },
    /** The loop comes to its timers once. */
    turn() {
      const { run } = due ?? {};
      due = undefined;
      run?.();
    },
    isIdle: () => due === undefined,
    askedMs: () => asked,
  };
}

it.each([200, 2_000, 10_000])('afterLoopTime counts a blocked event loop of any length as at most %i ms', (ms) => {
  const loop = busyLoop();
  let isOver = false;
  afterLoopTime(ms, () => (isOver = true), loop.clock);
  loop.turn();
  expect(isOver).toBe(false);
  while (!loop.isIdle()) loop.turn();
  expect(isOver).toBe(true);
  expect(loop.askedMs()).toBeCloseTo(ms);
});

it('afterLoopTime can be cancelled at any time', () => {
  const loop = busyLoop();
  let isOver = false;
  const cancel = afterLoopTime(1000, () => (isOver = true), loop.clock);
  loop.turn();
  cancel();
  loop.turn();
  expect([loop.isIdle(), isOver]).toEqual([true, false]);
});

it('loopTimeout aborts with a TimeoutError, unless done was called', async () => {
  const late = loopTimeout(20);
  const done = loopTimeout(20);
  done.done();
  await new Promise((resolve) => late.signal.addEventListener('abort', resolve));
  expect(late.signal.reason).toMatchObject({ name: 'TimeoutError' });
  expect(done.signal.aborted).toBe(false);
});
