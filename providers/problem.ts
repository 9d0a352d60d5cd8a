import type { ErrorCode } from '../operator/api/errors.ts';

/** A problem of something that was requested. */
export interface Problem {
  /** Path in the request, for example `pools[1].machineType`. */
  field: string;
  /** The fault, its object, and what would be correct. */
  message: string;
  code: ErrorCode;
}
