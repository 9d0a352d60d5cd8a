import { LoadBalancer } from '@pulumi/azure-native/network/loadBalancer.js';
import { NetworkSecurityGroup } from '@pulumi/azure-native/network/networkSecurityGroup.js';
import { PublicIPAddress } from '@pulumi/azure-native/network/publicIPAddress.js';
import type { EndpointInputs } from '../../cloud.ts';
import type { ProgramOutputs } from '../../pulumi/program.ts';
import { tagsOf } from '../../tags.ts';
import { endpointName, resourceGroupName } from '../names.ts';

/** Name of each of the load balancer's parts. */
const PART = 'api-server';
/** Azure's maximum: watches may be silent for minutes. */
const IDLE_MINUTES = 30;

/**
 * Layer `endpoint`: a permanent address and load balancer in front of the machines. Machines reach the internet, and
 * this address, through the network's NAT gateway: a machine connected to itself sees the gateway's address.
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
  // Its parts refer to each other by ids built from names.
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
        // The NAT gateway provides outbound access.
        disableOutboundSnat: true,
        frontendIPConfiguration: part('frontendIPConfigurations'),
        backendAddressPool: part('backendAddressPools'),
        probe: part('probes'),
      },
    ],
  });
  // Azure's default rules permit traffic within the network and its probes; clients keep their own addresses.
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
