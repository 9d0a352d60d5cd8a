import type { Programs } from '../pulumi/program.ts';
import { adopted } from './programs/adopted.ts';
import { cluster } from './programs/cluster.ts';
import { controlPlane } from './programs/control-plane.ts';
import { endpoint } from './programs/endpoint.ts';
import { machines } from './programs/machines.ts';
import { network } from './programs/network.ts';

/** Programs of this provider; loaded by Pulumi workers only. */
export const programs: Programs = { network, cluster, machines, endpoint, 'control-plane': controlPlane, adopted };
