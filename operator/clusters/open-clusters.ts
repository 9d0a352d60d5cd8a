import type { KubeClient } from '../kube/client.ts';
import type { Node, Pod } from '../kube/resources.ts';
import type { ChangeEvent } from '../kube/store.ts';

/** Objects of a cluster that are followed. */
interface Watched<T> {
  list(): T[];
  /** Calls the handler for each object that is there, and after each change; returns how to end that. Absent: no news come. */
  onChange?(handler: (event: ChangeEvent<T>) => void): () => void;
}

/** A cluster that is open: requests to it, and what is watched in it. */
export interface OpenCluster {
  readonly client: KubeClient;
  /** URL of its API server, as the operator reaches it. */
  readonly server: string;
  /** UID of its namespace kube-system, where whoever opened it has seen to it. */
  readonly identity?: string;
  /** False from when its API server was seen not to answer until it answers again. */
  readonly answers: boolean;
  readonly nodes: Watched<Node>;
  readonly pods: Watched<Pod>;
  /** Calls the listener once, when the connection ends. */
  onStop(listener: () => void): void;
}

/** The clusters that are open now, by `namespace/name` of their Shoot or WorkerCluster, whoever opened them. */
export class OpenClusters {
  readonly #open = new Map<string, OpenCluster>();
  readonly #listeners = new Set<(key: string) => void>();

  /** Until it stops, or another connection to the same cluster takes its place. */
  add(key: string, cluster: OpenCluster): void {
    this.#open.set(key, cluster);
    cluster.onStop(() => {
      if (this.#open.get(key) !== cluster) return;
      this.#open.delete(key);
      this.#tell(key);
    });
    this.#tell(key);
  }

  /** undefined: nobody has a connection to it now. */
  get(key: string): OpenCluster | undefined {
    return this.#open.get(key);
  }

  keys(): string[] {
    return [...this.#open.keys()];
  }

  /** The listener hears each time that a cluster is opened or closed. */
  onChange(listener: (key: string) => void): void {
    this.#listeners.add(listener);
  }

  #tell(key: string): void {
    for (const listener of this.#listeners) listener(key);
  }
}
