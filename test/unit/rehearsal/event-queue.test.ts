import { expect, it } from 'vitest';
import { EventQueue } from '../../../operator/rehearsal/event-queue.ts';
import { draw } from '../../../providers/simulated/random.ts';

const event = (at: number, live = true) => ({ at, isLive: () => live, run: () => undefined });

it('EventQueue returns events by time, and those of one time in insertion order', () => {
  const queue = new EventQueue();
  const events = Array.from({ length: 500 }, (_, index) => event(Math.floor(20 * draw(1, index))));
  for (const one of events) queue.add(one);
  const sorted = events.map((one, index) => ({ one, index })).sort((a, b) => a.one.at - b.one.at || a.index - b.index);
  expect(queue.nextAt).toBe(0);
  for (const { one } of sorted) expect(queue.take()).toBe(one);
  expect([queue.take(), queue.nextAt]).toEqual([undefined, undefined]);
});

it('EventQueue does not grow with dead events', () => {
  const queue = new EventQueue();
  for (let index = 0; index < 100; index++) queue.add(event(1_000_000 - index));
  for (let index = 0; index < 50_000; index++) queue.add(event(index, false));
  expect(queue.size).toBeLessThan(3000);
  const times: number[] = [];
  for (let next = queue.take(); next; next = queue.take()) if (next.isLive()) times.push(next.at);
  expect(times).toEqual(Array.from({ length: 100 }, (_, index) => 999_901 + index));
});
