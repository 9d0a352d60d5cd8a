import { existsSync } from 'node:fs';
import { expect, it } from 'vitest';
import { inLanes, QUIET } from '../../kit/lanes.ts';
import { idle, until } from '../../kit/turns.ts';

/** Files that end when a test says so, in gardens that are called by numbers. `broken`: those that do not come up. */
function testbed({ broken = [] as number[] } = {}) {
  const said: string[] = [];
  const ends = new Map<string, () => void>();
  let gardens = 0;
  return {
    said,
    running: () => [...ends.keys()],
    end: (file: string) => {
      ends.get(file)!();
      ends.delete(file);
    },
    work: {
      lanes: 2,
      async open() {
        const garden = ++gardens;
        if (broken.includes(garden)) throw new Error(`${garden} is broken`);
        said.push(`${garden} up`);
        return { garden, takeDown: async () => void said.push(`${garden} down`) };
      },
      async run(file: string, garden: number) {
        said.push(`${file} in ${garden}`);
        await new Promise<void>((resolve) => ends.set(file, resolve));
        return !file.startsWith('overdue');
      },
      fail: (message: string) => void said.push(message),
    },
  };
}

it('lanes run two files at once in order, one per garden', async () => {
  const { work, said, end, running } = testbed();
  const all = inLanes(['long', 'middle', 'short'], work);
  await until(() => running().length === 2, 'two to run');
  expect(said).toEqual(['1 up', 'long in 1', '2 up', 'middle in 2']);
  end('middle');
  await until(() => running().includes('short'), 'the last to run');
  end('short');
  await until(() => said.includes('2 down'), 'a garden to go when nothing waits for it');
  end('long');
  await all;
  expect(said.slice(4)).toEqual(['short in 2', '2 down', '1 down']);
});

it('lanes run all files in one garden, and report it, when the other fails to start', async () => {
  const { work, said, end, running } = testbed({ broken: [1] });
  const all = inLanes(['long', 'short'], work);
  for (const file of ['long', 'short']) {
    await until(() => running().includes(file), `${file} to run`);
    end(file);
  }
  await all;
  expect(said).toEqual(['no garden: 1 is broken', '2 up', 'long in 2', 'short in 2', '2 down']);
});

it('lanes run files that need a quiet machine last and alone', async () => {
  const { work, said, end, running } = testbed();
  const other = Promise.withResolvers<void>();
  const all = inLanes(['idle', 'long', 'short'], { ...work, quiet: ['idle'], calm: other.promise });
  await until(() => running().length === 2, 'two to run');
  for (const file of ['short', 'long']) end(file);
  await until(() => said.includes('2 down'), 'one garden to go');
  await idle();
  expect(running()).toEqual([]);
  other.resolve();
  await until(() => running().includes('idle'), 'the last to run');
  end('idle');
  await all;
  expect(said.slice(4)).toEqual(['2 down', 'idle in 1', '1 down']);
});

it('lanes start a file when its tools are built, and run other files meanwhile', async () => {
  const { work, said, end, running } = testbed();
  const made = Promise.withResolvers<void>();
  const ready = new Map([
    ['late', made.promise],
    ['long', Promise.resolve()],
  ]);
  const all = inLanes(['late', 'long', 'short'], { ...work, ready });
  await until(() => running().length === 2, 'two to run');
  expect(said).toEqual(['1 up', 'long in 1', '2 up', 'short in 2']);
  end('short');
  await idle();
  expect(running()).toEqual(['long']);
  made.resolve();
  await until(() => running().includes('late'), 'it to run');
  for (const file of ['late', 'long']) end(file);
  await all;
  expect(said).toContain('late in 2');
});

it('lanes run such a file in order when its tools exist', async () => {
  const { work, said, end, running } = testbed();
  const all = inLanes(['late', 'long', 'short'], { ...work, ready: new Map([['late', Promise.resolve()]]) });
  await until(() => running().length === 2, 'two to run');
  expect(said).toEqual(['1 up', 'late in 1', '2 up', 'long in 2']);
  for (const file of ['late', 'long']) end(file);
  await until(() => running().includes('short'), 'the last to run');
  end('short');
  await all;
});

it('all files listed as quiet exist', () => {
  expect(QUIET.filter((file) => !existsSync(file))).toEqual([]);
});

it('lanes report a garden that fails to stop, and start no more gardens than files', async () => {
  const { work, said } = testbed();
  const garden = { garden: 1, takeDown: () => Promise.reject(new Error('a mount is left')) };
  await inLanes(['only'], { ...work, open: async () => garden, run: async () => true });
  expect(said).toEqual(['a mount is left']);
});

it('lanes replace a garden in which a file was terminated without cleanup', async () => {
  const { work, said, end, running } = testbed();
  const all = inLanes(['overdue', 'next', 'overdue too'], { ...work, lanes: 1 });
  for (const file of ['overdue', 'next', 'overdue too']) {
    await until(() => running().includes(file), `${file} to run`);
    end(file);
  }
  await all;
  expect(said).toEqual(['1 up', 'overdue in 1', '1 down', '2 up', 'next in 2', 'overdue too in 2', '2 down']);
});
