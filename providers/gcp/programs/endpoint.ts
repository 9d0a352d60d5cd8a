import { Firewall, GlobalAddress } from '@pulumi/gcp/compute/index.js';
import type { EndpointInputs } from '../../cloud.ts';
import type { ProgramOutputs } from '../../pulumi/program.ts';
import { descriptionOf, gcpLabelsOf } from '../labels.ts';
import { computeName } from '../names.ts';
import { machineIdentity } from './machines.ts';

/**
 * Source ranges of Google's proxies and health checks ("External proxy Network Load Balancer overview", firewall
 * rules).
 */
const PROXIES = ['35.191.0.0/16', '130.211.0.0/22'];

/**
 * Layer `endpoint`: a permanent address, and the firewall rules by which machines reach each other. The load balancer
 * requires its group of machines and is created with it.
 */
export function endpoint({ owner, network, port }: EndpointInputs): ProgramOutputs {
  const description = descriptionOf(owner);
  const address = new GlobalAddress('endpoint', {
    name: computeName(owner, 'endpoint'),
    description,
    labels: gcpLabelsOf(owner),
    addressType: 'EXTERNAL',
    ipVersion: 'IPV4',
  });
  const account = machineIdentity(owner, network);
  new Firewall('endpoint', {
    name: computeName(owner, 'endpoint'),
    network: network.network,
    description,
    sourceRanges: PROXIES,
    targetServiceAccounts: [account],
    allows: [{ protocol: 'tcp', ports: [String(port)] }],
  });
  return { host: address.address, port, extra: { address: address.selfLink, serviceAccount: account } };
}
