import { expect, it } from 'vitest';
import { ELSEWHERE, IN_SEED, type ServeWait, untilServes } from '../../../operator/controllers/shoot/until-serves.ts';
import { FakeClock } from '../kube/fake-clock.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** Asks an API server that serves from `upAt` on, by a clock that goes in steps of 20 ms until `untilMs`; random is in the middle. */
async function asks(
  patience: ServeWait,
  { upAt, untilMs, newsAt }: { upAt: number; untilMs: number; newsAt?: number },
) {
  const clock = new FakeClock();
  const abort = new AbortController();
  const began = clock.now();
  const elapsed = () => clock.now() - began;
  const asked: number[] = [];
  let servedAt: number | undefined;
  const serves = async () => {
    asked.push(elapsed());
    if (elapsed() >= upAt) return true;
    throw new Error('connection refused');
  };
  const news = (signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
      if (newsAt !== undefined && elapsed() < newsAt) clock.after(newsAt - elapsed(), resolve);
    });
  const waited = untilServes({ serves, news, clock, random: () => 0.5 }, patience, abort.signal).then(
    () => {
      servedAt = elapsed();
    },
    () => {},
  );
  while (elapsed() < untilMs && servedAt === undefined) {
    clock.advance(20);
    await new Promise((resolve) => setImmediate(resolve));
  }
  abort.abort(new Error('enough'));
  await waited;
  return { asked: asked.length, servedAt };
}

it.each([400, 3000, 5000, 14_000])('an API server that serves after %i ms is noticed within 150 ms', async (upAt) => {
  const { servedAt } = await asks(IN_SEED, { upAt, untilMs: MINUTE });
  expect(servedAt! - upAt).toBeLessThanOrEqual(150);
});

it("an API server that serves late is noticed at once by its pod's status", async () => {
  const { servedAt } = await asks(IN_SEED, { upAt: 48_000, newsAt: 48_500, untilMs: 2 * MINUTE });
  expect(servedAt).toBe(48_500);
});

it('a dead API server is polled with growing intervals while it is desired', async () => {
  const dead = { upAt: Number.POSITIVE_INFINITY };
  const inFive = (await asks(IN_SEED, { ...dead, untilMs: 5 * MINUTE })).asked;
  expect(inFive).toBeLessThan(230);
  const inTen = (await asks(IN_SEED, { ...dead, untilMs: 10 * MINUTE })).asked;
  expect(inTen - inFive).toBeGreaterThan(55);
  expect(inTen - inFive).toBeLessThan(65);
});

it('an API server on cloud machines is polled every second while these may be starting', async () => {
  const { servedAt } = await asks(ELSEWHERE, { upAt: 3 * MINUTE + 1, untilMs: 5 * MINUTE });
  expect(servedAt! - 3 * MINUTE).toBeLessThanOrEqual(1020);
});
