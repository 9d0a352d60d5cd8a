import type { KubeClient } from './client.ts';
import { type Clock, sleep, systemClock } from './clock.ts';
import { KubeApiError } from './errors.ts';
import { type Log, silent } from './log.ts';
import { LEASES, type Lease } from './resources.ts';

interface LeaderElectorOptions {
  client: KubeClient;
  namespace: string;
  /** Name of the Lease. */
  name: string;
  /**
   * Different for every process that runs at the same time. A process that restarts under the same identity leads again
   * at once, even after kill -9; use that only where something else ensures a single process.
   */
  identity: string;
  /** Other replicas wait this long after the last renewal that they saw; default 15 s. */
  leaseDurationMs?: number;
  /** Leading ends when no renewal succeeded for this long; must be shorter than the lease. Default 10 s. */
  renewDeadlineMs?: number;
  /** Time between renewals, and between reads of another replica's Lease; default 4 s. */
  retryPeriodMs?: number;
  /**
   * Called when this process leads; the signal aborts when leading ends. A rejection ends leading and rejects `run`.
   */
  onStarted(signal: AbortSignal): Promise<void> | void;
  /**
   * Leading has ended involuntarily. Called when the work has ended, or after four fifths of the time between renewal
   * deadline and end of the Lease: then another replica may lead, and remaining work must be ended by force.
   */
  onLost?(): void;
  /** A renewal succeeded. @param askedAt when the write was sent, by the clock: other replicas count from later */
  onRenewed?(askedAt: number): void;
  /** The Lease was read, or reading failed. */
  onLooked?(): void;
  /** Another identity leads now. */
  onNewLeader?(identity: string): void;
  log?: Log;
  clock?: Clock;
  /** Annotation of the Lease that keeps the last twenty leaders. Absent: none are kept. */
  rememberIn?: string;
  /** Wall clock for the times in the Lease. Replicas never compare these times with their own clock. */
  now?: () => Date;
}

const REMEMBERED = 20;

/** Leader election by a Lease: at most one process leads, provided that clocks run at about the same speed. */
export class LeaderElector {
  readonly #options: LeaderElectorOptions;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #leaseMs: number;
  readonly #renewMs: number;
  readonly #retryMs: number;
  #lease: Lease | undefined;
  /** When this process last saw the Lease change, by its own clock. */
  #observedAt = 0;
  #leading = false;
  #problem: string | undefined;

  constructor(options: LeaderElectorOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silent;
    this.#leaseMs = options.leaseDurationMs ?? 15_000;
    this.#renewMs = options.renewDeadlineMs ?? 10_000;
    this.#retryMs = options.retryPeriodMs ?? 4_000;
    if (this.#renewMs >= this.#leaseMs || this.#retryMs >= this.#renewMs) {
      throw new Error('leader election needs retryPeriod < renewDeadline < leaseDuration');
    }
  }

  /** Identities of the last leaders in the Lease's annotation; may include this process. */
  get earlierLeaders(): string[] {
    const { rememberIn } = this.#options;
    const text = rememberIn === undefined ? undefined : this.#lease?.metadata.annotations?.[rememberIn];
    return text ? text.split(',') : [];
  }

  /** Why the Lease can be neither read nor written. undefined: the last request succeeded. */
  get problem(): string | undefined {
    return this.#problem;
  }

  get leading(): boolean {
    return this.#leading;
  }

  /** Holder of the Lease as last read. undefined: nobody. */
  get leader(): string | undefined {
    return this.#lease?.spec?.holderIdentity || undefined;
  }

