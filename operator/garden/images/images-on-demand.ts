import { on } from 'node:events';
import { watch } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { ANNOTATIONS } from '../../api/group.ts';
import type { KubeClient } from '../../kube/client.ts';
import { InTurn } from '../../kube/in-turn.ts';
import type { Log } from '../../kube/log.ts';
import { PODS, type Pod } from '../../kube/resources.ts';
import type { GardenProgress } from '../state/garden-progress.ts';
import type { ProgressEvent } from '../toolchain/progress.ts';
import type { Toolchain } from '../toolchain/toolchain.ts';
import { askedFor } from './asked.ts';
import { IMAGES_ON_DEMAND, makeOnDemand, type OnDemand } from './on-demand-catalog.ts';
import { againAfterMs } from './wanted-files.ts';

/** Interval of progress reports: each writes to every waiting pod. */
const TELL_MS = 20_000;
/** Compiling takes minutes: seconds would be inaccurate, and each change a write. */
const MINUTE_S = 60;
/** Longest reason on pods and in cluster status, in characters: a failed build prints many lines. */
const LONGEST_REASON = 200;

interface OnDemandOptions {
  /** Folder with a file for each requested image that must still be built. */
  readonly asked: string;
  /** A separate toolchain, whose progress is about these images only. */
  readonly openToolchain: (onProgress: (event: ProgressEvent) => void) => Toolchain;
  readonly client: KubeClient;
  readonly state?: { readonly rootless?: true };
  readonly log: Log;
  /** Aborted when the garden stops. */
  readonly signal: AbortSignal;
  readonly say: (stage: string, message: string, more?: Partial<GardenProgress>) => void;
  /** Replacement of the real waits (ms) by number of failed rounds, for tests. */
  readonly againAfterMs?: (rounds: number) => number;
}

/** State of an image for its pods, at most one of the two; neither: the image exists. */
type News = { readonly [key in 'progress' | 'failure']?: string };

/**
 * Builds images that few gardens need, for example of another Kubernetes version, once a cluster requests one.
 * Requested images are built again after a restart, which is free for cached ones.
 */
export class ImagesOnDemand {
  readonly #options: OnDemandOptions;
  readonly #toolchain: Toolchain;
  readonly #begun = new Map<OnDemand, Promise<void>>();
  /** Sequential, since each build uses all processors. A build that waits for its retry does not block others. */
  readonly #tries = new InTurn();
  #making: OnDemand | undefined;
  #toldAt = Number.NEGATIVE_INFINITY;
  /** Last report for each pending build. */
  readonly #news = new Map<OnDemand, News>();
  /** Reports to pods are sequential. */
  readonly #telling = new InTurn();
  #ended: Promise<void> | undefined;

  constructor(options: OnDemandOptions) {
    this.#options = options;
    this.#toolchain = options.openToolchain((event) => this.#progress(event));
  }

