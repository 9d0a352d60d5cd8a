import { findCondition, rfc3339 } from '../../api/conditions.ts';
import { CoppiceError, configurationProblem, errorText, notYetConfigured } from '../../api/errors.ts';
import { ANNOTATIONS } from '../../api/group.ts';
import { technicalID } from '../../api/names.ts';
import type { Seed } from '../../api/seed.ts';
import { type Shoot, type ShootStatus, shootProfileName } from '../../api/shoot.ts';
import { type GateVerdict, HELD, judgeDeletion } from '../../clusters/deletion-gate.ts';
import { unlessAborted } from '../../kube/clock.ts';
import { isNotFound, KubeApiError } from '../../kube/errors.ts';
import { decoded, keyOf, SEEDS, SHOOTS } from '../../kube/resources.ts';
import { PKI_SECRET } from '../../shoot/pki.ts';
import { say, withConditions } from '../conditions.ts';
import { hold, isHeld } from '../finalizer.ts';
import { keptFor, usedByShoot } from '../kept-profile.ts';
import { operation, writeStatus } from '../status-writer.ts';
import { resolveVersion, upgradeProblem } from '../versions.ts';
import { bareStatus } from './bare-status.ts';
import { controlPlanePoolOf, controlPlaneValues, poolsOfShoot, providerContext } from './context.ts';
import { recordsCondition } from './dns/dns-outcome.ts';
import { endDriftLook, lookForDrift, noteMended, wantsMending } from './drift/drift.ts';
import { unreachable } from './expose.ts';
import { closeLeftOver, tellLeftBehind } from './left-over.ts';
import { decideServingCertificates } from './machines/serving-certificates.ts';
import type { Operation } from './operation.ts';
import { namespaceIn, notOurs, strangerIn } from './ownership.ts';
import { retryOf } from './retry.ts';
import { runFlow } from './run-flow.ts';
import { seedFor } from './seed-for.ts';
import { SeedShares } from './seed-shares.ts';
import { newShootState, noteChange, type ShootState } from './state.ts';
import { NODES_LEAVING } from './status.ts';
import { strategyOf } from './strategy.ts';
import { allocateVNI } from './vni.ts';
import { whileAnswered } from './while-answered.ts';
import type { ShootWorld } from './world.ts';

/** What comes before the task graph, among the errors of its tasks. */
const PREPARE = 'prepare';
/** As long as a provider may take to know of a new machine. */
const MACHINE_KNOWN_MS = 10_000;
/** How soon Nodes without a machine are looked at again. */
const STRAYS_MS = 1_000;
/** How soon it is looked again whether the admin's kubeconfig works, where it did not. */
const ACCESS_MS = 10_000;

/** How long a seed may take to be held. */
const HOLD_MS = 30_000;

/** How soon a shoot asks again whose seed keeps as many workers busy as it may. */
const SHARE_TAKEN_MS = 2_000;

/** A shoot, where it is, and whether it is taken apart. */
interface Placed {
  readonly shoot: Shoot;
  readonly state: ShootState;
  readonly placed: Seed;
  readonly deleting: boolean;
  readonly gate: GateVerdict;
}

/** Makes shoots real: one reconcile runs the task graph of one shoot, and a change of its spec starts it anew. */
export class ShootController {
  readonly #world: ShootWorld;
  readonly #shares: SeedShares;
  readonly #states = new Map<string, ShootState>();
  readonly #vnis = new Map<string, number>();
  /** The seeds that were chosen, by key. */
  readonly #placed = new Map<string, string>();
  /** Seeds that are being held right now, by name. */
  readonly #holding = new Map<string, Promise<void>>();
  /** uid, by key, of shoots that have gone but that the cache may still show: to take one away a second time is all in vain. */
  readonly #released = new Map<string, string | undefined>();

  constructor(world: ShootWorld) {
    this.#world = world;
    this.#shares = new SeedShares(world.workers, () => world.seeds.list().length);
  }

  /**
   * To be called on every change of a Shoot, before its key is queued: a running operation for an older spec, or for a shoot that has
   * gone (`undefined`), is stopped.
   */
  shootChanged(key: string, shoot: Shoot | undefined): void {
    const state = this.#states.get(key);
    if (!state?.abort || (shoot && state.target === targetOf(shoot))) return;
    state.abort.abort(new Error(shoot ? 'the shoot was changed' : 'the shoot has gone'));
  }

  /** To be called on every change of what belongs to a shoot: a running operation that waits is no reason to say what is not true any more. */
  partChanged(key: string): void {
    const state = this.#states.get(key);
    if (state) noteChange(state);
  }

