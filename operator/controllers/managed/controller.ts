import type { CloudProgress } from '../../../providers/cloud.ts';
import type { Credentials } from '../../accounts/credentials.ts';
import { CoppiceError, errorText } from '../../api/errors.ts';
import { ANNOTATIONS } from '../../api/group.ts';
import type { LastOperation } from '../../api/meta.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { isHeld } from '../finalizer.ts';
import { Pacer } from '../pacer.ts';
import { movedOperation } from '../status-writer.ts';
import { decide, type Situation, type StepName } from './decide.ts';
import type { ManagedDependencies } from './dependencies.ts';
import type { ManagedFacts, ManagedWish } from './facts.ts';
import { factsOf } from './facts-of.ts';
import type { ManagedOperation } from './operation.ts';
import type { ManagedReceipt } from './receipt.ts';
import { dueRemoval, heldBackNodes } from './removal.ts';
import { operationType, settleFailures, situationOf } from './situation.ts';
import { type ManagedState, managedFailureOf, newState } from './state.ts';
import { STEPS } from './steps.ts';
import { isToBeRemoved, wishHash, wishSignature } from './wish.ts';

const MOST_TURNS = 12;
const CALM_MS = 10_000;
/** Shortest interval of progress reports: a cloud takes minutes. */
const PROGRESS_INTERVAL_MS = 5_000;
/** Error codes with which a cloud rejects credentials. */
const REFUSALS: readonly string[] = ['ERR_INFRA_UNAUTHENTICATED', 'ERR_INFRA_UNAUTHORIZED'];
/** Steps whose outcome is that of the whole operation; other steps only report what they found. */
const OPERATIONS: readonly StepName[] = ['check', 'apply', 'destroy'];

/** Reconciles managed clusters: one step at a time for each cluster. A step takes minutes, so this controller has its own queue. */
export class ManagedController {
  readonly #deps: ManagedDependencies;
  readonly #states = new Map<string, ManagedState>();

  constructor(deps: ManagedDependencies) {
    this.#deps = deps;
  }

