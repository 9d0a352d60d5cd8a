import { destination } from 'pino';

/** Lines that wait for room on a full disk; later ones are lost. */
const MOST_WAITING_BYTES = 1024 * 1024;

/**
 * Standard output for the log of a process that works on beside a full disk: what cannot be written is written when it can. Pino's own
 * would wait for room when the process ends, so that one that has lost its Lease would neither end nor be started anew.
 */
export function steadyOutput(): ReturnType<typeof destination> {
  const output = destination({ dest: 1, sync: true, maxLength: MOST_WAITING_BYTES });
  output.on('error', () => {});
  return output;
}
