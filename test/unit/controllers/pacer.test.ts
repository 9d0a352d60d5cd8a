import { expect, it } from 'vitest';
import { Pacer, progressInterval } from '../../../operator/controllers/pacer.ts';
import { FakeClock } from '../kube/fake-clock.ts';

function testbed() {
  const clock = new FakeClock();
  const began = clock.now();
  const told: number[] = [];
  return { clock, told, pacer: new Pacer(clock, 5_000, () => told.push(clock.now() - began)) };
}

it('a pacer reports at once, then once per interval, and drops nothing in between', () => {
  const { clock, told, pacer } = testbed();
  for (let second = 0; second < 12; second++) {
    pacer.soon();
    clock.advance(1_000);
  }
  expect(told).toEqual([0, 5_000, 10_000]);
  clock.advance(60_000);
  expect(told).toEqual([0, 5_000, 10_000, 15_000]);
});

it('a pacer reports progress with growing intervals', () => {
  const clock = new FakeClock();
  const began = clock.now();
  const told: number[] = [];
  const pacer = new Pacer(clock, progressInterval, () => told.push(clock.now() - began));
  for (let second = 0; second < 110; second++) {
    pacer.soon();
    clock.advance(1_000);
  }
  expect(told.map((ms) => Math.floor(ms / 1000))).toEqual([0, 5, 12, 23, 40, 65, 95]);
});

it('a pacer waits for simultaneous changes, up to a limit', () => {
  const { clock, told, pacer } = testbed();
  pacer.soon(1_000);
  clock.advance(500);
  pacer.soon(1_000);
  clock.advance(10_000);
  expect(told).toEqual([1_000]);
});

it('a pacer does not repeat a report just written by another', () => {
  const { clock, told, pacer } = testbed();
  pacer.told();
  pacer.soon();
  clock.advance(4_000);
  pacer.told();
  clock.advance(4_000);
  expect(told).toEqual([]);
  clock.advance(1_000);
  expect(told).toEqual([9_000]);
});

it('a pacer reports nothing after its end', () => {
  const { clock, told, pacer } = testbed();
  pacer.soon(1_000);
  pacer.stop();
  clock.advance(60_000);
  expect(told).toEqual([]);
  expect(clock.timers).toBe(0);
});
