/** Labels and taints of a node when it was first Ready, in addition to those of its pool. */
export interface NodeModel {
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
  /**
   * The nodes were Ready before the operator first saw them, so labels added later may be included. Absent: seen in
   * time.
   */
  readonly isGuess?: true;
}

/** Pods for which no more nodes of a pool are bought. */
export interface Stop {
  /** For messages: how the bought node failed the pods. */
  readonly why: string;
  /** RFC 3339: when that node came. */
  readonly cameAt: string;
}

/** Memory of the nodes of a pool sized by Coppice. Stored with the pool's decided size, so it survives restarts. */
export interface PoolMemory {
  /** By machine type: what all of its nodes had when first Ready. */
  readonly types?: Readonly<Record<string, NodeModel>>;
  /** Digest of the pool that `boughtFor` and `stops` refer to: both end when the pool changes. */
  readonly pool?: string;
  /** Digest of pods for which nodes were bought → purchase time, RFC 3339. The newest 64. */
  readonly boughtFor?: Readonly<Record<string, string>>;
  /** By digest of the pods. The newest 64. */
  readonly stops?: Readonly<Record<string, Stop>>;
}
