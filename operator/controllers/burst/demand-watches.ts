import type { DemandWatch } from '../../hubs/contract.ts';
import type { KubeClient } from '../../kube/client.ts';
import { systemClock } from '../../kube/clock.ts';
import { Informer } from '../../kube/informer.ts';
import type { Log } from '../../kube/log.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { Pacer } from '../pacer.ts';

/** What is kept of an object: hubs have many, and each may be large. */
type Kept = KubeObject & { readonly said?: string | undefined };

/** How often it is told of, milliseconds: a scheduler that has much to place writes often, and each look asks the hub for all of it. */
interface NewsTimes {
  /** So long the first news wait for others of the same moment. */
  readonly settleMs: number;
  /** From one telling to the next, at least. */
  readonly intervalMs: number;
}

const TIMES: NewsTimes = { settleMs: 100, intervalMs: 500 };

interface Followed {
  readonly client: KubeClient;
  readonly informers: readonly Informer<Kept>[];
  readonly pacer: Pacer;
}

/** Has news of what hubs have no place for heard of at once: a look comes only every few seconds. */
export class DemandWatches {
  readonly #watches = new Map<string, Followed>();
  readonly #log: Log;
  readonly #changed: (hub: string) => void;
  readonly #times: NewsTimes;

  constructor(log: Log, changed: (hub: string) => void, times = TIMES) {
    this.#log = log;
    this.#changed = changed;
    this.#times = times;
  }

  /** From now on; nothing new where it is followed already by this client. */
  follow(hub: string, client: KubeClient, { resources, says }: DemandWatch): void {
    const known = this.#watches.get(hub);
    if (known?.client === client) return;
    void stop(known);
    const { settleMs, intervalMs } = this.#times;
    const pacer = new Pacer(systemClock, intervalMs, () => this.#changed(hub));
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
        if (before !== now || (event.type === 'deleted' && event.object.said !== undefined)) pacer.soon(settleMs);
      });
      informer.start();
    }
    this.#watches.set(hub, { client, informers, pacer });
  }

  async forget(hub: string): Promise<void> {
    const known = this.#watches.get(hub);
    this.#watches.delete(hub);
    await stop(known);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#watches.keys()].map((hub) => this.forget(hub)));
  }
}

function stop(followed: Followed | undefined): Promise<unknown> {
  followed?.pacer.stop();
  return Promise.all(followed?.informers.map((informer) => informer.stop()) ?? []);
}
