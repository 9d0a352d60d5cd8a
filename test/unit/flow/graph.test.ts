import { describe, expect, it } from 'vitest';
import { Flow, progressOf, type Task, TaskDurations } from '../../../operator/flow/graph.ts';

const task = (id: string, after: string[] = [], more: Partial<Task> = {}): Task => ({
  id,
  title: `Doing ${id}`,
  after,
  run: async () => {},
  ...more,
});

describe('Flow', () => {
  it('runs independent tasks in parallel and the rest in order', async () => {
    const order: string[] = [];
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const flow = new Flow('demo', [
      task('a', [], {
        run: async () => {
          order.push('a');
          await gate;
        },
      }),
      task('b', [], {
        run: async () => {
          order.push('b');
          release();
        },
      }),
      task('c', ['a', 'b'], {
        run: async () => {
          order.push('c');
        },
      }),
    ]);
    const result = await flow.run();
    expect(order).toEqual(['a', 'b', 'c']);
    expect(result.failures).toEqual([]);
  });

  it('blocks only dependents of a failed task', async () => {
    const flow = new Flow('demo', [
      task('a', [], {
        run: async () => {
          throw new Error('boom');
        },
      }),
      task('b'),
      task('after-a', ['a']),
      task('after-b', ['b']),
    ]);
    const result = await flow.run();
    expect(result.failures.map((failure) => failure.taskID)).toEqual(['a']);
    expect(result.blocked).toEqual(['after-a']);
    expect([...result.succeeded].sort()).toEqual(['after-b', 'b']);
  });

  it('treats a skipped task as done', async () => {
    const ran: string[] = [];
    const result = await new Flow('demo', [
      task('a', [], {
        skip: true,
        run: async () => {
          ran.push('a');
        },
      }),
      task('b', ['a'], {
        run: async () => {
          ran.push('b');
        },
      }),
    ]).run();
    expect(ran).toEqual(['b']);
    expect(result.blocked).toEqual([]);
  });

  it('ends a task at its deadline with a message that names it', async () => {
    const result = await new Flow('demo', [
      task('slow', [], {
        timeoutMs: 5,
        run: (signal) =>
          new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
      }),
    ]).run();
    expect(String(result.failures[0]?.error)).toBe('TaskTimeout: Doing slow: not done after 0 s');
  });

  it('reports a task that looks first only once it has found work', async () => {
    const told: string[] = [];
    const tasks = [
      task('idle', [], { looksFirst: true }),
      task('busy', ['idle'], { looksFirst: true, run: async (_, acts) => acts?.() }),
      task('end', ['busy']),
    ];
    await new Flow('demo', tasks).run({ onProgress: ({ description }) => void told.push(description) });
    expect(told.filter((text, index) => text !== told[index - 1])).toEqual(['', 'Doing busy', 'Doing end', '']);
  });

  it('starts no task after cancellation', async () => {
    const abort = new AbortController();
    const result = await new Flow('demo', [task('a', [], { run: async () => abort.abort() }), task('b', ['a'])]).run({
      signal: abort.signal,
    });
    expect(result.blocked).toEqual(['b']);
  });

  it('rejects an impossible graph', () => {
    expect(() => new Flow('demo', [task('a'), task('a')])).toThrow('defined twice');
    expect(() => new Flow('demo', [task('a', ['b']), task('b')])).toThrow('needs b');
  });
});

describe('progressOf', () => {
  it('weighs tasks by duration and follows the longest chain', () => {
    const tasks = [
      task('short', [], { expectedMs: 100 }),
      task('long', [], { expectedMs: 900 }),
      task('end', ['long'], { expectedMs: 1000 }),
    ];
    const progress = progressOf(tasks, new Set(['short']), new Map([['long', 0]]), new TaskDurations(), 450);
    expect(progress).toEqual({ percent: 27, running: ['long'], description: 'Doing long', remainingMs: 1450 });
  });

  it('never shows an overdue task as finished', () => {
    const progress = progressOf(
      [task('a', [], { expectedMs: 100 })],
      new Set(),
      new Map([['a', 0]]),
      new TaskDurations(),
      10_000,
    );
    expect(progress.percent).toBeLessThan(100);
  });
});
