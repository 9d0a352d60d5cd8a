import type { ErrorCode, Shortage } from '../../operator/api/errors.ts';
import type { Change, CloudProgress, StateBackend } from '../cloud.ts';
import type { Layer, ProgramRef } from './program.ts';

/** A resource that a program declares and that the stack's state does not have: it may or may not exist in the cloud. */
export interface WantedResource {
  /** As in state, for example `urn:pulumi:shoot--a.cluster::coppice::aws:eks/cluster:Cluster::cluster`. */
  urn: string;
  /** For example `aws:eks/cluster:Cluster`. */
  type: string;
  /** Logical name in the program. */
  name: string;
  /** As the program gave them; without what is known only after other resources exist, and without secrets. */
  inputs: Readonly<Record<string, unknown>>;
}

/**
 * Looks in the cloud, by deterministic name and our tags, for a resource of the owner that state does not know. Resolves to the id that
 * Pulumi's import takes for the type, or to undefined when there is none. It must not give what bears other owners' tags. Rejects with
 * `beingCreated` while a cluster that it finds has no address yet. Called before anything is created after a crash or on lost state: what
 * it finds is never made a second time.
 */
export type FindExisting = (resource: WantedResource, signal: AbortSignal) => Promise<FoundResource | undefined>;

/** A resource that exists. */
export interface FoundResource {
  id: string;
  /** Others made it: taking its stack away leaves it, until the program has said otherwise. */
  retain?: boolean;
  /**
   * What is certain of its inputs before it was read. Absent: what the program declares, as for what we made; of what others
   * made, a plugin that reads less than everything would take a wish for a fact.
   */
  inputs?: Readonly<Record<string, unknown>>;
}

/** What the engine or a provider plugin said of a failure: one line, without secrets. */
export interface Diagnostic {
  text: string;
  /** Type of the resource that it is about, if it is about one. */
  type?: string;
  urn?: string;
}

/** Finds the code of a cloud's error in what was said of it; undefined when it says nothing that is known. */
export type Classify = (diagnostic: Diagnostic) => ErrorCode | undefined;

/** Which of the cloud's pools a failure is about, by the resource that it was met with; undefined: none. */
export type ShortOf = (diagnostic: Diagnostic) => Shortage | undefined;

/** One operation on one stack. */
export interface StackRequest {
  stack: { technicalID: string; layer: Layer };
  /** For whom: namespace of the cluster in the garden. Tenants take turns. */
  tenant: string;
  /** What the cloud's limits count against; operations are bounded per account and region. */
  account: string;
  region: string;
  program: ProgramRef;
  /** JSON. */
  inputs: unknown;
  backend: StateBackend;
  /** What provider plugins authenticate with. Never shown: values are cut out of every text that leaves the runner. */
  credentials: Readonly<Record<string, string>>;
  /** Further environment of the engine and its plugins that is no secret, for example AWS_REGION. */
  settings?: Readonly<Record<string, string>>;
  signal: AbortSignal;
  findExisting: FindExisting;
  classify?: Classify;
  /** For previews: what exists is taken into the state first, or it would be shown as to be created. */
  importFirst?: boolean;
  shortOf?: ShortOf;
  onProgress?: (progress: CloudProgress) => void;
}

export interface ApplyRequest extends StackRequest {
  /** Look at the cloud first, and so mend what was changed there. Default false: only what the program changed is acted on. */
  refresh?: boolean;
  /** Judges what is going to be changed just before that is done; false: nothing is. Absent: anything may be. */
  allows?: (planned: readonly Change[]) => boolean;
}

/** What a run has done. */
export interface ApplyResult {
  /** As the program returned them; values of secret outputs in the clear. */
  outputs: Record<string, unknown>;
  changes: Change[];
  /** What `allows` said no to: none of it was done. */
  refused?: Change[];
}