  async reconcile(key: string, shutdown: AbortSignal): Promise<{ requeueAfterMs?: number } | undefined> {
    const shoot = this.#world.shoots.get(key);
    if (!shoot) {
      const last = this.#states.get(key);
      if (last?.shoot) await tellLeftBehind(this.#world, last.shoot, shutdown);
      if (last) await closeLeftOver(this.#world, this.#world.registry.all(), key, shutdown);
      this.#released.delete(key);
      await this.#forget(key);
      return undefined;
    }
    if (this.#released.has(key)) {
      if (this.#released.get(key) === shoot.metadata.uid) return undefined;
      this.#released.delete(key);
    }
    if (shoot.metadata.annotations?.[ANNOTATIONS.ignore] === 'true') return undefined;
    const state = this.#stateOf(key);
    state.abort = new AbortController();
    state.target = targetOf(shoot);
    state.shoot = shoot;
    const signal = AbortSignal.any([shutdown, state.abort.signal]);
    try {
      return await this.#run(shoot, state, signal);
    } catch (error) {
      // Stopped because the spec changed: its new form is in the queue already.
      if (state.abort.signal.aborted) return undefined;
      throw error;
    } finally {
      state.abort = undefined;
    }
  }

  /** Decides on kubelets' certificate requests, independently of a running operation. */
  async certificates(key: string): Promise<{ requeueAfterMs?: number } | undefined> {
    const shoot = this.#world.shoots.get(key);
    const state = this.#states.get(key);
    if (!shoot || !state?.connection || !state.listMachines) return undefined;
    const { log } = this.#world;
    const waiting = await decideServingCertificates(
      state.connection,
      await state.listMachines(),
      log,
      this.#world.now(),
    );
    // A cloud is not asked for its machines at every turn: the next time it is, the machine may be known.
    return waiting ? { requeueAfterMs: MACHINE_KNOWN_MS } : undefined;
  }

  async stop(): Promise<void> {
    for (const key of [...this.#states.keys()]) await this.#forget(key);
  }

  async #run(shoot: Shoot, state: ShootState, signal: AbortSignal) {
    const world = this.#world;
    const asked = shoot.metadata.deletionTimestamp !== undefined;
    if (asked && !isHeld(shoot)) return undefined;
    const gate = this.#gate(shoot, state);
    const deleting = asked && gate.open;
    state.held = asked && !gate.open ? gate.message : undefined;
    if (!asked) await hold(world, SHOOTS, world.shoots, shoot, true, { signal });
    let placed: Seed | undefined;
    try {
      placed = seedFor(world, shoot, this.#placed);
    } catch (error) {
      if (signal.aborted) throw error;
      return this.#failed(shoot, state, [{ taskID: PREPARE, error }]);
    }
    if (!placed) return await this.#release(shoot, signal);
    const leave = this.#shares.enter(placed.metadata.name);
    if (!leave) return { requeueAfterMs: SHARE_TAKEN_MS };
    try {
      return await this.#inSeed({ shoot, state, placed, deleting, gate }, signal);
    } finally {
      leave();
    }
  }

  async #inSeed(
    { shoot, state, placed, deleting, gate }: Placed,
    signal: AbortSignal,
  ): Promise<{ requeueAfterMs?: number } | undefined> {
    const world = this.#world;
    let op: Operation;
    try {
      // Before anything is made there.
      if (!deleting) await this.#holdSeed(placed, signal);
      op = await this.#operation(shoot, state, placed, signal);
      const { namespace } = op.values;
      // Before it makes one the graph asks the server, so that each new cluster asks once.
      const found = deleting ? await namespaceIn(op.seed, namespace, signal) : op.seed.namespaces.get(namespace);
      const stranger = strangerIn(found, shoot, world.gardenID);
      // Nothing of it was ever made there: namespaces come first.
      if (stranger && deleting) return await this.#release(shoot, signal);
      if (stranger) throw notOurs(op.seed.name, namespace, stranger);
    } catch (error) {
      // Somebody else wrote to the seed while it was to be held.
      if (signal.aborted || (error instanceof KubeApiError && error.isConflict)) throw error;
      return this.#failed(shoot, state, [{ taskID: PREPARE, error }]);
    }
    state.errors.delete(PREPARE);
    if (deleting) return this.#delete(op, signal);
    const next = await this.#reconcile(op, signal);
    const askAgainMs = gate.until ? Math.max(0, +gate.until - +world.now()) : Number.POSITIVE_INFINITY;
    return next && { requeueAfterMs: Math.min(next.requeueAfterMs, askAgainMs) };
  }

  /** Many shoots come at once to a new seed: one request holds it for all of them, or all but one would be refused and come later. */
  async #holdSeed(seed: Seed, signal: AbortSignal): Promise<void> {
    const world = this.#world;
    const { name } = seed.metadata;
    if (isHeld(world.seeds.get(name) ?? seed)) return;
    let holding = this.#holding.get(name);
    if (!holding) {
      const patience = AbortSignal.timeout(HOLD_MS);
      holding = hold(world, SEEDS, world.seeds, seed, true, { signal: patience }).finally(() => {
        this.#holding.delete(name);
      });
      this.#holding.set(name, holding);
    }
    await unlessAborted(holding, signal);
  }

  /** Whether it may be taken apart. One that is nowhere yet has nothing that anybody could hold. */
  #gate(shoot: Shoot, state: ShootState): GateVerdict {
    const { metadata, status } = shoot;
    const begun = !status?.seedName || (state.operation ?? status.lastOperation)?.type === 'Delete';
    const holds = metadata.deletionTimestamp ? this.#world.holds(metadata.namespace ?? '', metadata.name) : [];
    return judgeDeletion(holds, begun, this.#world.now());
  }

  async #operation(shoot: Shoot, state: ShootState, seedObject: Seed, signal: AbortSignal): Promise<Operation> {
    const world = this.#world;
    const offered = world.profiles.get(shootProfileName(shoot.spec));
    const deleting = isLeaving(shoot, state);
    if (!offered) throw notYetConfigured(`CloudProfile "${shootProfileName(shoot.spec)}" does not exist`);
    const inUse = usedByShoot(shoot);
    const profile = inUse ? keptFor(offered, inUse, world.now()) : offered;
    const provider = world.provider(profile, world.namesAccount(shoot));
    if (!provider)
      throw configurationProblem(`this operator has no provider "${profile.spec.provider ?? profile.spec.type}"`);
    if (provider.barred && !deleting && shoot.status?.seedName === undefined)
      throw configurationProblem(provider.barred);
    const seed = await world.registry.open(seedObject, signal);
    const { name, namespace = '' } = shoot.metadata;
    const id = technicalID(namespace, name);
    const recorded = provider.recorded?.includes(profile) ? provider.recorded : undefined;
    const controlPlanePool = controlPlanePoolOf(shoot);
    const strategy = strategyOf({ controlPlanePool, provider, recorded, seed, shoot, values: { namespace: id } });
    const barred = provider.inCloud && !deleting && strategy.servesInSeed ? unreachable(seedObject) : undefined;
    if (barred) throw barred;
    const running = shoot.status?.kubernetesVersion;
    const wanted = shoot.spec.kubernetes.version;
    const version = deleting
      ? (running ?? wanted ?? '')
      : running && (wanted === undefined || (wanted === running && strategy.keepsVersion))
        ? running
        : resolveVersion(wanted, profile, world.now());
    if (version === undefined)
      throw configurationProblem(`CloudProfile "${profile.metadata.name}" offers no Kubernetes ${wanted}`);
    const why = running && !deleting ? upgradeProblem(running, version) : undefined;
    if (why) throw configurationProblem(why);
    const vni = allocateVNI(id, seed.namespaces, this.#vnis);
    this.#vnis.set(id, vni);
    const op: Operation = {
      world,
      shoot,
      state,
      seed,
      provider,
      strategy,
      recorded,
      pools: poolsOfShoot(shoot),
      controlPlanePool,
      mend: wantsMending(provider, shoot, state),
      left: new Map(),
      vni,
      names: strategy.names(shoot, seedObject, provider.name),
      signal,
      values: strategy.reaching(controlPlaneValues(shoot, profile, seedObject, version), seedObject, provider, vni),
      pki: decoded(seed.secrets.get(`${id}/${PKI_SECRET}`)?.data),
      context: () => providerContext(op, profile, seedObject),
      tell: (until) => {
        state.told?.();
        return this.#writeStatus(op, until).then(() => {});
      },
      notice: () => {
        op.tell().catch((error) => {
          // A cluster that has just gone has no status.
          if (!isNotFound(error)) world.log.warn({ err: error, shoot: name }, 'status not written');
        });
      },
    };
    state.listMachines = () => strategy.machines(op);
    if (!deleting) {
      const unfit = strategy.problem(op);
      if (unfit) throw configurationProblem(unfit);
      const problems = provider.validate(
        {
          region: shoot.spec.region,
          kubernetesVersion: version,
          networking: {
            pods: op.values.networks.pods,
            services: op.values.networks.services,
            ...(provider.inCloud && shoot.spec.networking?.nodes && { nodes: shoot.spec.networking.nodes }),
          },
          pools: [...(op.controlPlanePool ? [op.controlPlanePool] : []), ...op.pools],
        },
        profile,
      );
      if (problems.length > 0)
        throw new CoppiceError(problems[0]!.code, problems.map((p) => `${p.field}: ${p.message}`).join('; '));
    }
    return op;
  }

  async #reconcile(op: Operation, signal: AbortSignal) {
    const { shoot, state, world } = op;
    const last = shoot.status?.lastOperation;
    // It would hold up what the change asks for, and tell of it as if others had made it.
    if (op.mend || state.settledGeneration !== shoot.metadata.generation) endDriftLook(state);
    const upToDate = shoot.status?.observedGeneration === shoot.metadata.generation && last?.state === 'Succeeded';
    const type = !last || (last.type === 'Create' && last.state !== 'Succeeded') ? 'Create' : 'Reconcile';
    // A look that finds all in order is no operation: it leaves no trace, or an idle fleet would write.
    state.operation = upToDate
      ? last
      : operation(last, { type, state: 'Processing', progress: 0, description: 'starting' }, world.now());
    const tasks = whileAnswered(op, op.strategy.reconcileTasks(op));
    const result = await runFlow(op, { tasks, type, visible: !upToDate }, signal);
    if (signal.aborted) throw signal.reason;
    if (result.failures.length > 0) return this.#failed(shoot, state, result.failures, op);
    if (!upToDate) {
      state.operation = operation(
        state.operation,
        {
          type,
          state: 'Succeeded',
          progress: 100,
          description: type === 'Create' ? 'the cluster was made' : 'the cluster is as it should be',
        },
        world.now(),
      );
    }
    state.errors.clear();
    state.failures.clear();
    state.settledGeneration = shoot.metadata.generation;
    lookForDrift(op);
    if (op.mend) await noteMended(op);
    const told = await this.#writeStatus(op, signal);
    if (!upToDate)
      world.record(shoot, 'Normal', type === 'Create' ? 'Created' : 'Reconciled', state.operation?.description ?? '');
    // A look that is under way queues the shoot when it ends.
    const recordsAt = state.dns?.running ? undefined : state.dns?.lookAt;
    const driftAt = state.drift?.running ? undefined : state.drift?.lookAt;
    const sleeps = [state.nextRenewal, state.recordChangesAt, recordsAt, driftAt].flatMap((at) =>
      at ? [+at - +world.now()] : [],
    );
    // Their kubelets outlived their machines: nothing else will happen that would tell us to look.
    const strays = findCondition(told?.conditions, 'EveryNodeReady')?.reason === NODES_LEAVING;
    if (strays) sleeps.push(op.provider.inCloud ? MACHINE_KNOWN_MS : STRAYS_MS);
    if (state.usable?.ok === false || state.systemRefused) sleeps.push(ACCESS_MS);
    return { requeueAfterMs: Math.max(1000, Math.min(op.strategy.longestSleepMs, ...sleeps)) };
  }

  async #delete(op: Operation, signal: AbortSignal) {
    const { shoot, state, world } = op;
    endDriftLook(state);
    state.operation = operation(
      shoot.status?.lastOperation,
      { type: 'Delete', state: 'Processing', progress: 0, description: 'starting' },
      world.now(),
    );
    const tasks = op.strategy.deletionTasks(op);
    const result = await runFlow(op, { tasks, type: 'Delete', visible: true }, signal);
    if (signal.aborted) throw signal.reason;
    if (result.failures.length > 0) return this.#failed(shoot, state, result.failures, op);
    this.#vnis.delete(op.values.namespace);
    return this.#release(shoot, signal);
  }

  /** Puts errors into the status; throws when it is worth trying again soon, so that the queue backs off. */
  async #failed(
    shoot: Shoot,
    state: ShootState,
    failures: readonly { taskID: string; error: unknown }[],
    op?: Operation,
  ): Promise<{ requeueAfterMs: number } | undefined> {
    const world = this.#world;
    const now = world.now();
    for (const { taskID, error } of failures) {
      state.failures.set(taskID, (state.failures.get(taskID) ?? 0) + 1);
      if (error instanceof CoppiceError && error.code === 'ERR_INFRA_RESOURCES_DEPLETED') world.depleted(shoot, error);
      const before = state.errors.get(taskID);
      const description = errorText(error);
      const codes = error instanceof CoppiceError ? [error.code] : [];
      const same = before?.description === description;
      state.errors.set(taskID, same ? before : { taskID, description, codes, lastUpdateTime: rfc3339(now) });
      if (!same)
        world.record(shoot, 'Warning', isLeaving(shoot, state) ? 'DeleteFailed' : 'ReconcileFailed', description);
      world.log.warn(
        { shoot: `${shoot.metadata.namespace}/${shoot.metadata.name}`, task: taskID, err: error },
        'task failed',
      );
    }
    const errors = [...state.errors.values()];
    const failed = failures.map(({ taskID, error }) => ({ error, count: state.failures.get(taskID) ?? 1 }));
    const retry = retryOf(failed, isLeaving(shoot, state), Math.random());
    const type = isLeaving(shoot, state) ? 'Delete' : (state.operation?.type ?? 'Create');
    const description = errors.map((error) => error.description).join('; ');
    state.operation = operation(
      state.operation,
      { type, state: retry === 'never' ? 'Failed' : 'Error', progress: state.operation?.progress ?? 0, description },
      now,
    );
    if (op) await this.#writeStatus(op);
    else {
      // Progress that an operation before this one still has to tell goes first.
      const status = bareStatus(shoot, state.operation, errors, now);
      await state.statusWrites.run(() => writeStatus(world.garden, world.shoots, shoot, status));
    }
    if (retry === 'by-queue') throw failures[0]!.error;
    return retry === 'never' ? undefined : { requeueAfterMs: retry.afterMs };
  }

