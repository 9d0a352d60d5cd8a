/** How many end-to-end files run at once: each waits for machines and control planes most of the time. */
export const LANES = 2;

/** Files that measure what a garden does while nothing happens: other work on the machine would be measured as well. */
export const QUIET: readonly string[] = ['test/e2e/idle.test.ts'];

/** A garden that was brought up, for files that come one after the other. */
export interface Lane<Garden> {
  garden: Garden;
  takeDown?: (() => Promise<void>) | undefined;
}

interface Work<Garden> {
  /** Brings a garden up. The second is asked for while the first is worked in. */
  open: () => Promise<Lane<Garden>>;
  /** Runs a file in a garden; must not reject. @returns whether it came to its end, and so has tidied up */
  run: (file: string, garden: Garden) => Promise<boolean>;
  /** Is told of a garden that does not come up, or not down. */
  fail: (message: string) => void;
  /** How many gardens there are at most. */
  lanes?: number;
  /** Files that run when no other does any more, in the garden that is left. */
  quiet?: readonly string[];
  /** Resolves when nothing else is on that `quiet` files would notice. */
  calm?: Promise<unknown> | undefined;
  /** When files may begin that wait for something; others go before them until then. None may reject. */
  ready?: ReadonlyMap<string, Promise<unknown>>;
}

/**
 * Runs each file once, in the order given, as many at once as there are lanes. Each lane has a garden to itself, so that a file may restart
 * the operator, change the seed or count all that there is without another one seeing it. After a file that was ended the garden is made
 * anew: clusters that nobody waits for any more would slow all that follow. `quiet` files come last, one after the other. Files that no
 * garden came up for are not run.
 */
export async function inLanes<Garden>(
  files: readonly string[],
  { open, run, fail, lanes = LANES, quiet = [], calm = Promise.resolve(), ready = new Map() }: Work<Garden>,
): Promise<void> {
  const unready = new Map(files.flatMap((file) => (ready.has(file) ? [[file, ready.get(file)!]] : [])));
  for (const [file, promise] of unready) void promise.then(() => unready.delete(file));
  const take = (queue: string[]): string | undefined => {
    const index = queue.findIndex((file) => !unready.has(file));
    return index < 0 ? undefined : queue.splice(index, 1)[0];
  };
  const waiting = files.filter((file) => !quiet.includes(file));
  const last = files.filter((file) => quiet.includes(file));
  let atWork = 0;
  const openOne = () =>
    open().catch((error: Error) => {
      fail(`no garden: ${error.message}`);
      return undefined;
    });
  const work = async (first: Lane<Garden>) => {
    let lane: Lane<Garden> | undefined = first;
    const close = async () => lane?.takeDown?.().catch((error: Error) => fail(error.message));
    const runAll = async (queue: string[]) => {
      while (lane && queue.length > 0) {
        const file = take(queue);
        if (file === undefined) {
          await Promise.race(queue.map((waits) => unready.get(waits) ?? Promise.resolve()));
          continue;
        }
        const hasEnded = await run(file, lane.garden);
        if (hasEnded || !lane.takeDown || queue.length === 0) continue;
        await close();
        lane = await openOne();
      }
    };
    atWork++;
    await runAll(waiting);
    atWork--;
    if (atWork === 0 && last.length > 0) await calm.then(() => runAll(last));
    // At once: the other lane has the processors to itself then.
    await close();
  };
  const running: Promise<void>[] = [];
  for (let lane = 1; lane === 1 || (lane <= lanes && waiting.length > 0); lane++) {
    // One after the other: two that come up on two cores keep each other.
    const opened = await openOne();
    if (opened) running.push(work(opened));
  }
  await Promise.all(running);
}
