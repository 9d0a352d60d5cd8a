import type { ErrorCode } from '../operator/api/errors.ts';

/** Why something that was asked for cannot be had. */
export interface Problem {
  /** Path in what was asked for, for example `pools[1].machineType`. */
  field: string;
  /** What is wrong, of what, and what would be right. */
  message: string;
  code: ErrorCode;
}
