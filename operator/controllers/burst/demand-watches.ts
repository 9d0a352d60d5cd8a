import type { DemandWatch } from '../../hubs/contract.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import type { Log } from '../../kube/log.ts';
import type { KubeObject } from '../../kube/resources.ts';

/** What is kept of an object: hubs have many, and each may be large. */
type Kept = KubeObject & { readonly said?: string | undefined };

/** Has news of what hubs have no place for heard of at once: a look comes only every few seconds. */
export class DemandWatches {
  readonly #watches = new Map<string, { readonly client: KubeClient; readonly informers: readonly Informer<Kept>[] }>();
  readonly #log: Log;
  readonly #changed: (hub: string) => void;

  constructor(log: Log, changed: (hub: string) => void) {
    this.#log = log;
    this.#changed = changed;
  }

  /** From now on; nothing new where it is followed already by this client. */
  follow(hub: string, client: KubeClient, { resources, says }: DemandWatch): void {
    const known = this.#watches.get(hub);
    if (known?.client === client) return;
    void stop(known?.informers);
    const transform = (object: KubeObject): Kept => {
      const { apiVersion, kind, metadata } = object;
      const { name, namespace, uid, resourceVersion } = metadata;
      const kept = {
        name,
        ...(namespace && { namespace }),
        ...(uid && { uid }),
        ...(resourceVersion && { resourceVersion }),
      };
      return { apiVersion, kind, metadata: kept, said: says(object) };
    };
    const informers = resources.map((resource) => new Informer<Kept>(client, resource, { transform, log: this.#log }));
    for (const informer of informers) {
      // Where things were placed nobody asks here.
      informer.onChange((event) => {
        const before = event.type === 'updated' ? event.old.said : undefined;
        const now = event.type === 'deleted' ? undefined : event.object.said;
        if (before !== now || (event.type === 'deleted' && event.object.said !== undefined)) this.#changed(hub);
      });
      informer.start();
    }
    this.#watches.set(hub, { client, informers });
  }

  async forget(hub: string): Promise<void> {
    const known = this.#watches.get(hub);
    this.#watches.delete(hub);
    await stop(known?.informers);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#watches.keys()].map((hub) => this.forget(hub)));
  }
}

const stop = (informers: readonly Informer<Kept>[] = []): Promise<unknown> =>
  Promise.all(informers.map((informer) => informer.stop()));
