import { LoadBalancer } from '@pulumi/azure-native/network/loadBalancer.js';
import { NetworkSecurityGroup } from '@pulumi/azure-native/network/networkSecurityGroup.js';
import { PublicIPAddress } from '@pulumi/azure-native/network/publicIPAddress.js';
import type { EndpointInputs } from '../../cloud.ts';
import type { ProgramOutputs } from '../../pulumi/program.ts';
import { tagsOf } from '../../tags.ts';
import { endpointName, resourceGroupName } from '../names.ts';

/** What the load balancer's parts are called, each of which there is one of. */
const PART = 'api-server';
/** Azure's longest: watches say nothing for minutes. */
const IDLE_MINUTES = 30;

/**
 * Layer `endpoint`: an address and a load balancer that outlive all machines behind them. Machines reach the internet, and so this
 * address, by the network's NAT gateway: a machine that is sent to itself sees the gateway's address.
 */
export function endpoint({ owner, region, network, port }: EndpointInputs): ProgramOutputs {
  const common = { resourceGroupName: resourceGroupName(owner), location: region, tags: tagsOf(owner) };
  const name = endpointName(owner);
  const address = new PublicIPAddress('endpoint', {
    ...common,
    publicIpAddressName: name,
    sku: { name: 'Standard' },
    publicIPAddressVersion: 'IPv4',
    publicIPAllocationMethod: 'Static',
  });
  // Its parts name each other by ids that are made of names.
  const own = `${network.network.split('/providers/')[0]}/providers/Microsoft.Network/loadBalancers/${name}`;
  const part = (kind: string) => ({ id: `${own}/${kind}/${PART}` });
  const balancer = new LoadBalancer('endpoint', {
    ...common,
    loadBalancerName: name,
    sku: { name: 'Standard' },
    frontendIPConfigurations: [{ name: PART, publicIPAddress: { id: address.id } }],
    backendAddressPools: [{ name: PART }],
    probes: [{ name: PART, protocol: 'Https', port, requestPath: '/readyz', intervalInSeconds: 5, numberOfProbes: 2 }],
    loadBalancingRules: [
      {
        name: PART,
        protocol: 'Tcp',
        frontendPort: port,
        backendPort: port,
        idleTimeoutInMinutes: IDLE_MINUTES,
        enableTcpReset: true,
        // The NAT gateway is the way out.
        disableOutboundSnat: true,
        frontendIPConfiguration: part('frontendIPConfigurations'),
        backendAddressPool: part('backendAddressPools'),
        probe: part('probes'),
      },
    ],
  });
  // By Azure's own rules machines of a network reach each other, and its probes reach them; clients come with addresses of their own.
  const wall = new NetworkSecurityGroup('endpoint', {
    ...common,
    networkSecurityGroupName: name,
    securityRules: [
      {
        name: PART,
        description: 'clients of the API server',
        priority: 100,
        direction: 'Inbound',
        access: 'Allow',
        protocol: 'Tcp',
        sourceAddressPrefix: '*',
        sourcePortRange: '*',
        destinationAddressPrefix: '*',
        destinationPortRange: String(port),
      },
    ],
  });
  return {
    host: address.ipAddress,
    port,
    extra: { securityGroup: wall.id, backendPool: balancer.id.apply((id) => `${id}/backendAddressPools/${PART}`) },
  };
}
