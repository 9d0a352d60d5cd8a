import { isNotFound } from '../../../operator/kube/errors.ts';
import { Informer } from '../../../operator/kube/informer.ts';
import { DEPLOYMENTS, type KubeObject } from '../../../operator/kube/resources.ts';
import type { TestApiserver } from '../apiserver.ts';

type Deployment = KubeObject & {
  spec: { replicas?: number };
  status?: { observedGeneration?: number };
};

const PATIENCE_MS = 120_000;

/** Runs the replicas of Deployments in members that have no kubelets, as far as anybody can see from their status. */
export class Replicas {
  readonly #counted: string;
  readonly #caches: Informer<Deployment>[] = [];
  readonly #running = new Map<string, number>();
  #fewest = Number.POSITIVE_INFINITY;
  #failure: unknown;

  /** @param counted name of the Deployment in namespace shop whose replicas are counted */
  constructor(counted: string) {
    this.#counted = counted;
  }

  /** @param member its name and API server */
  async runIn(member: string, { client }: TestApiserver): Promise<void> {
    const cache = new Informer<Deployment>(client, DEPLOYMENTS, { namespace: 'shop' });
    this.#caches.push(cache);
    cache.onChange(({ type, object }) => {
      const { name, generation } = object.metadata;
      const { replicas = 1 } = object.spec;
      if (name === this.#counted) this.#runs(member, type === 'deleted' ? 0 : replicas);
      if (type === 'deleted' || object.status?.observedGeneration === generation) return;
      const counts = { replicas, updatedReplicas: replicas, readyReplicas: replicas, availableReplicas: replicas };
      const status = { observedGeneration: generation, ...counts };
      client.mergePatch(DEPLOYMENTS, name, 'shop', { status }, { subresource: 'status' }).catch((error: unknown) => {
        if (!isNotFound(error)) this.#failure = error;
      });
    });
    cache.start();
    await cache.whenSynced(AbortSignal.timeout(PATIENCE_MS));
  }

  /** How many of those that are counted run now, in all members. */
  get running(): number {
    return [...this.#running.values()].reduce((sum, one) => sum + one, 0);
  }

  /** From now on the fewest that ran at any moment are told. @returns tells them */
  watch(): () => number {
    this.#fewest = this.running;
    return () => {
      if (this.#failure) throw this.#failure;
      return this.#fewest;
    };
  }

  async stop(): Promise<void> {
    await Promise.all(this.#caches.map((cache) => cache.stop()));
  }

  /** What grows is counted before its status can tell Karmada of it: what goes elsewhere because of that goes after it. */
  #runs(member: string, replicas: number): void {
    this.#running.set(member, replicas);
    this.#fewest = Math.min(this.#fewest, this.running);
  }
}
