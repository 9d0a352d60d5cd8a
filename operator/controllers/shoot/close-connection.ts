import type { ShootState } from './state.ts';

/**
 * Closes the connection to a shoot's API server, and forgets what was seen and done by it.
 * @param usable what is said of the API server from then on; absent: nothing
 */
export async function closeConnection(state: ShootState, usable?: ShootState['usable']): Promise<void> {
  const { connection } = state;
  // First: what a connection tells while it closes is no news of the API server.
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
