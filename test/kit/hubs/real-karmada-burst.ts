import { addClusters, BurstOnHub } from './burst-on-hub.ts';
import { HubTestbed } from './hub-testbed.ts';
import { Processes } from './processes.ts';
import { RealKarmada } from './real-karmada.ts';

/**
 * @param programs folder with those of Karmada
 * @param names of API servers that are kept for clusters that are bought
 * @param prepare called when the private cluster was made, before it is open
 */
export async function burstOnKarmada(
  programs: string,
  names: readonly string[],
  { evicts, prepare }: { evicts?: boolean; prepare?: (testbed: HubTestbed) => Promise<unknown> } = {},
): Promise<BurstOnHub> {
  const hub = await RealKarmada.start(programs);
  const processes = await Processes.begin('members');
  const spec = { type: 'Karmada', karmada: { renewsTokens: true, ...(evicts && { evicts }) } } as const;
  const testbed = await HubTestbed.start(spec, [], 'admin', hub.apiserver);
  const clusters = await addClusters(testbed, processes, names);
  return BurstOnHub.start({ testbed, processes, hub, ...clusters }, { tier: 'own' }, prepare);
}
