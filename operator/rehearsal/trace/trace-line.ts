import type { Pod } from '../../kube/resources.ts';

/** Replicas of one workload, or jobs of one size, requested by a trace line. */
export interface TracedWork {
  readonly name: string;
  /** Number from now on. */
  readonly replicas?: number;
  /** Number of additional jobs, each of which ends after `lifeMs`. */
  readonly jobs?: number;
  readonly lifeMs?: number;
  /** Size of each; absent: as in the workload's previous line. */
  readonly size?: WorkSize;
  /** Priority of its pods; absent: 0. */
  readonly priority?: number;
  /** Labels of permitted clusters; absent: all. */
  readonly clusterLabels?: Readonly<Record<string, string>>;
  /** Node rules of its pods; absent: nodes without taints. */
  readonly nodes?: WorkNodes;
  /** Its kind, where not every cluster serves it. */
  readonly kind?: WorkKind;
}

/** A workload kind that a hub places only where it is served. */
export interface WorkKind {
  /** API version and kind: `batch.volcano.sh/v1alpha1 Job`. */
  readonly name: string;
  /** Labels of the clusters that serve it; empty: all do. */
  readonly labels: Readonly<Record<string, string>>;
  /**
   * The hub itself propagates its definition, and knows so before a cluster exists; otherwise something unknown to the
   * hub does.
   */
  readonly isBroughtByHub: boolean;
}

/** Node rules as in a pod spec. */
export interface WorkNodes {
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: NonNullable<Pod['spec']['tolerations']>;
}

/** Requests of one replica or job as Kubernetes quantities. */
export interface WorkSize {
  readonly cpu: string;
  readonly memory: string;
  readonly gpu?: string;
}

/** One line of a demand trace. */
export interface TraceLine {
  /** file:line, for errors. */
  where: string;
  /** Milliseconds: since the start of the rehearsal, or since the epoch where the trace has dates. */
  at: number;
  dated: boolean;
  /** name, or namespace/name. Of workloads: the cluster they belong to; empty: the hub's. */
  cluster: string;
  /** `time`: demand is unchanged at that moment. Only the last line of a curve is one. */
  event: 'demand' | 'create' | 'delete' | 'work' | 'time';
  dataPlaneNodes?: number | undefined;
  /** Changes of existing pools. */
  pools: { name: string; minimum?: number | undefined; maximum?: number | undefined }[];
  /** Of event `work`. */
  work?: TracedWork;
}
