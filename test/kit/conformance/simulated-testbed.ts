import { technicalID } from '../../../operator/api/names.ts';
import { profileManifests } from '../../../operator/api/profiles.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { NODES, type Node } from '../../../operator/kube/resources.ts';
import type { Pool, ProviderContext } from '../../../providers/contract.ts';
import { context } from '../../unit/providers/fixtures.ts';
import type { MachineTestbed } from './machines.ts';

/** A machine of the simulated provider is its Node: the testbed needs API servers only, a fresh one a cluster. */
export async function simulatedTestbed(
  cluster: (namespace: string) => KubeClient,
  writes: () => number,
  close: () => Promise<void>,
): Promise<MachineTestbed> {
  const profile = (await profileManifests()).find(({ metadata }) => metadata.name === 'simulated')!;
  const region = profile.spec.defaults!.region!;
  const zones = profile.spec.regions.find(({ name }) => name === region)!.zones!.map(({ name }) => name);
  const nodes = async ({ shoot }: ProviderContext) => (shoot ? (await shoot.list<Node>(NODES)).items : []);
  return {
    context: (namespace, name) =>
      context({
        shoot: cluster(namespace),
        shootName: name,
        shootNamespace: namespace,
        technicalID: technicalID(namespace, name),
        namespace: technicalID(namespace, name),
        profile,
        region,
      }),
    pool: (change: Partial<Pool> = {}): Pool => ({
      name: 'workers',
      machineType: 'medium',
      count: 1,
      labels: {},
      taints: [],
      zones,
      ...change,
    }),
    otherType: 'gpu',
    nodes,
    writes,
    leftIn: async (ctx) => (await nodes(ctx)).map(({ metadata }) => metadata.name),
    settled: async () => {},
    close,
  };
}
