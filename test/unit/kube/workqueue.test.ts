import { describe, expect, it } from 'vitest';
import { WorkQueue, type WorkQueueOptions } from '../../../operator/kube/workqueue.ts';
import { FakeClock } from './fake-clock.ts';

function setUp(options: WorkQueueOptions = {}) {
  const clock = new FakeClock();
  const queue = new WorkQueue({ clock, random: () => 1 - Number.EPSILON, ...options });
  /** Takes and finishes everything that waits; the keys in order. */
  const drain = async () => {
    const keys: string[] = [];
    while (queue.depth > 0) {
      const key = (await queue.get())!;
      keys.push(key);
      queue.done(key);
    }
    return keys;
  };
  return { clock, queue, drain };
}

describe('WorkQueue order and deduplication', () => {
  const cases: { name: string; add: string[]; expected: string[] }[] = [
    { name: 'first in, first out within a namespace', add: ['n/a', 'n/b', 'n/c'], expected: ['n/a', 'n/b', 'n/c'] },
    { name: 'a key is in line once', add: ['n/a', 'n/b', 'n/a', 'n/a'], expected: ['n/a', 'n/b'] },
    {
      name: 'namespaces take turns, however long one line is',
      add: ['big/1', 'big/2', 'big/3', 'big/4', 'small/1', 'other/1', 'small/2'],
      expected: ['big/1', 'small/1', 'other/1', 'big/2', 'small/2', 'big/3', 'big/4'],
    },
    { name: 'cluster-scoped keys are one line', add: ['a', 'b', 'n/a'], expected: ['a', 'n/a', 'b'] },
  ];
  for (const { name, add, expected } of cases) {
    it(name, async () => {
      const { queue, drain } = setUp();
      for (const key of add) queue.add(key);
      expect(queue.depth).toBe(new Set(add).size);
      expect(await drain()).toEqual(expected);
      expect(queue.depth).toBe(0);
    });
  }

  it('a namespace that returns waits for its turn', async () => {
    const { queue } = setUp();
    for (const key of ['a/1', 'b/1', 'b/2']) queue.add(key);
    expect(await queue.get()).toBe('a/1');
    queue.add('a/2');
    expect([await queue.get(), await queue.get(), await queue.get()]).toEqual(['b/1', 'a/2', 'b/2']);
  });

  it('order holds over a hundred thousand keys', async () => {
    const { queue, drain } = setUp();
    const keys = Array.from({ length: 100_000 }, (_, index) => `n/${index}`);
    for (const key of keys) queue.add(key);
    // Joined: the matcher needs seconds for so many elements.
    expect((await drain()).join()).toBe(keys.join());
  });
});

describe('WorkQueue perNamespace', () => {
  it('leaves workers to other namespaces, however long the keys of one take', async () => {
    const { queue } = setUp({ perNamespace: 2 });
    for (const key of ['big/1', 'big/2', 'big/3', 'big/4', 'small/1']) queue.add(key);
    expect([await queue.get(), await queue.get(), await queue.get()]).toEqual(['big/1', 'small/1', 'big/2']);
    const waits = queue.get();
    queue.add('other/1');
    expect(await waits).toBe('other/1');
    expect(queue.depth).toBe(2);
  });

  it('gives a waiting worker the next key as soon as one of the namespace is done', async () => {
    const { queue } = setUp({ perNamespace: 1 });
    for (const key of ['a/1', 'a/2', 'a/3']) queue.add(key);
    expect(await queue.get()).toBe('a/1');
    const [second, third] = [queue.get(), queue.get()];
    queue.done('a/1');
    expect(await second).toBe('a/2');
    queue.add('a/2');
    queue.done('a/2');
    expect(await third).toBe('a/3');
    queue.done('a/3');
    expect(await queue.get()).toBe('a/2');
    queue.done('a/2');
    expect([queue.depth, queue.processing]).toEqual([0, 0]);
  });
});

describe('a WorkQueue key in work', () => {
  it('is not handed out again before it is done, then once however often it was added', async () => {
    const { queue, drain } = setUp();
    queue.add('n/a');
    expect(await queue.get()).toBe('n/a');
    queue.add('n/a');
    queue.add('n/a');
    expect(queue.depth).toBe(0);
    expect(queue.processing).toBe(1);
    queue.done('n/a');
    expect(queue.processing).toBe(0);
    expect(await drain()).toEqual(['n/a']);
    expect(await drain()).toEqual([]);
  });

  it('is handed to a worker that already waits', async () => {
    const { queue } = setUp();
    const first = queue.get();
    const second = queue.get();
    queue.add('n/a');
    queue.add('n/b');
    expect(await Promise.all([first, second])).toEqual(['n/a', 'n/b']);
    expect(queue.processing).toBe(2);
  });

  it('may be reported done twice without harm', async () => {
    const { queue } = setUp();
    queue.add('n/a');
    await queue.get();
    queue.done('n/a');
    queue.done('n/a');
    expect(queue.processing).toBe(0);
  });
});

