import { destination } from 'pino';

/** Bytes of log lines that wait while the disk is full; later lines are lost. */
const MOST_WAITING_BYTES = 1024 * 1024;

/**
 * Standard output for the log, on a disk that may be full: lines that cannot be written are written later. pino's own
 * destination would block at exit until there is room, so a process that lost its Lease would neither end nor restart.
 */
export function steadyOutput(): ReturnType<typeof destination> {
  const output = destination({ dest: 1, sync: true, maxLength: MOST_WAITING_BYTES });
  output.on('error', () => {});
  return output;
}
