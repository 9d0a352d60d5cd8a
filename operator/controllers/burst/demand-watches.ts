import type { DemandWatch } from '../../hubs/contract.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import type { Log } from '../../kube/log.ts';
import type { KubeObject } from '../../kube/resources.ts';

/** Has news of what hubs have no place for heard of at once: a look comes only every few seconds. */
export class DemandWatches {
  readonly #watches = new Map<string, { readonly client: KubeClient; readonly informer: Informer }>();
  readonly #log: Log;
  readonly #changed: (hub: string) => void;

  constructor(log: Log, changed: (hub: string) => void) {
    this.#log = log;
    this.#changed = changed;
  }

  /** From now on; nothing new where it is followed already by this client. */
  follow(hub: string, client: KubeClient, { resource, says }: DemandWatch): void {
    const known = this.#watches.get(hub);
    if (known?.client === client) return;
    void known?.informer.stop();
    const informer = new Informer(client, resource, { transform: onlyMetadata, log: this.#log });
    // Where things were placed nobody asks here.
    informer.onChange((event) => {
      const before = event.type === 'updated' ? says(event.old) : undefined;
      const now = event.type === 'deleted' ? undefined : says(event.object);
      if (before !== now || event.type === 'deleted') this.#changed(hub);
    });
    informer.start();
    this.#watches.set(hub, { client, informer });
  }

  async forget(hub: string): Promise<void> {
    const known = this.#watches.get(hub);
    this.#watches.delete(hub);
    await known?.informer.stop();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#watches.keys()].map((hub) => this.forget(hub)));
  }
}

const onlyMetadata = ({ apiVersion, kind, metadata }: KubeObject): KubeObject => ({ apiVersion, kind, metadata });
