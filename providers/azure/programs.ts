import type { Programs } from '../pulumi/program.ts';
import { adopted } from './programs/adopted.ts';
import { cluster } from './programs/cluster.ts';
import { machines } from './programs/machines.ts';
import { named } from './programs/naming.ts';
import { network } from './programs/network.ts';

/** What the workers of the Pulumi runner run for Azure. */
export const programs: Programs = {
  network: named(network),
  cluster: named(cluster),
  machines: named(machines),
  adopted: named(adopted),
};
