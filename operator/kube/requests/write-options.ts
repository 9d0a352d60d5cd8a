import type { Resource } from '../resources.ts';
import type { Query } from './api-requests.ts';

export interface WriteOptions {
  /** Needed for kinds that operator/kube/resources.ts does not list. */
  resource?: Resource;
  subresource?: 'status' | 'scale' | 'approval' | 'ephemeralcontainers' | 'resize' | (string & {});
  dryRun?: boolean;
  /** Who owns what is written; absent: FIELD_MANAGER. */
  fieldManager?: string;
  signal?: AbortSignal | undefined;
  /** As in RequestOptions, for create and update. */
  abandon?: boolean;
  /** What happens to fields that the schema does not know; default Strict: an error. */
  fieldValidation?: 'Strict' | 'Warn' | 'Ignore';
}

export interface ApplyOptions extends WriteOptions {
  /** Take over fields that another manager owns. Default true, as is right for a controller. */
  force?: boolean;
  /**
   * Writes again without the fields that the server's schema does not declare, as the server itself prunes an update. For a status, which an
   * operator may write before the CRDs of its version are there. Default false: such a field is an error.
   */
  leaveOutUndeclared?: boolean;
}

export interface DeleteOptions {
  gracePeriodSeconds?: number;
  propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
  preconditions?: { uid?: string; resourceVersion?: string };
  dryRun?: boolean;
  signal?: AbortSignal | undefined;
}

/** The query that every write has. */
export function writeQuery(options: WriteOptions): Query {
  return { fieldValidation: options.fieldValidation ?? 'Strict', dryRun: options.dryRun ? 'All' : undefined };
}

/** The body of a deletion; undefined: it needs none. */
export function deleteBody(options: Omit<DeleteOptions, 'signal' | 'dryRun'>): object | undefined {
  if (Object.values(options).every((value) => value === undefined)) return undefined;
  return { apiVersion: 'v1', kind: 'DeleteOptions', ...options };
}
