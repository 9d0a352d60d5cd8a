import type { Task } from '../../../flow/graph.ts';
import { konnectivityAgent } from '../../../shoot/konnectivity-agent.ts';
import type { Operation } from '../operation.ts';
import { applySystem, printOf } from './apply-inside.ts';
import { wantsNodes } from './machine-tasks.ts';
import { systemReplicasOf } from './system-components-tasks.ts';

/**
 * konnectivity agents, for machines outside of the seed. They restart once all API servers with a changed replica count
 * serve: an agent believes the server that it met last, and an old one reports the old count, so the agent would never
 * connect to the others.
 */
export const tunnelTask = (op: Operation): Task => ({
  id: 'tunnel',
  title: 'Starting agents of the tunnel',
  after: ['access', 'control-plane-ready'],
  skip: !(op.values.machinesOutside && wantsNodes(op)),
  expectedMs: 50,
  run: async (signal) => {
    const { state } = op;
    const agents = konnectivityAgent(op.values, systemReplicasOf(op));
    const print = printOf(agents);
    if (state.tunnelApplied === print) return;
    state.tunnelRefused = await applySystem(op, agents, signal);
    if (state.tunnelRefused === undefined) state.tunnelApplied = print;
  },
});
