import type { KubeClient } from '../../../operator/kube/client.ts';
import { Informer } from '../../../operator/kube/informer.ts';
import type { KubeObject, Resource } from '../../../operator/kube/resources.ts';

const PATIENCE_MS = 120_000;

/** Somebody else's controller in a hub: sees to everything again whenever something of these kinds has changed, one time after the other. */
export abstract class StandIn {
  readonly client: KubeClient;
  /** What its last look at things ended with. */
  failure: unknown;
  readonly #caches: Map<Resource, Informer>;
  #run: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(client: KubeClient, kinds: readonly Resource[]) {
    this.client = client;
    this.#caches = new Map(kinds.map((kind) => [kind, new Informer(client, kind)]));
  }

  async start(): Promise<void> {
    for (const cache of this.#caches.values()) {
      cache.onChange(() => this.look());
      cache.start();
      await cache.whenSynced(AbortSignal.timeout(PATIENCE_MS));
    }
    this.look();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#run;
    await Promise.all([...this.#caches.values()].map((cache) => cache.stop()));
  }

  /** To be called when something has changed that no kind of its tells. */
  look(): void {
    this.#run = this.#run.then(async () => {
      if (this.#stopped) return;
      try {
        await this.reconcile();
        this.failure = undefined;
      } catch (error) {
        this.failure = error;
      }
    });
  }

  /** What there is now, of one kind. */
  async list<T extends KubeObject>(kind: Resource): Promise<T[]> {
    return (await this.client.list<T>(kind)).items;
  }

  protected abstract reconcile(): Promise<void>;
}
