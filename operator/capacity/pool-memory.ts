/** What a node had when it was first Ready, beside what its pool gives. */
export interface NodeModel {
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
  /** The nodes were Ready before anybody looked: what came later may be among the labels. Absent: somebody looked in time. */
  readonly isGuess?: true;
}

/** Pods for which no more nodes of a pool are bought. */
export interface Stop {
  /** For people: what the node that came said. */
  readonly why: string;
  /** RFC 3339: when that node came. */
  readonly cameAt: string;
}

/**
 * What was learned of the nodes of a pool that Coppice sizes. The operator keeps it with the pool's decided size, so a restart forgets
 * nothing.
 */
export interface PoolMemory {
  /** By machine type: what all of its nodes had when they were first Ready. */
  readonly types?: Readonly<Record<string, NodeModel>>;
  /** Digest of the pool that `boughtFor` and `stops` are about: they end when the pool changes. */
  readonly pool?: string;
  /** Digest of pods for which nodes were bought → when they were, RFC 3339. The newest 64. */
  readonly boughtFor?: Readonly<Record<string, string>>;
  /** By the digest of the pods. The newest 64. */
  readonly stops?: Readonly<Record<string, Stop>>;
}
