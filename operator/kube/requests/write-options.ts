import type { Resource } from '../resources.ts';
import type { Query } from './api-requests.ts';

export interface WriteOptions {
  /** Needed for kinds that operator/kube/resources.ts does not list. */
  resource?: Resource;
  subresource?: 'status' | 'scale' | 'approval' | 'ephemeralcontainers' | 'resize' | (string & {});
  dryRun?: boolean;
  /** Field manager of the write. Absent: FIELD_MANAGER. */
  fieldManager?: string;
  signal?: AbortSignal | undefined;
  /** See RequestOptions; for create and update. */
  abandon?: boolean;
  /** Handling of fields that the schema does not declare; default Strict: an error. */
  fieldValidation?: 'Strict' | 'Warn' | 'Ignore';
}

export interface ApplyOptions extends WriteOptions {
  /** Take over fields that another manager owns. Default true. */
  force?: boolean;
  /**
   * Retry without the fields that the server's schema does not declare, as the server prunes an update. For a status,
   * which a new operator may write before the CRDs of its version are installed. Default false: such a field is an
   * error.
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

/** Query parameters of every write. */
export function writeQuery(options: WriteOptions): Query {
  return { fieldValidation: options.fieldValidation ?? 'Strict', dryRun: options.dryRun ? 'All' : undefined };
}

/** Body of a deletion; undefined: none needed. */
export function deleteBody(options: Omit<DeleteOptions, 'signal' | 'dryRun'>): object | undefined {
  if (Object.values(options).every((value) => value === undefined)) return undefined;
  return { apiVersion: 'v1', kind: 'DeleteOptions', ...options };
}
