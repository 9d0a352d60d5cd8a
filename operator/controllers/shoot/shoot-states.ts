import { isIgnored, type Shoot } from '../../api/shoot.ts';
import { endDriftLook } from './drift/drift.ts';
import { newShootState, noteChange, type ShootState } from './state.ts';

/** Memory of the shoots that this process has worked on, and aborts of running operations on changes. */
export class ShootStates {
  readonly #states = new Map<string, ShootState>();

  get(key: string): ShootState | undefined {
    return this.#states.get(key);
  }

  keys(): string[] {
    return [...this.#states.keys()];
  }

  /**
   * Call on every change of a Shoot before queueing its key: aborts a running operation for an older spec, an ignored shoot or a
   * deleted one (`undefined`).
   */
  shootChanged(key: string, shoot: Shoot | undefined): void {
    const state = this.#states.get(key);
    if (!state?.abort || (shoot && state.target === targetOf(shoot))) return;
    state.abort.abort(new Error(shoot ? 'the shoot was changed' : 'the shoot is gone'));
  }

  /** Call on every change of a shoot's parts: a waiting operation must not keep an outdated status. */
  partChanged(key: string): void {
    const state = this.#states.get(key);
    if (state) noteChange(state);
  }

  /** Runs an operation; a change of the shoot aborts it without an error. */
  async run<Result>(
    key: string,
    shoot: Shoot,
    shutdown: AbortSignal,
    work: (state: ShootState, signal: AbortSignal) => Promise<Result>,
  ): Promise<Result | undefined> {
    const state = this.#stateOf(key);
    state.abort = new AbortController();
    state.target = targetOf(shoot);
    state.shoot = shoot;
    const signal = AbortSignal.any([shutdown, state.abort.signal]);
    try {
      return await work(state, signal);
    } catch (error) {
      // Aborted by a change of the spec, which is queued already.
      if (state.abort.signal.aborted) return undefined;
      throw error;
    } finally {
      state.abort = undefined;
    }
  }

  /** Ends background work of the shoot, and closes its connection. */
  async forget(key: string): Promise<void> {
    const state = this.#states.get(key);
    this.#states.delete(key);
    state?.dns?.abort.abort();
    if (state) endDriftLook(state);
    await state?.connection?.stop();
  }

  #stateOf(key: string): ShootState {
    let state = this.#states.get(key);
    if (!state) {
      state = newShootState();
      this.#states.set(key, state);
    }
    return state;
  }
}

/** Key of an operation's goal: another generation, a deletion, or annotation `ignore` makes it obsolete. */
const targetOf = (shoot: Shoot): string =>
  `${shoot.metadata.uid}/${shoot.metadata.generation}/${shoot.metadata.deletionTimestamp ? 'delete' : 'keep'}/${isIgnored(shoot) ? 'ignore' : 'act'}`;