describe('WorkQueue delays', () => {
  it('end in order of time, ties in order of arrival', () => {
    const { clock, queue } = setUp();
    queue.addAfter('n/late', 300);
    queue.addAfter('n/b', 100);
    queue.addAfter('n/c', 100);
    queue.addAfter('n/a', 50);
    expect(queue.delayed).toBe(4);
    clock.advance(99);
    expect(queue.depth).toBe(1);
    clock.advance(1);
    expect(queue.depth).toBe(3);
    clock.advance(200);
    expect(queue.depth).toBe(4);
    expect(queue.delayed).toBe(0);
    expect(clock.timers).toBe(0);
  });

  const shortest: { name: string; delays: number[]; ripeAt: number }[] = [
    { name: 'a longer one after a shorter one', delays: [100, 500], ripeAt: 100 },
    { name: 'a shorter one after a longer one', delays: [500, 100], ripeAt: 100 },
    { name: 'zero is now', delays: [0], ripeAt: 0 },
    { name: 'negative is now', delays: [-5], ripeAt: 0 },
    { name: 'not a number is now', delays: [Number.NaN], ripeAt: 0 },
  ];
  for (const { name, delays, ripeAt } of shortest) {
    it(`the shortest counts: ${name}`, async () => {
      const { clock, queue, drain } = setUp();
      for (const delay of delays) queue.addAfter('n/a', delay);
      if (ripeAt > 0) {
        clock.advance(ripeAt - 1);
        expect(queue.depth).toBe(0);
        clock.advance(1);
      }
      expect(await drain()).toEqual(['n/a']);
      clock.advance(10_000);
      expect(await drain()).toEqual([]);
    });
  }

  it('do not hold up an add', async () => {
    const { clock, queue, drain } = setUp();
    queue.addAfter('n/a', 1000);
    queue.add('n/a');
    expect(await drain()).toEqual(['n/a']);
    clock.advance(1000);
    expect(await drain()).toEqual(['n/a']);
  });

  it('that end during the work hand the key out after it', async () => {
    const { clock, queue, drain } = setUp();
    queue.add('n/a');
    await queue.get();
    queue.addAfter('n/a', 10);
    clock.advance(10);
    expect(queue.depth).toBe(0);
    queue.done('n/a');
    expect(await drain()).toEqual(['n/a']);
  });

  it('of many keys in random order end in time order', async () => {
    const { clock, queue, drain } = setUp();
    let seed = 7;
    const delays = Array.from({ length: 2000 }, () => {
      seed = (seed * 48271) % 2147483647;
      return 1 + (seed % 10_000);
    });
    for (const [index, delay] of delays.entries()) queue.addAfter(`n/${index}`, delay);
    const expected = delays
      .map((delay, index) => ({ delay, index }))
      .sort((a, b) => a.delay - b.delay || a.index - b.index);
    clock.advance(10_000);
    expect(await drain()).toEqual(expected.map(({ index }) => `n/${index}`));
  });
});

describe('WorkQueue back-off', () => {
  const cases: { name: string; random: number; delays: number[] }[] = [
    { name: 'doubles up to the limit', random: 1, delays: [100, 200, 400, 800, 1000, 1000] },
    { name: 'jitter never takes more than half', random: 0, delays: [50, 100, 200, 400, 500, 500] },
    { name: 'jitter lies between', random: 0.5, delays: [75, 150, 300, 600, 750, 750] },
  ];
  for (const { name, random, delays } of cases) {
    it(name, () => {
      const { queue } = setUp({ baseDelayMs: 100, maxDelayMs: 1000, random: () => random });
      expect(delays.map(() => queue.retry('n/a'))).toEqual(delays);
      expect(queue.failures('n/a')).toBe(delays.length);
    });
  }

  it('counts failures for each key alone, and resets when the key succeeds', () => {
    const { queue } = setUp({ baseDelayMs: 100, random: () => 1 });
    queue.retry('n/a');
    expect(queue.retry('n/a')).toBe(200);
    expect(queue.retry('n/b')).toBe(100);
    queue.forget('n/a');
    expect(queue.retry('n/a')).toBe(100);
  });

  it('survives thousands of failures', () => {
    const { queue } = setUp({ maxDelayMs: 1000, random: () => 1 });
    for (let failure = 0; failure < 2000; failure++) queue.retry('n/a');
    expect(queue.retry('n/a')).toBe(1000);
  });
});

describe('WorkQueue shutdown', () => {
  it('drops keys in line, frees waiting workers and awaits work in progress', async () => {
    const { clock, queue } = setUp();
    queue.add('n/a');
    queue.add('n/b');
    queue.addAfter('n/c', 10);
    await queue.get();
    let ended = false;
    const stopped = queue.shutdown().then(() => {
      ended = true;
    });
    expect(await queue.get()).toBeUndefined();
    await Promise.resolve();
    expect(ended).toBe(false);
    queue.add('n/a');
    queue.done('n/a');
    await stopped;
    clock.advance(1000);
    expect(queue.depth + queue.delayed + queue.processing).toBe(0);
    expect(clock.timers).toBe(0);
  });

  it('frees a worker that waits', async () => {
    const { queue } = setUp();
    const taken = queue.get();
    await queue.shutdown();
    expect(await taken).toBeUndefined();
  });
});

it('the observer hears how long keys wait for a worker and how long work on them takes', async () => {
  const seen: unknown[] = [];
  const observer = {
    added: (key: string) => seen.push(['added', key]),
    taken: (key: string, ms: number) => seen.push(['taken', key, ms]),
    done: (key: string, ms: number) => seen.push(['done', key, ms]),
    retried: (key: string, failures: number, ms: number) => seen.push(['retried', key, failures, ms]),
  };
  const { clock, queue } = setUp({ observer, baseDelayMs: 100, random: () => 1 });
  queue.add('n/a');
  queue.add('n/a');
  clock.advance(30);
  await queue.get();
  queue.add('n/a');
  queue.retry('n/a');
  clock.advance(5);
  queue.done('n/a');
  clock.advance(2);
  await queue.get();
  expect(seen).toEqual([
    ['added', 'n/a'],
    ['taken', 'n/a', 30],
    ['added', 'n/a'],
    ['retried', 'n/a', 1, 100],
    ['done', 'n/a', 5],
    ['taken', 'n/a', 2],
  ]);
});
