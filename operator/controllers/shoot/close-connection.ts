import type { ShootState } from './state.ts';

/**
 * Closes the connection to a shoot's API server, and forgets what was observed and applied through it.
 * @param usable new value of `state.usable`; absent: unknown
 */
export async function closeConnection(state: ShootState, usable?: ShootState['usable']): Promise<void> {
  const { connection } = state;
  // First, because errors of the closing connection say nothing about the API server.
  state.connection = undefined;
  state.usable = usable;
  state.usableFor = undefined;
  state.systemApplied = undefined;
  state.systemRefused = undefined;
  state.kubeletAccess = false;
  state.tunnelApplied = undefined;
  state.tunnelRefused = undefined;
  state.volumesApplied = undefined;
  state.volumesRefused = undefined;
  state.metricsServer = {};
  state.draining.clear();
  state.blocked.clear();
  await connection?.stop();
}