  /** Sets what a cluster should be. Aborts an operation for another wish; does nothing for the same wish. */
  want(key: string, wish: ManagedWish): void {
    const known = this.#states.get(key);
    const isOver = known?.gone && !wish.moves && !wish.cluster.metadata.deletionTimestamp;
    if (!known || isOver || known.wish.cluster.metadata.uid !== wish.cluster.metadata.uid) {
      void known?.connection?.close();
      known?.running?.abort.abort(new Error('another cluster has taken the name'));
      this.#states.set(key, newState(wish));
      this.#deps.enqueue(key);
      return;
    }
    const signature = wishSignature(wish);
    known.wish = wish;
    if (signature === known.signature) return;
    known.signature = signature;
    if (known.running && isObsolete(known.running, this.#heldBack(key, wish)))
      known.running.abort.abort(new Error('the cluster was changed'));
    this.#deps.enqueue(key);
  }

  /** The cloud accepts credentials again that it rejected before: steps that failed because of that are tried again. */
  credentialsAccepted(key: string): void {
    const failures = this.#states.get(key)?.failures;
    if (!failures) return;
    for (const [step, { error }] of failures)
      if (error.codes?.some((code) => REFUSALS.includes(code))) failures.delete(step);
    this.#deps.enqueue(key);
  }

  /** What is known about the cluster with this UID; undefined: nothing was ever begun in the cloud. */
  facts(key: string, uid: string | undefined): ManagedFacts | undefined {
    const state = this.#states.get(key);
    const receipt = this.#deps.receipts.get(key);
    const own = state?.wish.cluster.metadata.uid === uid ? state : undefined;
    return factsOf(
      own,
      // The receipt of an earlier cluster with this name, which was deleted by force, says nothing about this one.
      receipt?.owner.uid === uid ? receipt : undefined,
      own && this.#heldBack(key, own.wish),
    );
  }

  /** Forgets a deleted cluster. @returns whether resources of it may be left in the cloud. */
  async forget(key: string): Promise<boolean> {
    const state = this.#states.get(key);
    this.#states.delete(key);
    state?.running?.abort.abort(new Error('the cluster is no more'));
    await state?.connection?.close();
    return this.#deps.receipts.get(key) !== undefined;
  }

  async stop(): Promise<void> {
    const connections = [...this.#states.values()].flatMap((state) => state.connection ?? []);
    this.#states.clear();
    await Promise.all(connections.map((connection) => connection.close()));
  }

  /** Runs steps until no step is due. */
  async reconcile(key: string, shutdown: AbortSignal): Promise<{ requeueAfterMs?: number } | undefined> {
    for (let turn = 0; ; turn++) {
      // A step that succeeds and is due again at once must not flood the cloud with requests.
      if (turn > MOST_TURNS) return { requeueAfterMs: CALM_MS };
      const state = this.#states.get(key);
      if (!state) return undefined;
      shutdown.throwIfAborted();
      const { wish: asked, signature } = state;
      // The finalizer first: without it, a deletion would leave resources behind that are created now.
      if (!isHeld(asked.cluster)) return undefined;
      await this.#acceptRequest(state, shutdown);
      const receipt = this.#receipt(key, asked.cluster);
      const credentials = await this.#credentials(asked, shutdown);
      // The wish has changed in the meantime. No step runs that could be aborted, so do not begin one.
      if (state.signature !== signature || this.#states.get(key) !== state) continue;
      const now = this.#deps.now();
      const leaving = this.#deps.leaving(asked.cluster);
      const removal = dueRemoval(asked, receipt, leaving, state.connection?.answers ? state.connection : undefined);
      const wish = heldBackNodes(asked, receipt, leaving);
      const situation = situationOf(state, wish, receipt, credentials, removal);
      if (settleFailures(state, situation)) this.#deps.changed(key);
      const step = decide(situation, now);
      if (step.do === 'wait') {
        this.#seen(key, state);
        return step.until ? { requeueAfterMs: Math.max(1000, +step.until - +now) } : undefined;
      }
      if (step.do === 'release') {
        state.gone = true;
        this.#seen(key, state);
        return undefined;
      }
      const going = removal === 'waits' ? undefined : removal;
      await this.#perform(step.do, situation, { key, state, wish, receipt, credentials, removal: going }, shutdown);
    }
  }

  async #perform(
    step: StepName,
    situation: Situation,
    on: Pick<ManagedOperation, 'key' | 'state' | 'wish' | 'receipt' | 'credentials' | 'removal'>,
    shutdown: AbortSignal,
  ): Promise<void> {
    const { key, state, wish } = on;
    const deps = this.#deps;
    const abort = new AbortController();
    const signal = AbortSignal.any([shutdown, abort.signal]);
    state.running = { step, wish: situation.wish, abort };
    const type = operationType(situation);
    const visible = step === 'apply' || step === 'destroy';
    // This run only rereads from the cloud what an earlier operator wrote. Until it ends, the status keeps its content.
    const confirming = step === 'apply' && on.receipt?.unconfirmed === true && situation.applied === situation.wish;
    const pace = new Pacer(deps.clock, PROGRESS_INTERVAL_MS, () => deps.changed(key));
    // The start is reported below.
    pace.told();
    if (visible) {
      this.#say(state, { type, state: 'Processing', progress: 0, description: 'starting' });
      if (!confirming) this.#seen(key, state);
    }
    const progress = (told: CloudProgress) => {
      if (!visible || signal.aborted) return;
      this.#say(state, { type, state: 'Processing', progress: percent(told), description: told.description });
      pace.soon();
    };
    try {
      await STEPS[step]({ deps, ...on, signal, progress });
      state.failures.delete(step);
      if (visible) {
        const description = type === 'Delete' ? 'the cluster is gone' : 'the cloud matches the spec';
        this.#say(state, { type, state: 'Succeeded', progress: 100, description });
        deps.recordEvent(wish.cluster, 'Normal', type === 'Create' ? 'Created' : `${type}d`, description);
      }
    } catch (error) {
      shutdown.throwIfAborted();
      // Aborted because the wish has changed: the next turn of the loop acts on the new one.
      if (!abort.signal.aborted) this.#failed(step, situation, on, type, error);
    } finally {
      pace.stop();
      state.running = undefined;
      deps.changed(key);
    }
  }

  #failed(
    step: StepName,
    situation: Situation,
    { key, state, wish }: Pick<ManagedOperation, 'key' | 'state' | 'wish'>,
    type: LastOperation['type'],
    error: unknown,
  ): void {
    const deps = this.#deps;
    const before = state.failures.get(step);
    const failure = managedFailureOf(step, situation, error, before, deps.now(), deps.random());
    state.failures.set(step, failure);
    const { description } = failure.error;
    if (error instanceof CoppiceError && error.code === 'ERR_INFRA_RESOURCES_DEPLETED') deps.depleted(wish, error);
    deps.log.warn({ cluster: key, step, err: error, retryAt: failure.retryAt }, 'step failed');
    if (before?.error.description !== description)
      deps.recordEvent(wish.cluster, 'Warning', situation.deleting ? 'DeleteFailed' : 'ReconcileFailed', description);
    const pending = situation.deleting || situation.applied !== situation.wish;
    if (!OPERATIONS.includes(step) || (step === 'check' && !pending)) return;
    const progress = state.operation?.type === type ? state.operation.progress : 0;
    this.#say(state, {
      type,
      state: failure.retryAt ? 'Error' : 'Failed',
      progress: Math.min(99, progress),
      description,
    });
  }

