import type { Seed } from '../../../api/seed.ts';
import type { Shoot } from '../../../api/shoot.ts';
import { unlessAborted } from '../../../kube/clock.ts';
import { SEEDS } from '../../../kube/resources.ts';
import { hold, isHeld } from '../../finalizer.ts';
import type { ShootDependencies } from '../dependencies.ts';
import { seedFor } from './seed-for.ts';
import { SeedShares } from './seed-shares.ts';

/** How long a seed may take to be held. */
const HOLD_MS = 30_000;

/** The seeds of all shoots: which one each has, how many workers each keeps busy, and that they stay while they are used. */
export class ShootSeeds {
  readonly #deps: ShootDependencies;
  readonly #shares: SeedShares;
  /** The seeds that were chosen, by key. */
  readonly #chosen = new Map<string, string>();
  /** Seeds that are being held right now, by name. */
  readonly #holding = new Map<string, Promise<void>>();

  constructor(deps: ShootDependencies) {
    this.#deps = deps;
    this.#shares = new SeedShares(deps.workers, () => deps.seeds.list().length);
  }

  /** As seedFor: the seed of a shoot, chosen if it has none. undefined: it is deleted and never had one. */
  of(shoot: Shoot): Seed | undefined {
    return seedFor(this.#deps, shoot, this.#chosen);
  }

  /** As SeedShares.enter: a place for one worker among those of the seed; undefined: it has its share. */
  enter(seed: Seed): (() => void) | undefined {
    return this.#shares.enter(seed.metadata.name);
  }

  /** Many shoots come at once to a new seed: one request holds it for all of them, or all but one would be refused and come later. */
  async hold(seed: Seed, signal: AbortSignal): Promise<void> {
    const { seeds } = this.#deps;
    const { name } = seed.metadata;
    if (isHeld(seeds.get(name) ?? seed)) return;
    let holding = this.#holding.get(name);
    if (!holding) {
      const patience = AbortSignal.timeout(HOLD_MS);
      holding = hold(this.#deps, SEEDS, seeds, seed, true, { signal: patience }).finally(() => {
        this.#holding.delete(name);
      });
      this.#holding.set(name, holding);
    }
    await unlessAborted(holding, signal);
  }

  /** The shoot with this key takes no room any more. */
  forget(key: string): void {
    this.#chosen.delete(key);
  }
}
