import type { KubeClient } from './client.ts';
import { type Clock, sleep, systemClock } from './clock.ts';
import { KubeApiError } from './errors.ts';
import { type Log, silent } from './log.ts';
import { LEASES, type Lease } from './resources.ts';

export interface LeaderElectorOptions {
  client: KubeClient;
  namespace: string;
  /** Name of the Lease. */
  name: string;
  /**
   * Different for every process that runs at the same time. A process that comes back under the identity it had before
   * (possible where something else makes sure that there is one only) leads again at once, even after a kill -9.
   */
  identity: string;
  /** Others wait this long after the last renewal they saw; default 15 s. */
  leaseDurationMs?: number;
  /** Leading ends when no renewal succeeded for this long; must be shorter than the lease. Default 10 s. */
  renewDeadlineMs?: number;
  /** Time between renewals, and between looks at somebody else's lease; default 4 s. */
  retryPeriodMs?: number;
  /** Leading has begun; the signal aborts when it ends. A rejection ends leading and the run. */
  onStarted(signal: AbortSignal): Promise<void> | void;
  /**
   * Leading has ended against our will. Called when the work has ended, or has not within four fifths of the time between the renewal
   * deadline and the lease's end: then another may lead, and whatever still runs here must be ended by force.
   */
  onLost?(): void;
  /** The Lease is ours. @param askedAt when its write was sent, by the clock: others count from later */
  onRenewed?(askedAt: number): void;
  /** The Lease was looked at, or could not be. */
  onLooked?(): void;
  /** Another identity leads now. */
  onNewLeader?(identity: string): void;
  log?: Log;
  clock?: Clock;
  /** Annotation of the Lease in which the last twenty who led are kept; absent: nobody is remembered. */
  rememberIn?: string;
  /** For the times in the Lease; default the wall clock. Nobody compares them with their own clock. */
  now?: () => Date;
}

const REMEMBERED = 20;

/** Leadership by a Lease: at most one process leads, provided clocks run at about the same speed. */
export class LeaderElector {
  readonly #options: LeaderElectorOptions;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #leaseMs: number;
  readonly #renewMs: number;
  readonly #retryMs: number;
  #lease: Lease | undefined;
  /** When we saw the lease change last, by our own clock. */
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

  /** Identities of the last who led, as far as the Lease remembers them; this process may be among them. */
  get earlierLeaders(): string[] {
    const { rememberIn } = this.#options;
    const text = rememberIn === undefined ? undefined : this.#lease?.metadata.annotations?.[rememberIn];
    return text ? text.split(',') : [];
  }

  /** Why the Lease can be neither read nor written at present; undefined while it can. */
  get problem(): string | undefined {
    return this.#problem;
  }

  get leading(): boolean {
    return this.#leading;
  }

  /** Identity in the lease as last seen; undefined when nobody holds it. */
  get leader(): string | undefined {
    return this.#lease?.spec?.holderIdentity || undefined;
  }

  /**
   * Waits for leadership, leads, and resolves when leadership is lost or the signal aborts (then the lease is given
   * back, so that a successor need not wait for it to run out). Rejects with what onStarted rejects with.
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
        // Before the lease is free our work must have ended, or two would work at the same time.
        await ended;
        await this.#release();
      } else {
        // Another leads soon, whatever still runs here: an operation in a cloud lasts minutes.
        const graceMs = 0.8 * (this.#leaseMs - this.#renewMs);
        await Promise.race([ended, sleep(graceMs, undefined, this.#clock)]);
        this.#options.onLost?.();
      }
    }
  }

  /** Resolves to when the write was sent with which the Lease became ours; undefined: the signal aborted. */
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
      // Not past the deadline: what is left until the lease runs out is for ending the work.
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
      // Leading, the lease in hand is the newest one, unless the write says otherwise: one request instead of two.
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
      // At the deadline others may lead: who still waited for an answer would lead beside them.
      const options = { signal, abandon: true };
      this.#see(this.#lease ? await client.update(next, options) : await client.create(next, options));
      this.#problem = undefined;
      return true;
    } catch (error) {
      if (error instanceof KubeApiError && error.status === 409) {
        // Somebody else was quicker (or a write of ours got through whose answer did not): look again.
        this.#see(await client.getOrUndefined<Lease>(LEASES, name, namespace, { signal }).catch(() => this.#lease));
        if (this.#leading && this.leader === identity) return this.#attemptAgain(signal);
        return false;
      }
      if (!signal.aborted) this.#log.warn({ err: error, lease: name }, 'lease could not be written');
      this.#problem = `Lease ${namespace}/${name} cannot be read or written: ${error instanceof Error ? error.message : String(error)}`;
      return false;
    }
  }

  /** With this process among those who led: noted when leading begins, because a process that is killed can note nothing. */
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
        // A renewal that the stop cut off may have got through: nobody would lead until it has run out.
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
    // metav1.MicroTime insists on six digits.
    return (this.#options.now?.() ?? new Date()).toISOString().replace('Z', '000Z');
  }
}
