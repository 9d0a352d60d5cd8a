import type { DemandWatch } from '../../hubs/contract.ts';
import type { KubeClient } from '../../kube/client.ts';
import { systemClock } from '../../kube/clock.ts';
import { Informer } from '../../kube/informer.ts';
import type { Log } from '../../kube/log.ts';
import type { KubeObject } from '../../kube/resources.ts';
import { Pacer } from '../pacer.ts';

/** Kept part of an object: hubs have many large ones. */
type Kept = KubeObject & { readonly said?: string | undefined };

/** Rate of notifications, milliseconds: a busy scheduler writes often, and each cycle reads all objects of the hub. */
interface NewsTimes {
  /** Delay of the first notification, to collect others. */
  readonly settleMs: number;
  /** Shortest interval. */
  readonly intervalMs: number;
}

const TIMES: NewsTimes = { settleMs: 100, intervalMs: 500 };

interface Followed {
  readonly client: KubeClient;
  readonly informers: readonly Informer<Kept>[];
  readonly pacer: Pacer;
}

/** Watches hubs for unplaced work, because cycles are seconds apart. */
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

  /** Starts watching; no change when watched by this client already. */
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
      // Placement is not watched here.
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
