import type { KubeClient } from '../kube/client.ts';
import type { Node, Pod } from '../kube/resources.ts';
import type { ChangeEvent } from '../kube/store.ts';

/** A watched collection of a cluster's objects. */
interface Watched<T> {
  list(): T[];
  /**
   * Calls the handler for each existing object and after each change; returns a function that ends it. Absent: changes
   * are not reported.
   */
  onChange?(handler: (event: ChangeEvent<T>) => void): () => void;
}

/** An open cluster: its client and its watched objects. */
export interface OpenCluster {
  readonly client: KubeClient;
  /** URL of the API server as the operator reaches it. */
  readonly server: string;
  /** UID of the namespace kube-system, where the opener verified it. */
  readonly identity?: string;
  /** False from when the API server was found not to answer until it answers again. */
  readonly answers: boolean;
  readonly nodes: Watched<Node>;
  readonly pods: Watched<Pod>;
  /** Calls the listener once, when the connection ends. */
  onStop(listener: () => void): void;
}

/** The open clusters, by `namespace/name` of their Shoot or WorkerCluster. */
export class OpenClusters {
  readonly #open = new Map<string, OpenCluster>();
  readonly #listeners = new Set<(key: string) => void>();

  /** Registers a connection until it stops or another one to the same cluster replaces it. */
  add(key: string, cluster: OpenCluster): void {
    this.#open.set(key, cluster);
    cluster.onStop(() => {
      if (this.#open.get(key) !== cluster) return;
      this.#open.delete(key);
      this.#tell(key);
    });
    this.#tell(key);
  }

  /** undefined: no connection is open. */
  get(key: string): OpenCluster | undefined {
    return this.#open.get(key);
  }

  keys(): string[] {
    return [...this.#open.keys()];
  }

  /** Calls the listener whenever a cluster is opened or closed. */
  onChange(listener: (key: string) => void): void {
    this.#listeners.add(listener);
  }

  #tell(key: string): void {
    for (const listener of this.#listeners) listener(key);
  }
}
