import type { Seed } from '../../../api/seed.ts';
import type { Shoot } from '../../../api/shoot.ts';
import { unlessAborted } from '../../../kube/clock.ts';
import { SEEDS } from '../../../kube/resources.ts';
import { hold, isHeld } from '../../finalizer.ts';
import type { ShootDependencies } from '../dependencies.ts';
import { seedFor } from './seed-for.ts';
import { SeedShares } from './seed-shares.ts';

/** Timeout for adding the finalizer to a Seed. */
const HOLD_MS = 30_000;

/** Seeds of all shoots: selection, worker shares, and finalizers while used. */
export class ShootSeeds {
  readonly #deps: ShootDependencies;
  readonly #shares: SeedShares;
  /** Chosen seeds, by key. */
  readonly #chosen = new Map<string, string>();
  /** Running finalizer writes, by seed. */
  readonly #holding = new Map<string, Promise<void>>();

  constructor(deps: ShootDependencies) {
    this.#deps = deps;
    this.#shares = new SeedShares(deps.workers, () => deps.seeds.list().length);
  }

  /** See seedFor: the seed of a shoot, chosen if necessary. undefined: deleted without one. */
  of(shoot: Shoot): Seed | undefined {
    return seedFor(this.#deps, shoot, this.#chosen);
  }

  /** See SeedShares.enter. */
  enter(seed: Seed): (() => void) | undefined {
    return this.#shares.enter(seed.metadata.name);
  }

  /** Adds the finalizer with one shared request: simultaneous shoots on a new seed would otherwise conflict. */
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

  /** The shoot with this key occupies no capacity any more. */
  forget(key: string): void {
    this.#chosen.delete(key);
  }
}
