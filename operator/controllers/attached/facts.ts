import type { ErrorCode } from '../../api/errors.ts';
import type { Node, Pod } from '../../kube/resources.ts';

/** Why an attached cluster is not used, as a condition says it. */
export interface Refusal {
  readonly reason:
    | 'KubeconfigMissing'
    | 'KubeconfigRefused'
    | 'NotReachable'
    | 'Unauthorized'
    | 'Forbidden'
    | 'PlatformCluster'
    | 'SameCluster'
    | 'OtherCluster';
  readonly message: string;
  readonly code: ErrorCode;
}

/** What is known of a cluster that others made. */
export interface AttachedFacts {
  /** metadata.generation of the object that was acted on. */
  readonly generation: number | undefined;
  /** Why it is not used; undefined: it answers, and is the one that it was. */
  readonly refusal: Refusal | undefined;
  /** As it was first seen; undefined: it never was. */
  readonly identity?: string;
  readonly version?: string;
  readonly server?: string;
  /** What is in it; absent: nobody can see that now. */
  readonly inside?: { readonly nodes: readonly Node[]; readonly pods: readonly Pod[] };
}
