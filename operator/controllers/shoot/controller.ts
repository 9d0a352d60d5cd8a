import type { Seed } from '../../api/seed.ts';
import { isIgnored, type Shoot } from '../../api/shoot.ts';
import type { GateVerdict } from '../../clusters/deletion-gate.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { keyOf, SHOOTS } from '../../kube/resources.ts';
import { hold, isHeld } from '../finalizer.ts';
import { movedOperation, writeStatus } from '../status-writer.ts';
import { bareStatus } from './bare-status.ts';
import { gateOf, runDeletion } from './deletion/deletion-path.ts';
import { closeLeftOver, tellLeftBehind } from './deletion/left-over.ts';
import type { ShootDependencies } from './dependencies.ts';
import { decideServingCertificates, MACHINE_KNOWN_MS } from './machines/serving-certificates.ts';
import { openOperation, type PlacedShoot } from './open-operation.ts';
import type { Operation } from './operation.ts';
import { namespaceIn, notOurs, otherOwnerIn } from './ownership.ts';
import { runReconcile } from './run-reconcile.ts';
import { SeedsNotAsked } from './seeds/seed-for.ts';
import { ShootSeeds } from './seeds/shoot-seeds.ts';
import { ShootStates } from './shoot-states.ts';
import type { ShootState } from './state.ts';
import { tellFailures } from './tell-failures.ts';

/** Task id of errors before the task graph runs. */
const PREPARE = 'prepare';
/** Delay before a shoot retries whose seed occupies its whole share of workers. */
const SHARE_TAKEN_MS = 2_000;

/** When to reconcile again at the latest. undefined: on the next change. */
type Again = { readonly requeueAfterMs: number } | undefined;

/** Whether to delete the shoot now: requested, and no hold. */
interface Verdict {
  readonly deleting: boolean;
  readonly gate: GateVerdict;
}

/**
 * Reconciles shoots. One reconcile runs the task graph of one shoot; a change of its spec aborts the run and starts
 * another.
 */
export class ShootController {
  readonly #deps: ShootDependencies;
  readonly #seeds: ShootSeeds;
  readonly #states = new ShootStates();
  readonly #vnis = new Map<string, number>();
  /** UIDs, by key, of shoots whose finalizer was removed. The cache may still show them; they must not be deleted a second time. */
  readonly #released = new Map<string, string | undefined>();

  constructor(deps: ShootDependencies) {
    this.#deps = deps;
    this.#seeds = new ShootSeeds(deps);
  }

  /** Aborts a running operation whose goal has changed: see ShootStates. */
  shootChanged(key: string, shoot: Shoot | undefined): void {
    this.#states.shootChanged(key, shoot);
  }

  /** Lets a running operation update the status: see ShootStates. */
  partChanged(key: string): void {
    this.#states.partChanged(key);
  }

