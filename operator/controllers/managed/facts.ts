import type {
  Change,
  CloudPool,
  ManagedClusterOutputs,
  ManagedClusters,
  WantedCluster,
} from '../../../providers/cloud.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import type { LastError, LastOperation } from '../../api/meta.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { MadeIn } from '../../capacity/places.ts';
import type { Node, Pod } from '../../kube/resources.ts';
import type { Said } from '../conditions.ts';

/** Wish for the controller of managed clusters: a plan's result. */
export interface ManagedWish {
  readonly cluster: WorkerCluster;
  readonly profile: CloudProfile | undefined;
  readonly clouds: ManagedClusters | undefined;
  /** Number of the allowed place that the cluster is written for; see placeOf. */
  readonly place: number;
  /** Absent: the spec is impossible, so what exists stays. */
  readonly desired: WantedCluster | undefined;
  /** The cluster moves elsewhere: delete what exists here. */
  readonly moves?: boolean;
  /** A hold keeps the deleted cluster as it is. */
  readonly held?: boolean;
}

/** Observation of a managed cluster; an immutable copy. */
export interface ManagedFacts {
  /** False after a restart until observed: the last status stays. */
  readonly seen: boolean;
  /** Whether anything was, or may have been, created in the cloud. */
  readonly exists: boolean;
  /** Nothing is, or ever was, in the cloud. */
  readonly gone: boolean;
  /** Whether the present wish was applied. */
  readonly settled: boolean;
  readonly operation: LastOperation | undefined;
  readonly errors: readonly LastError[];
  /** Condition CredentialsValid, once known. */
  readonly credentials: Said<'WorkerCluster'> | undefined;
  /** Last requested version. */
  readonly version: string | undefined;
  /** Planned changes of the last apply, one line. */
  readonly planned: string | undefined;
  readonly outputs: ManagedClusterOutputs | undefined;
  /** Profile, region, place and address ranges of what was, or may have been, made. */
  readonly madeIn: (MadeIn & { readonly cidrs?: Partial<WantedCluster['cidrs']> }) | undefined;
  /** As last requested. */
  readonly pools: readonly CloudPool[] | undefined;
  /** Pool with a running removal of named nodes, whose size is unknown. Absent: none. */
  readonly removing?: string;
  /** UIDs of nodes whose machines were, or may have been, ended. Absent: none. */
  readonly doomed?: readonly string[];
  /** Whether the kubeconfig works; absent: none yet. */
  readonly access: { readonly ok: boolean; readonly message: string } | undefined;
  /** Absent without a connection to the API server: then nodes are unknown. */
  readonly inside: { readonly nodes: readonly Node[]; readonly pods: readonly Pod[] } | undefined;
  /** Drift in the cloud; absent: not checked yet. */
  readonly drift: readonly Change[] | undefined;
}