  async #release(shoot: Shoot, signal: AbortSignal): Promise<undefined> {
    await hold(this.#world, SHOOTS, this.#world.shoots, shoot, false, { signal });
    const key = keyOf(shoot);
    this.#released.set(key, shoot.metadata.uid);
    await this.#forget(key);
    return undefined;
  }

  /**
   * Writes the status as it is when its turn comes. One after the other: progress that was sent just before the end could reach the
   * server after it, and a cluster that is done would say for ever that it is being made.
   */
  #writeStatus(op: Operation, signal?: AbortSignal): Promise<ShootStatus | undefined> {
    return op.state.statusWrites.run(() => this.#writeStatusNow(op, signal));
  }

  async #writeStatusNow(op: Operation, signal?: AbortSignal): Promise<ShootStatus | undefined> {
    const { state, world } = op;
    const shoot = world.shoots.get(`${op.shoot.metadata.namespace}/${op.shoot.metadata.name}`) ?? op.shoot;
    if (shoot.metadata.uid !== op.shoot.metadata.uid) return undefined;
    const now = world.now();
    const status = await op.strategy.status(op, shoot, now);
    if (shoot.metadata.deletionTimestamp) {
      const waiting =
        state.errors.size > 0
          ? [...state.errors.values()].map((error) => error.description).join('; ')
          : (state.operation?.description ?? 'starting');
      status.conditions = withConditions(
        shoot.status?.conditions,
        [
          say('Ready', false, 'Deleting', 'the cluster is being deleted'),
          state.held
            ? say('Deleting', true, HELD, state.held)
            : say('Deleting', true, state.errors.size > 0 ? 'Stuck' : 'InProgress', waiting),
          recordsCondition(state.dns?.outcomes.filter(({ problem }) => problem) ?? [], shoot),
        ],
        now,
      );
    }
    await writeStatus(world.garden, world.shoots, shoot, status, signal);
    return status;
  }

  #stateOf(key: string): ShootState {
    let state = this.#states.get(key);
    if (!state) {
      state = newShootState();
      this.#states.set(key, state);
    }
    return state;
  }

  async #forget(key: string): Promise<void> {
    const state = this.#states.get(key);
    this.#states.delete(key);
    this.#placed.delete(key);
    state?.dns?.abort.abort();
    if (state) endDriftLook(state);
    await state?.connection?.stop();
  }
}

/** Whether it is being taken apart: it was deleted, and nothing holds it. */
const isLeaving = ({ metadata }: Shoot, { held }: ShootState): boolean =>
  metadata.deletionTimestamp !== undefined && held === undefined;

/** What an operation is for: another generation, or deletion, makes a running one obsolete. */
const targetOf = (shoot: Shoot): string =>
  `${shoot.metadata.uid}/${shoot.metadata.generation}/${shoot.metadata.deletionTimestamp ? 'delete' : 'keep'}`;
