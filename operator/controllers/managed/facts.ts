import type {
  Change,
  CloudPool,
  ManagedCluster,
  ManagedClusterOutputs,
  ManagedClusters,
} from '../../../providers/cloud.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import type { LastError, LastOperation } from '../../api/meta.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { MadeIn } from '../../capacity/places.ts';
import type { Node, Pod } from '../../kube/resources.ts';
import type { Said } from '../conditions.ts';

/** What the controller of managed clusters is asked for: the outcome of a plan, handed over whole. */
export interface ManagedWish {
  readonly cluster: WorkerCluster;
  readonly profile: CloudProfile | undefined;
  readonly clouds: ManagedClusters | undefined;
  /** Which of the places that its spec allows the cluster is written for; see placeOf. */
  readonly place: number;
  /** Absent: the spec asks for what cannot be had, and what there is stays as it was. */
  readonly desired: ManagedCluster | undefined;
  /** The cluster goes elsewhere: what there is here is taken away, as if it were deleted. */
  readonly moves?: boolean;
  /** Something holds the cluster: it is kept as it is although it is deleted. */
  readonly held?: boolean;
}

/** What is seen of a managed cluster; a copy that nobody changes. */
export interface ManagedFacts {
  /** False after a start of the operator, until it has looked: what the status says holds on. */
  readonly seen: boolean;
  /** Whether anything was made in the cloud, or may have been. */
  readonly exists: boolean;
  /** Nothing of it is left in the cloud, or ever was. */
  readonly gone: boolean;
  /** Whether the cloud was last made to be as is wished now. */
  readonly settled: boolean;
  readonly operation: LastOperation | undefined;
  readonly errors: readonly LastError[];
  /** Condition CredentialsValid, once there is something to say. */
  readonly credentials: Said<'WorkerCluster'> | undefined;
  /** Version that was asked of the cloud last. */
  readonly version: string | undefined;
  /** What was said to be changed when it was last applied, in one line. */
  readonly planned: string | undefined;
  readonly outputs: ManagedClusterOutputs | undefined;
  /** Profile, region, place and address ranges that anything was, or may have been, made in. */
  readonly madeIn: (MadeIn & { readonly cidrs?: Partial<ManagedCluster['cidrs']> }) | undefined;
  /** As the cloud was asked for them last. */
  readonly pools: readonly CloudPool[] | undefined;
  /** Name of one that is losing named nodes: how many are asked for there is not known. Absent: none. */
  readonly removing?: string;
  /** UIDs of nodes whose machines were, or may have been, ended. Absent: none. */
  readonly doomed?: readonly string[];
  /** Whether the kubeconfig was seen to work; absent: there is none yet. */
  readonly access: { readonly ok: boolean; readonly message: string } | undefined;
  /** Absent while there is no connection to the API server: then nothing is known about nodes. */
  readonly inside: { readonly nodes: readonly Node[]; readonly pods: readonly Pod[] } | undefined;
  /** What others changed in the cloud; absent: not looked yet. */
  readonly drift: readonly Change[] | undefined;
}