  start(): void {
    this.#ended = this.#run().catch((error: Error) => {
      if (!this.#options.signal.aborted)
        this.#options.log.warn({ error: error.message }, 'this garden builds no images on demand');
    });
  }

  /** Resolves when no build runs any more; the signal ends them. */
  async stop(): Promise<void> {
    await this.#ended;
    await Promise.all(this.#begun.values());
    await this.#toolchain.close();
  }

  async #run(): Promise<void> {
    const { asked, signal } = this.#options;
    await mkdir(asked, { recursive: true, mode: 0o700 });
    // Watches from this point on, not from the first wait as fs/promises does, which missed requests in between.
    const changes = on(watch(asked, { signal }), 'change', { signal });
    await this.#makeAsked();
    for await (const _ of changes) await this.#makeAsked();
  }

  async #makeAsked(): Promise<void> {
    const all = (await askedFor(this.#options.asked)).map((name) => IMAGES_ON_DEMAND.get(name));
    for (const wanted of new Set(all)) {
      if (wanted === undefined) continue;
      if (!this.#begun.has(wanted)) this.#begun.set(wanted, this.#make(wanted));
      // A pod created since the last report would have none.
      else if (this.#news.has(wanted)) await this.#tell(wanted);
    }
  }

  /** Retries until the image exists or the garden stops. Never rejects. */
  async #make(wanted: OnDemand): Promise<void> {
    const { signal, say } = this.#options;
    for (let rounds = 1; !signal.aborted; rounds++) {
      const error = await this.#tries.run(() => this.#try(wanted));
      if (signal.aborted) return;
      if (!error) {
        this.#news.delete(wanted);
        await this.#tell(wanted);
        say('images', `${wanted.what} is there`, { fraction: 1 });
        return;
      }
      const waitMs = (this.#options.againAfterMs ?? againAfterMs)(rounds);
      const again = new Date(Date.now() + waitMs).toISOString().slice(11, 16);
      const failure = `this machine cannot make ${wanted.what}, and tries again at ${again} UTC: ${reasonOf(error)}`;
      this.#news.set(wanted, { failure });
      await this.#tell(wanted);
      await sleep(waitMs, undefined, { signal }).catch(() => {});
    }
  }

  async #try(wanted: OnDemand): Promise<Error | undefined> {
    const { state, signal, say } = this.#options;
    if (signal.aborted) return undefined;
    this.#making = wanted;
    // After a failure progress is reported at once, not 20 s later.
    this.#toldAt = Number.NEGATIVE_INFINITY;
    say('images', `building ${wanted.what}, which a cluster has asked for`);
    try {
      return await makeOnDemand(wanted, { toolchain: this.#toolchain, state, signal, say });
    } finally {
      this.#making = undefined;
    }
  }

  #progress({ tool, phase, fraction, remainingSeconds }: ProgressEvent): void {
    const making = this.#making;
    const now = performance.now();
    if (making === undefined || phase !== 'working' || now - this.#toldAt < TELL_MS) return;
    this.#toldAt = now;
    const minutes = remainingSeconds === undefined ? undefined : Math.max(1, Math.ceil(remainingSeconds / MINUTE_S));
    const progress = `this machine is building ${making.what}${minutes === undefined ? '' : `, about ${minutes} min left`}`;
    this.#options.say('images', progress, { tool, ...(fraction !== undefined && { fraction }) });
    if (progress === this.#news.get(making)?.progress) return;
    this.#news.set(making, { progress });
    void this.#tell(making);
  }

  /** Reports the latest state to pods. Never rejects. */
  #tell(wanted: OnDemand): Promise<void> {
    return this.#telling.run(() => this.#tellPods(wanted)).catch((error: Error) => this.#untold(error));
  }

  /** Cluster status, in which people look for the reason of a delay, is derived from the pods' annotations. */
  async #tellPods(wanted: OnDemand): Promise<void> {
    const { client, signal } = this.#options;
    const { items } = await client.list<Pod>(PODS, { signal });
    const { progress, failure } = this.#news.get(wanted) ?? {};
    const told = Object.entries({ [ANNOTATIONS.imageProgress]: progress, [ANNOTATIONS.imageFailure]: failure });
    const isOf = ({ spec }: Pod) => spec.containers.some(({ image = '' }) => IMAGES_ON_DEMAND.get(image) === wanted);
    const isTold = ({ metadata }: Pod) => told.every(([key, said]) => metadata.annotations?.[key] === said);
    // Running pods are only told that their image exists.
    const isWaiting = ({ status }: Pod) => !this.#news.has(wanted) || status?.phase === 'Pending';
    const patch = { metadata: { annotations: Object.fromEntries(told.map(([key, said]) => [key, said ?? null])) } };
    // A deleted pod must not stop the reports to others.
    for (const { metadata } of items.filter((pod) => isOf(pod) && isWaiting(pod) && !isTold(pod)))
      await client
        .mergePatch(PODS, metadata.name, metadata.namespace, patch, { signal })
        .catch((error: Error) => this.#untold(error));
  }

  #untold(error: Error): void {
    this.#options.log.info({ error: error.message }, 'a pod is not told how far its image is');
  }
}

/** A bounded one-line reason of a failed build, without credentials in URLs of proxies or registries. */
function reasonOf({ message }: Error): string {
  const line = message
    .replace(/\s+/g, ' ')
    .replace(/\/\/[^\s/@]*@/g, '//')
    .trim();
  return line.length > LONGEST_REASON ? `${line.slice(0, LONGEST_REASON)}…` : line;
}