  #say(state: ManagedState, next: Omit<LastOperation, 'lastUpdateTime'>): void {
    state.operation = movedOperation(state.operation, next, this.#deps.now());
  }

  #seen(key: string, state: ManagedState): void {
    const news = !state.seen || state.gone;
    state.seen = true;
    if (news || state.running) this.#deps.changed(key);
  }

  /** Somebody set the operation annotation: failed steps are tried again, and "reconcile" runs although nothing changed. */
  async #acceptRequest(state: ManagedState, signal: AbortSignal): Promise<void> {
    const { annotations, resourceVersion } = state.wish.cluster.metadata;
    const asked = annotations?.[ANNOTATIONS.operation];
    if ((asked !== 'retry' && asked !== 'reconcile') || state.acceptedRequest === resourceVersion) return;
    state.acceptedRequest = resourceVersion;
    state.failures.clear();
    state.forced ||= asked === 'reconcile';
    await this.#deps.clearRequest(state.wish.cluster, signal);
  }

  #heldBack(key: string, wish: ManagedWish): ManagedWish {
    return heldBackNodes(wish, this.#receipt(key, wish.cluster), this.#deps.leaving(wish.cluster));
  }

  #receipt(key: string, cluster: WorkerCluster): ManagedReceipt | undefined {
    const receipt = this.#deps.receipts.get(key);
    return receipt?.owner.uid === cluster.metadata.uid ? receipt : undefined;
  }

  async #credentials({ cluster, profile }: ManagedWish, signal: AbortSignal): Promise<Credentials | Error> {
    if (!profile) return new Error('without its CloudProfile nobody knows which credentials');
    try {
      return await this.#deps.credentials(cluster, profile, signal);
    } catch (error) {
      signal.throwIfAborted();
      return error instanceof Error ? error : new Error(errorText(error));
    }
  }
}

/** Whether the wish has changed so that the running step is no longer wanted. */
function isObsolete({ step, wish }: NonNullable<ManagedState['running']>, now: ManagedWish): boolean {
  if (isToBeRemoved(now)) return step !== 'destroy';
  const hash = wishHash(now);
  // An impossible spec changes nothing that exists: the step that runs is finished.
  return (step === 'apply' || step === 'look') && hash !== undefined && hash !== wish;
}

/** Without a known total, progress converges. */
const percent = ({ done, total }: CloudProgress): number =>
  Math.min(99, Math.floor((100 * done) / Math.max(1, total ?? done + 10)));
