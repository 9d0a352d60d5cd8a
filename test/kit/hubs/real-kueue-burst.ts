import { addClusters, BurstOnHub } from './burst-on-hub.ts';
import { runControllers } from './controllers.ts';
import { HubTestbed } from './hub-testbed.ts';
import { makeQueues } from './kueue-work.ts';
import { Processes } from './processes.ts';
import { RealKueue } from './real-kueue.ts';

/**
 * The garden is the hub of this one.
 * @param programs folder with those of Kueue
 * @param names of API servers that are kept for clusters that are bought
 * @param account who the operator is in the garden, as HubTestbed has it
 */
export async function burstOnKueue(
  programs: string,
  names: readonly string[],
  account: 'admin' | 'chart' = 'admin',
): Promise<BurstOnHub> {
  const hub = await RealKueue.begin(programs);
  const processes = await Processes.begin('members');
  const testbed = await HubTestbed.start({ type: 'Kueue' }, [], account);
  await runControllers(processes, testbed.garden, 'hub', ['namespace', 'garbagecollector']);
  const clusters = await addClusters(testbed, processes, names);
  await hub.runIn(testbed.garden, 'hub');
  // Whoever makes such clusters has Kueue and its queues come with them.
  for (const [name, member] of Object.entries({ demo: testbed.member, ...clusters.kept })) {
    await hub.runIn(member, name);
    await makeQueues(member.client, { cpu: '4', memory: '8Gi' });
  }
  await makeQueues(testbed.garden.client, { cpu: '100', memory: '100Gi' }, ['test']);
  return BurstOnHub.start({ testbed, processes, hub, ...clusters });
}
