import { setTimeout as sleep } from 'node:timers/promises';
import { errorText } from '../../operator/api/errors.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import { CONFIGMAPS, type ConfigMap } from '../../operator/kube/resources.ts';

/** Writes without pause, one request after another, and remembers what the API server has confirmed. */
export class Writer {
  readonly acknowledged: string[] = [];
  refused = 0;
  /** One after the other: whoever tries again meets the next server. */
  mostRefusedInARow = 0;
  /** What the last of them were told. */
  readonly refusals: string[] = [];
  /** Between two that were confirmed. */
  longestPauseMs = 0;
  /** Value of the ConfigMap `counter` that was confirmed last. */
  counter = 0;
  readonly #client: KubeClient;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #confirmedAt: number | undefined;

  constructor(client: KubeClient) {
    this.#client = client;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const path = '/api/v1/namespaces/default/configmaps';
    // One try each: a second one would hide whether the first was carried out.
    const options = { retries: 0, timeoutMs: 10_000 };
    let inARow = 0;
    for (let i = 1; !this.#stopping.signal.aborted; i++) {
      const name = `key-${i}`;
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels: { writer: 'yes' } } };
      try {
        await this.#client.request('POST', path, { body, ...options });
        this.acknowledged.push(name);
        const counter = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'counter' }, data: { value: `${i}` } };
        await this.#client.request('PATCH', `${path}/counter`, {
          body: counter,
          contentType: 'application/apply-patch+yaml',
          query: { fieldManager: 'writer', force: true },
          ...options,
        });
        this.counter = i;
        inARow = 0;
        const now = performance.now();
        this.longestPauseMs = Math.max(this.longestPauseMs, now - (this.#confirmedAt ?? now));
        this.#confirmedAt = now;
      } catch (error) {
        this.refused++;
        this.mostRefusedInARow = Math.max(this.mostRefusedInARow, ++inARow);
        this.refusals.splice(0, this.refusals.length - 4);
        this.refusals.push(errorText(error));
      }
      await sleep(10);
    }
  }

  /** Names of what was confirmed and is not there, after it has stopped. */
  async lost(): Promise<string[]> {
    const { items } = await this.#client.list<ConfigMap>(CONFIGMAPS, {
      namespace: 'default',
      labelSelector: 'writer=yes',
    });
    const there = new Set(items.map(({ metadata }) => metadata.name));
    return this.acknowledged.filter((name) => !there.has(name));
  }
}