  /**
   * Waits for leadership, leads, and resolves when leadership is lost or the signal aborts; on abort the Lease is
   * released, so that a successor need not wait for its end. Rejects with what onStarted rejects with.
   */
  async run(signal: AbortSignal): Promise<void> {
    const acquired = await this.#acquire(signal);
    if (acquired === undefined) return;
    this.#leading = true;
    this.#options.onRenewed?.(acquired);
    this.#log.info({ lease: this.#options.name, identity: this.#options.identity }, 'leading');
    const leading = new AbortController();
    const failed = Promise.withResolvers<never>();
    const work = (async () => this.#options.onStarted(leading.signal))();
    work.catch(failed.reject);
    try {
      await Promise.race([this.#renew(signal, acquired), failed.promise]);
    } finally {
      this.#leading = false;
      leading.abort(new Error('no longer leading'));
      const ended = work.catch(() => {});
      if (signal.aborted) {
        // End the work before releasing the Lease, or two replicas would work at once.
        await ended;
        await this.#release();
      } else {
        // Another replica leads soon even if work still runs here: an operation in a cloud lasts minutes.
        const graceMs = 0.8 * (this.#leaseMs - this.#renewMs);
        await Promise.race([ended, sleep(graceMs, undefined, this.#clock)]);
        this.#options.onLost?.();
      }
    }
  }

  /** Resolves with the time at which the successful write was sent. undefined: the signal aborted. */
  async #acquire(signal: AbortSignal): Promise<number | undefined> {
    while (!signal.aborted) {
      const asked = this.#clock.now();
      const isOurs = await this.#attempt(signal);
      this.#options.onLooked?.();
      if (isOurs) return asked;
      await sleep(this.#retryMs * (0.8 + Math.random() * 0.4), signal, this.#clock);
    }
    return undefined;
  }

  /** Returns when a renewal has failed for too long or the signal aborts. */
  async #renew(signal: AbortSignal, acquired: number): Promise<void> {
    let renewedAt = acquired;
    while (!signal.aborted) {
      // Not past the deadline: the time until the Lease runs out is for ending the work.
      const untilDeadline = renewedAt + this.#renewMs - this.#clock.now();
      await sleep(Math.max(1, Math.min(this.#retryMs, untilDeadline)), signal, this.#clock);
      if (signal.aborted) return;
      const asked = this.#clock.now();
      const left = renewedAt + this.#renewMs - asked;
      const limit = new AbortController();
      const cancel = this.#clock.after(Math.max(1, left), () => limit.abort(new Error('renewal took too long')));
      const renewed = left > 0 && (await this.#attempt(AbortSignal.any([signal, limit.signal])));
      cancel();
      this.#options.onLooked?.();
      if (renewed) {
        renewedAt = asked;
        this.#options.onRenewed?.(asked);
        continue;
      }
      const other = this.leader;
      if (other && other !== this.#options.identity) {
        this.#log.warn({ lease: this.#options.name, leader: other }, 'leadership was taken over');
        return;
      }
      if (this.#clock.now() - renewedAt >= this.#renewMs) {
        this.#log.warn({ lease: this.#options.name }, 'leadership lost: the lease could not be renewed in time');
        return;
      }
    }
  }

  /** One try to get or keep the lease. */
  async #attempt(signal: AbortSignal): Promise<boolean> {
    const { client, namespace, name, identity } = this.#options;
    try {
      // While leading, the Lease in memory is the newest unless the write conflicts: one request instead of two.
      if (!this.#leading) this.#see(await client.getOrUndefined<Lease>(LEASES, name, namespace, { signal }));
      const held = this.#lease?.spec?.holderIdentity;
      const runsOutAt = this.#observedAt + (this.#lease?.spec?.leaseDurationSeconds ?? 0) * 1000;
      this.#problem = undefined;
      if (held && held !== identity && this.#clock.now() < runsOutAt) return false;

      const time = this.#now();
      const spec = this.#lease?.spec;
      const next: Lease = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: this.#remembering(this.#lease?.metadata ?? { name, namespace }),
        spec: {
          ...spec,
          holderIdentity: identity,
          leaseDurationSeconds: Math.ceil(this.#leaseMs / 1000),
          acquireTime: held === identity ? (spec?.acquireTime ?? time) : time,
          renewTime: time,
          leaseTransitions: (spec?.leaseTransitions ?? 0) + (held === identity || !this.#lease ? 0 : 1),
        },
      };
      // At the deadline another replica may lead: a write that still waits for its answer must not count.
      const options = { signal, abandon: true };
      this.#see(this.#lease ? await client.update(next, options) : await client.create(next, options));
      this.#problem = undefined;
      return true;
    } catch (error) {
      if (error instanceof KubeApiError && error.status === 409) {
        // Another replica was faster, or our own write got through without its answer: read again.
        this.#see(await client.getOrUndefined<Lease>(LEASES, name, namespace, { signal }).catch(() => this.#lease));
        if (this.#leading && this.leader === identity) return this.#attemptAgain(signal);
        return false;
      }
      if (!signal.aborted) this.#log.warn({ err: error, lease: name }, 'lease could not be written');
      this.#problem = `Lease ${namespace}/${name} cannot be read or written: ${error instanceof Error ? error.message : String(error)}`;
      return false;
    }
  }

  /**
   * Adds this process to the list of leaders. Written when leading begins, because a killed process can write nothing.
   */
  #remembering(metadata: Lease['metadata']): Lease['metadata'] {
    const { rememberIn, identity } = this.#options;
    const known = this.earlierLeaders;
    if (rememberIn === undefined || known.includes(identity)) return metadata;
    const leaders = [...known, identity].slice(-REMEMBERED).join(',');
    return { ...metadata, annotations: { ...metadata.annotations, [rememberIn]: leaders } };
  }

  async #attemptAgain(signal: AbortSignal): Promise<boolean> {
    const { client } = this.#options;
    const lease = this.#lease!;
    try {
      this.#see(
        await client.update({ ...lease, spec: { ...lease.spec, renewTime: this.#now() } }, { signal, abandon: true }),
      );
      return true;
    } catch {
      return false;
    }
  }

  async #release(): Promise<void> {
    const { client, namespace, name, identity } = this.#options;
    const giveBack = async (lease: Lease | undefined) => {
      if (lease?.spec?.holderIdentity !== identity) return;
      const spec = { ...lease.spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: this.#now() };
      await client.update({ ...lease, spec }, { signal: AbortSignal.timeout(2000) });
    };
    try {
      await giveBack(this.#lease).catch(async (error: unknown) => {
        // A renewal that was aborted may have got through: without another try nobody leads until the Lease runs out.
        if (!(error instanceof KubeApiError && error.status === 409)) throw error;
        await giveBack(
          await client.getOrUndefined<Lease>(LEASES, name, namespace, { signal: AbortSignal.timeout(2000) }),
        );
      });
    } catch (error) {
      this.#log.debug({ err: error, lease: name }, 'lease could not be given back; it will run out');
    }
  }

  #see(lease: Lease | undefined): void {
    if (lease?.metadata.resourceVersion !== this.#lease?.metadata.resourceVersion) this.#observedAt = this.#clock.now();
    const before = this.leader;
    this.#lease = lease;
    if (lease) delete lease.metadata.managedFields;
    if (this.leader && this.leader !== before) this.#options.onNewLeader?.(this.leader);
  }

  #now(): string {
    // metav1.MicroTime requires six digits.
    return (this.#options.now?.() ?? new Date()).toISOString().replace('Z', '000Z');
  }
}
