import type { Programs } from '../pulumi/program.ts';
import { adopted } from './programs/adopted.ts';
import { cluster } from './programs/cluster.ts';
import { controlPlane } from './programs/control-plane.ts';
import { endpoint } from './programs/endpoint.ts';
import { machines } from './programs/machines.ts';
import { named } from './programs/naming.ts';
import { network } from './programs/network.ts';

/** What the workers of the Pulumi runner run for Azure. */
export const programs: Programs = {
  network: named(network),
  cluster: named(cluster),
  machines: named(machines),
  endpoint: named(endpoint),
  'control-plane': named(controlPlane),
  adopted: named(adopted),
};