  async reconcile(key: string, shutdown: AbortSignal): Promise<Again> {
    const shoot = this.#deps.shoots.get(key);
    if (!shoot) return this.#gone(key, shutdown);
    if (this.#released.has(key)) {
      if (this.#released.get(key) === shoot.metadata.uid) return undefined;
      this.#released.delete(key);
    }
    if (isIgnored(shoot)) return undefined;
    return this.#states.run(key, shoot, shutdown, (state, signal) => this.#run(shoot, state, signal));
  }

  /** Approves or denies the certificate requests of kubelets, independently of a running operation. */
  async certificates(key: string, signal: AbortSignal): Promise<Again> {
    const deps = this.#deps;
    const state = this.#states.get(key);
    if (!deps.shoots.get(key) || !state?.connection || !state.listMachines) return undefined;
    const waiting = await decideServingCertificates(state.connection, state.listMachines, deps, signal);
    // The provider's list may be older than a new machine: retry after the next list.
    return waiting ? { requeueAfterMs: MACHINE_KNOWN_MS } : undefined;
  }

  /** Takes the next step of machine repair, independently of a running operation. */
  async repair(key: string, signal: AbortSignal): Promise<Again> {
    const shoot = this.#deps.shoots.get(key);
    if (!shoot || isIgnored(shoot)) return undefined;
    return this.#states.get(key)?.repair?.(signal);
  }

  /** Restores lost keys from memory, independently of a running operation. */
  async keys(key: string, signal: AbortSignal): Promise<undefined> {
    const shoot = this.#deps.shoots.get(key);
    const state = this.#states.get(key);
    if (!shoot || isIgnored(shoot) || state?.shoot?.metadata.uid !== shoot.metadata.uid) return;
    await state?.restoreKeys?.(signal);
  }

  async stop(): Promise<void> {
    for (const key of this.#states.keys()) await this.#forget(key);
  }

  /** Adds the finalizer and selects the seed. The shoot waits while its seed occupies its whole share of workers. */
  async #run(shoot: Shoot, state: ShootState, signal: AbortSignal): Promise<Again> {
    const deps = this.#deps;
    const asked = shoot.metadata.deletionTimestamp !== undefined;
    if (asked && !isHeld(shoot)) return undefined;
    const gate = gateOf(deps, shoot, state);
    const verdict = { gate, deleting: asked && gate.open };
    state.held = asked && !gate.open ? gate.message : undefined;
    if (!asked) await hold(deps, SHOOTS, deps.shoots, shoot, true, { signal });
    let placed: Seed | undefined;
    try {
      placed = this.#seeds.of(shoot);
    } catch (error) {
      if (signal.aborted) throw error;
      if (error instanceof SeedsNotAsked) return await this.#waitsForSeed(shoot, state, error.message);
      return this.#notBegun(shoot, state, error);
    }
    if (!placed) return await this.#release(shoot, signal);
    const leave = this.#seeds.enter(placed);
    if (!leave) return { requeueAfterMs: SHARE_TAKEN_MS };
    try {
      return await this.#inSeed({ shoot, state, placed }, verdict, signal);
    } finally {
      leave();
    }
  }

  /** Observes the shoot in its seed, then runs its task graph or its deletion. */
  async #inSeed(on: PlacedShoot, { deleting, gate }: Verdict, signal: AbortSignal): Promise<Again> {
    const { shoot, state, placed } = on;
    const deps = this.#deps;
    let op: Operation;
    try {
      // The seed must not be deleted once something is made in it.
      if (!deleting) await this.#seeds.hold(placed, signal);
      op = await openOperation(deps, on, this.#vnis, signal);
      const { namespace } = op.values;
      // The cache may be stale: the graph asks the server before it makes the namespace, once per new cluster.
      const found = deleting ? await namespaceIn(op.seed, namespace, signal) : op.seed.namespaces.get(namespace);
      const otherOwner = otherOwnerIn(found, shoot, deps.gardenID);
      // Nothing of the shoot exists there, because the namespace comes first.
      if (otherOwner && deleting) return await this.#release(shoot, signal);
      if (otherOwner) throw notOurs(op.seed.name, namespace, otherOwner);
    } catch (error) {
      // Conflict: another client wrote to the Seed meanwhile.
      if (signal.aborted || (error instanceof KubeApiError && error.isConflict)) throw error;
      return this.#notBegun(shoot, state, error);
    }
    state.errors.delete(PREPARE);
    if (deleting) return this.#delete(op, signal);
    const next = await runReconcile(op, signal);
    const askAgainMs = gate.until ? Math.max(0, +gate.until - +deps.now()) : Number.POSITIVE_INFINITY;
    return next && { requeueAfterMs: Math.min(next.requeueAfterMs, askAgainMs) };
  }

  async #delete(op: Operation, signal: AbortSignal): Promise<Again> {
    const { failures } = await runDeletion(op, signal);
    if (failures.length > 0) return tellFailures(op, failures, op);
    this.#vnis.delete(op.values.namespace);
    return this.#release(op.shoot, signal);
  }

  #notBegun(shoot: Shoot, state: ShootState, error: unknown): Promise<Again> {
    return tellFailures({ deps: this.#deps, shoot, state }, [{ taskID: PREPARE, error }]);
  }

  /** The first result about the seed queues the shoot. */
  async #waitsForSeed(shoot: Shoot, state: ShootState, description: string): Promise<undefined> {
    const deps = this.#deps;
    const now = deps.now();
    state.errors.delete(PREPARE);
    const waits = { type: 'Create', state: 'Processing', progress: 0, description } as const;
    state.operation = movedOperation(state.operation, waits, now);
    const status = bareStatus(shoot, state.operation, [], now);
    await state.statusWrites.run(() => writeStatus(deps.garden, deps.shoots, shoot, status));
  }

  /** Removes the finalizer once nothing is left. */
  async #release(shoot: Shoot, signal: AbortSignal): Promise<undefined> {
    await hold(this.#deps, SHOOTS, this.#deps.shoots, shoot, false, { signal });
    const key = keyOf(shoot);
    this.#released.set(key, shoot.metadata.uid);
    await this.#forget(key);
    return undefined;
  }

  /** Cleans up after a Shoot object that disappeared, perhaps without our finalizer. */
  async #gone(key: string, shutdown: AbortSignal): Promise<undefined> {
    const last = this.#states.get(key);
    if (last?.shoot) await tellLeftBehind(this.#deps, last.shoot, shutdown);
    if (last) await closeLeftOver(this.#deps, this.#deps.registry.all(), key, shutdown);
    this.#released.delete(key);
    await this.#forget(key);
    return undefined;
  }

  async #forget(key: string): Promise<void> {
    this.#seeds.forget(key);
    await this.#states.forget(key);
  }
}
