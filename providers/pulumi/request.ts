import type { ErrorCode, Shortage } from '../../operator/api/errors.ts';
import type { Change, CloudProgress, StateBackend } from '../cloud.ts';
import type { Layer, ProgramRef } from './program.ts';

/** A declared resource that the stack's state lacks: it may or may not exist in the cloud. */
export interface WantedResource {
  /** URN as in the state, for example `urn:pulumi:shoot--a.cluster::coppice::aws:eks/cluster:Cluster::cluster`. */
  urn: string;
  /** For example `aws:eks/cluster:Cluster`. */
  type: string;
  /** Logical name in the program. */
  name: string;
  /** Inputs from the program, without unknown and secret values. */
  inputs: Readonly<Record<string, unknown>>;
}

/**
 * Looks in the cloud for a resource of the owner that the state lacks, by deterministic name and our tags. Resolves
 * with the id for Pulumi's import, or undefined when missing. Must not return resources with other owners' tags.
 * Rejects with `beingCreated` while a found cluster has no address. Called before any creation after a crash or a lost
 * state, so that nothing is created twice.
 */
export type FindExisting = (resource: WantedResource, signal: AbortSignal) => Promise<FoundResource | undefined>;

/** An existing resource. */
export interface FoundResource {
  id: string;
  /** Made by others: destroying the stack keeps it, unless the program says otherwise. */
  retain?: boolean;
  /**
   * Certain inputs before the first read. Absent: those that the program declares, as for our own resources; a plugin
   * with incomplete reads would take wishes for facts on foreign ones.
   */
  inputs?: Readonly<Record<string, unknown>>;
}

/** An error of the engine or a plugin: one line, without secrets. */
export interface Diagnostic {
  text: string;
  /** Type of the affected resource, if any. */
  type?: string;
  urn?: string;
}

/** Error code for a diagnostic of the cloud; undefined: unknown. */
export type Classify = (diagnostic: Diagnostic) => ErrorCode | undefined;

/** Pool that a failure is about, by its resource; undefined: none. */
type ShortOf = (diagnostic: Diagnostic) => Shortage | undefined;

/** An operation on a stack. */
export interface StackRequest {
  stack: { technicalID: string; layer: Layer };
  /** Namespace of the cluster in the garden. Tenants take turns. */
  tenant: string;
  /** Scope of the cloud's limits; operations are bounded per account and region. */
  account: string;
  region: string;
  program: ProgramRef;
  /** JSON. */
  inputs: unknown;
  backend: StateBackend;
  /** Credentials of provider plugins. Redacted in every text that leaves the runner. */
  credentials: Readonly<Record<string, string>>;
  /** Further environment of the engine and its plugins, without secrets, for example AWS_REGION. */
  settings?: Readonly<Record<string, string>>;
  signal: AbortSignal;
  findExisting: FindExisting;
  classify?: Classify;
  /** For previews: import existing resources first, so that they are not shown as creations. */
  importFirst?: boolean;
  shortOf?: ShortOf;
  onProgress?: (progress: CloudProgress) => void;
}

export interface ApplyRequest extends StackRequest {
  /** Read the cloud first, and revert drift. Default false: only changes of the program are applied. */
  refresh?: boolean;
  /** Decides about the planned changes just before they are made; false: none is made. Absent: all are allowed. */
  allows?: (planned: readonly Change[]) => boolean;
}

/** Result of an apply. */
export interface ApplyResult {
  /** Outputs of the program, with secrets in plain text. */
  outputs: Record<string, unknown>;
  changes: Change[];
  /** Changes that `allows` refused: none of them was made. */
  refused?: Change[];
}
