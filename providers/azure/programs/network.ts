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
 * The cluster's resource group, and in it a network with one subnet for all zones (Azure's subnets are regional). Nodes have no
 * address of the internet and reach it by the NAT gateway. Pods and Services have ranges of their own (CNI overlay), so the
 * network has the nodes' range only.
 *
 * The gateway is of SKU Standard, which is in one zone of Azure's choice: StandardV2 spans zones, but the API version of this SDK
 * (2024-05-01) does not have it. There is no security group: AKS keeps one on the nodes' interfaces, and a second one on the
 * subnet would shut out what Services of type LoadBalancer let in.
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
          // Without the gateway a node must have no way out, rather than one by an address that nobody knows.
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
