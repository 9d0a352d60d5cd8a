import { it } from 'vitest';
import { casesOf } from './cases.ts';
import { type Draw, draw } from './draw.ts';

export type { Draw } from './draw.ts';

/**
 * A test that something holds whatever is drawn. A failure names its seed: `COPPICE_SEED=<seed>` tries that one alone,
 * `COPPICE_RUNS=<count>` tries more. `npm test` tries an eighth of `runs`.
 */
export function holds(what: string, body: (choose: Draw) => void | Promise<void>, { runs = 200 } = {}): void {
  it(what, async () => {
    const { COPPICE_SEED, COPPICE_RUNS } = process.env;
    const first = COPPICE_SEED === undefined ? 1 : Number(COPPICE_SEED);
    const count = COPPICE_SEED === undefined ? Number(COPPICE_RUNS ?? casesOf(runs)) : 1;
    for (let seed = first; seed < first + count; seed++) {
      try {
        await body(draw(seed));
      } catch (error) {
        if (error instanceof Error) error.message = `COPPICE_SEED=${seed}: ${error.message}`;
        throw error;
      }
    }
  });
}
