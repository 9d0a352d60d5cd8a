import type { ErrorCode } from '../../api/errors.ts';
import type { Node, Pod } from '../../kube/resources.ts';

/** Why an attached cluster is not used, for a condition. */
export interface AttachedRefusal {
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

/** Facts about an attached cluster. */
export interface AttachedFacts {
  /** Observed metadata.generation. */
  readonly generation: number | undefined;
  /** Why it is not used; undefined: it answers with its known identity. */
  readonly refusal: AttachedRefusal | undefined;
  /** Recorded identity; undefined: none yet. */
  readonly identity?: string;
  readonly version?: string;
  readonly server?: string;
  /** Objects inside; absent: not observable now. */
  readonly inside?: { readonly nodes: readonly Node[]; readonly pods: readonly Pod[] };
}
