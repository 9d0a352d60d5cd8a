import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import type { ErrorCode } from '../../../operator/api/errors.ts';
import type { KubeTaint } from '../../../operator/kube/resources.ts';
import type {
  CloudAccount,
  CloudNode,
  CloudPool,
  ManagedClusters,
  Owner,
  StateBackend,
} from '../../../providers/cloud.ts';

/** A pool as the cloud itself has it, of however many of the cloud's own groups it is made. */
export interface SeenPool {
  machineTypes: string[];
  /** How many nodes it has or is to have. */
  nodes: number;
  spot: boolean;
  labels: Record<string, string>;
  taints: KubeTaint[];
  zones: string[];
}

/** Something that makes the cloud refuse, and how that must be told. */
export interface Trouble {
  what: string;
  code: ErrorCode;
  /** From now on. */
  begin(account: CloudAccount): void;
  /** Whether also questions are refused, not only what would be made. */
  everything?: boolean;
}

/** A cloud as the conformance suite needs one: what it may ask, see and break. The suite knows nothing else of a provider. */
export interface CloudTestbed {
  managed: ManagedClusters;
  profile: CloudProfile;
  region: string;
  /** Two of the region. */
  zones: [string, string];
  /** Two minor versions that follow each other. */
  versions: Record<'old' | 'new', string>;
  /** An account whose credentials the cloud takes; a further one of another number. */
  account(number?: number): CloudAccount;
  /** Values of the credentials that nobody may read anywhere. */
  secrets(account: CloudAccount): string[];
  /** Where state is kept. */
  state(): Promise<StateBackend>;
  /** From then on nobody remembers anything but the cloud. */
  loseState(): Promise<void>;
  /** Whoever takes a cluster away next ends in the middle of it. */
  cutShort(): void;
  /** Ids of what exists in the account, whoever made it. */
  resources(account: CloudAccount): string[];
  /** How often somebody asked for something to be made, changed or taken away. */
  writes(): number;
  /** Undefined when the cluster has no such pool. */
  pool(owner: Owner, pool: CloudPool): SeenPool | undefined;
  /** The nodes of a pool, as they are registered; first those that would go first if nobody named any. */
  nodes(owner: Owner, pool: CloudPool): CloudNode[];
  /** Takes a pool away behind the provider's back. */
  damage(owner: Owner, pool: CloudPool): Promise<void>;
  troubles: Trouble[];
  /** Ends all troubles, and what cuts short. */
  heal(): void;
  close(): Promise<void>;
}
