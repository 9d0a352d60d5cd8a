import type { Pod } from '../../kube/resources.ts';

/** Replicas of one workload, or jobs of one size, that a line of a trace asks for. */
export interface Work {
  readonly name: string;
  /** How many there shall be from now on. */
  readonly replicas?: number;
  /** How many more begin now, each of which ends after `lifeMs`. */
  readonly jobs?: number;
  readonly lifeMs?: number;
  /** Of each; absent: as the line before of the same workload. */
  readonly size?: WorkSize;
  /** Priority of its pods; absent: 0. */
  readonly priority?: number;
  /** Labels of the clusters that it may go to; absent: all. */
  readonly clusterLabels?: Readonly<Record<string, string>>;
  /** Which nodes its pods go to; absent: any that has no taint. */
  readonly nodes?: WorkNodes;
  /** Its kind, where not every cluster serves that. */
  readonly kind?: WorkKind;
}

/** A kind of work that a hub places only where it is served. */
export interface WorkKind {
  /** API version and kind: `batch.volcano.sh/v1alpha1 Job`. */
  readonly name: string;
  /** Labels of the clusters that serve it; empty: all do. */
  readonly labels: Readonly<Record<string, string>>;
  /** Its definition comes to them from the hub itself, which knows so before a cluster is there; else from something that the hub does not know. */
  readonly isBroughtByHub: boolean;
}

/** Which nodes pods go to, as their spec says it. */
export interface WorkNodes {
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: NonNullable<Pod['spec']['tolerations']>;
}

/** What one replica or job asks for, as Kubernetes writes it. */
export interface WorkSize {
  readonly cpu: string;
  readonly memory: string;
  readonly gpu?: string;
}

/** What one line of a demand trace says. */
export interface TraceLine {
  /** file:line, for errors. */
  where: string;
  /** Milliseconds: since the beginning of the rehearsal, or since the epoch where the trace has dates. */
  at: number;
  dated: boolean;
  /** name, or namespace/name. Of work: the cluster that it belongs to; empty: it is the hub's. */
  cluster: string;
  /** `time`: demand is unchanged at that moment. Only the last line of a curve is one. */
  event: 'demand' | 'create' | 'delete' | 'work' | 'time';
  dataPlaneNodes?: number | undefined;
  /** Changes of pools that the cluster has. */
  pools: { name: string; minimum?: number | undefined; maximum?: number | undefined }[];
  /** Of event `work`. */
  work?: Work;
}
