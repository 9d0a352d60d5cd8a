import type { Shoot } from '../../api/shoot.ts';
import { endDriftLook } from './drift/drift.ts';
import { newShootState, noteChange, type ShootState } from './state.ts';

/** The shoots that this process has worked on, and what a change does to an operation that runs. */
export class ShootStates {
  readonly #states = new Map<string, ShootState>();

  get(key: string): ShootState | undefined {
    return this.#states.get(key);
  }

  keys(): string[] {
    return [...this.#states.keys()];
  }

  /**
   * To be called on every change of a Shoot, before its key is queued: a running operation for an older spec, or for a shoot that has
   * gone (`undefined`), is stopped.
   */
  shootChanged(key: string, shoot: Shoot | undefined): void {
    const state = this.#states.get(key);
    if (!state?.abort || (shoot && state.target === targetOf(shoot))) return;
    state.abort.abort(new Error(shoot ? 'the shoot was changed' : 'the shoot is gone'));
  }

  /** To be called on every change of what belongs to a shoot: a running operation that waits is no reason to say what is not true any more. */
  partChanged(key: string): void {
    const state = this.#states.get(key);
    if (state) noteChange(state);
  }

  /** Does the work that a shoot needs; it is stopped, and that is no error, when the shoot is changed meanwhile. */
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
      // Stopped because the spec changed: its new form is in the queue already.
      if (state.abort.signal.aborted) return undefined;
      throw error;
    } finally {
      state.abort = undefined;
    }
  }

  /** Ends what goes on beside the operations of a shoot, and closes the connection to it. */
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

/** What an operation is for: another generation, or deletion, makes a running one obsolete. */
const targetOf = (shoot: Shoot): string =>
  `${shoot.metadata.uid}/${shoot.metadata.generation}/${shoot.metadata.deletionTimestamp ? 'delete' : 'keep'}`;
