import { NatGateway } from '@pulumi/azure-native/network/natGateway.js';
import { PublicIPAddress } from '@pulumi/azure-native/network/publicIPAddress.js';
import { VirtualNetwork } from '@pulumi/azure-native/network/virtualNetwork.js';
import { ResourceGroup } from '@pulumi/azure-native/resources/resourceGroup.js';
import { interpolate } from '@pulumi/pulumi';
import type { NetworkInputs } from '../../cloud.ts';
import type { ProgramOutputs } from '../../pulumi/program.ts';
import { tagsOf } from '../../tags.ts';
import { NODES_SUBNET, natGatewayName, publicIPAddressName, resourceGroupName, virtualNetworkName } from '../names.ts';

/**
 * The cluster's resource group with a network of one subnet for all zones (Azure's subnets are regional). Nodes have no
 * public address and use the NAT gateway. Pods and Services have separate ranges (CNI overlay), so the network has the
 * nodes' range only.
 *
 * The gateway has SKU Standard, in one zone of Azure's choice: StandardV2 spans zones, but this SDK's API version
 * (2024-05-01) lacks it. There is no security group: AKS manages one on the nodes' interfaces, and a second one on the
 * subnet would block Services of type LoadBalancer.
 */
export function network({ owner, region, cidrs }: NetworkInputs): ProgramOutputs {
  const common = { resourceGroupName: resourceGroupName(owner), location: region, tags: tagsOf(owner) };
  const group = new ResourceGroup('resource-group', common);
  const address = new PublicIPAddress(
    'nat-address',
    {
      ...common,
      publicIpAddressName: publicIPAddressName(owner),
      sku: { name: 'Standard' },
      publicIPAddressVersion: 'IPv4',
      publicIPAllocationMethod: 'Static',
    },
    { dependsOn: group },
  );
  const nat = new NatGateway(
    'nat',
    {
      ...common,
      natGatewayName: natGatewayName(owner),
      sku: { name: 'Standard' },
      publicIpAddresses: [{ id: address.id }],
    },
    { dependsOn: group },
  );
  const vnet = new VirtualNetwork(
    'network',
    {
      ...common,
      virtualNetworkName: virtualNetworkName(owner),
      addressSpace: { addressPrefixes: [cidrs.nodes] },
      subnets: [
        {
          name: NODES_SUBNET,
          addressPrefix: cidrs.nodes,
          natGateway: { id: nat.id },
          // Without the gateway a node must have no outbound access, rather than one by an unknown address.
          defaultOutboundAccess: false,
        },
      ],
    },
    { dependsOn: group },
  );
  return {
    network: vnet.id,
    subnets: [{ id: interpolate`${vnet.id}/subnets/${NODES_SUBNET}` }],
    extra: { egressAddress: address.ipAddress },
  };
}
