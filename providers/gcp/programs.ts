import type { Programs } from '../pulumi/program.ts';
import { adopted } from './programs/adopted.ts';
import { cluster } from './programs/cluster.ts';
import { controlPlane } from './programs/control-plane.ts';
import { endpoint } from './programs/endpoint.ts';
import { machines } from './programs/machines.ts';
import { named } from './programs/naming.ts';
import { network } from './programs/network.ts';

/** Programs for the workers of the Pulumi runner. */
export const programs: Programs = {
  network: named(network),
  cluster: named(cluster),
  machines: named(machines),
  endpoint: named(endpoint),
  'control-plane': named(controlPlane),
  adopted: named(adopted),
};
