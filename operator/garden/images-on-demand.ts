import { mkdir, watch } from 'node:fs/promises';
import { ANNOTATIONS } from '../api/group.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Log } from '../kube/log.ts';
import { PODS, type Pod } from '../kube/resources.ts';
import { askedFor } from './images/asked.ts';
import { IMAGES_ON_DEMAND, makeOnDemand, type OnDemand } from './seed-images.ts';
import type { GardenProgress } from './status.ts';
import type { ProgressEvent } from './toolchain/progress.ts';
import type { Toolchain } from './toolchain/toolchain.ts';

/** How often people are told how far it is: each time is a write to each pod that waits. */
const TELL_MS = 20_000;
/** Compiling takes minutes: seconds would be wrong, and another write each time. */
const MINUTE_S = 60;

export interface OnDemandOptions {
  /** Where the mirror leaves a file for each image that it was asked for and that is still to be made. */
  readonly asked: string;
  /** Another one than the garden's: what it says is about images on demand alone. */
  readonly openToolchain: (onProgress: (event: ProgressEvent) => void) => Toolchain;
  readonly client: KubeClient;
  readonly state?: { readonly rootless?: true };
  readonly log: Log;
  /** Aborted when the garden stops. */
  readonly signal: AbortSignal;
  readonly say: (stage: string, message: string, more?: Partial<GardenProgress>) => void;
}

/**
 * Makes images that few gardens need, for example of a Kubernetes that the garden itself does not run on, once a cluster asks for one of them.
 * What was asked for once is made again after a restart, which costs nothing where it is in the cache.
 */
export class ImagesOnDemand {
  readonly #options: OnDemandOptions;
  readonly #toolchain: Toolchain;
  readonly #made = new Set<OnDemand>();
  #making: OnDemand | undefined;
  #far = '';
  #toldAt = Number.NEGATIVE_INFINITY;
  /** Pods are told one thing after the other. */
  #telling: Promise<void> = Promise.resolve();
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

  /** Resolves when nothing is made any more; the signal ends it. */
  async stop(): Promise<void> {
    await this.#ended;
    await this.#toolchain.close();
  }

  async #run(): Promise<void> {
    const { asked, signal } = this.#options;
    await mkdir(asked, { recursive: true, mode: 0o700 });
    const changes = watch(asked, { signal });
    await this.#makeAsked();
    for await (const _ of changes) await this.#makeAsked();
  }

  async #makeAsked(): Promise<void> {
    const { asked, state, signal, say } = this.#options;
    const all = (await askedFor(asked)).map((name) => IMAGES_ON_DEMAND.get(name));
    for (const wanted of new Set(all)) {
      if (wanted === undefined || this.#made.has(wanted)) continue;
      this.#making = wanted;
      this.#far = '';
      say('images', `building ${wanted.what}, which a cluster needs`);
      await makeOnDemand(wanted, { toolchain: this.#toolchain, state, signal, say });
      if (signal.aborted) return;
      this.#making = undefined;
      await this.#tell(wanted, null);
      this.#made.add(wanted);
      say('images', `${wanted.what} is there`, { fraction: 1 });
    }
  }

  #progress({ tool, phase, fraction, remainingSeconds }: ProgressEvent): void {
    const making = this.#making;
    const now = performance.now();
    if (making === undefined || phase !== 'working' || now - this.#toldAt < TELL_MS) return;
    this.#toldAt = now;
    const minutes = remainingSeconds === undefined ? undefined : Math.max(1, Math.ceil(remainingSeconds / MINUTE_S));
    const far = `this machine is building ${making.what}${minutes === undefined ? '' : `, about ${minutes} min left`}`;
    this.#options.say('images', far, { tool, ...(fraction !== undefined && { fraction }) });
    if (far === this.#far) return;
    this.#far = far;
    void this.#tell(making, far);
  }

  #tell(made: OnDemand, far: string | null): Promise<void> {
    this.#telling = this.#telling.then(() => this.#tellPods(made, far)).catch((error: Error) => this.#untold(error));
    return this.#telling;
  }

  /**
   * Whoever asks why a cluster does not come looks at its status, and that is made of what its pods say.
   * @param far null: it is there, so that an image that cannot be pulled is one again
   */
  async #tellPods(made: OnDemand, far: string | null): Promise<void> {
    const { client, signal } = this.#options;
    const isOf = ({ spec }: Pod) => spec.containers.some(({ image = '' }) => IMAGES_ON_DEMAND.get(image) === made);
    const isWaiting = ({ status }: Pod) => status?.phase === 'Pending';
    const isTold = ({ metadata }: Pod) => metadata.annotations?.[ANNOTATIONS.imageProgress] !== undefined;
    const { items } = await client.list<Pod>(PODS, { signal });
    const told = { metadata: { annotations: { [ANNOTATIONS.imageProgress]: far } } };
    // It may be gone since: the others are told all the same.
    for (const { metadata } of items.filter((pod) => isOf(pod) && (far === null ? isTold(pod) : isWaiting(pod))))
      await client
        .mergePatch(PODS, metadata.name, metadata.namespace, told, { signal })
        .catch((error: Error) => this.#untold(error));
  }

  #untold(error: Error): void {
    this.#options.log.info({ error: error.message }, 'a pod is not told how far its image is');
  }
}
