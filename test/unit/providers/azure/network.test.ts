import { describe, expect, it } from 'vitest';
import { programs } from '../../../../providers/azure/programs.ts';
import { graphOf } from '../../../kit/pulumi-graph.ts';
import { answers, networkInputs, tags } from './fixtures.ts';

const plain = graphOf(programs.network!, networkInputs, answers);

describe('the Azure network of a cluster', () => {
  it('is in its own resource group in the region', async () => {
    const { resources } = await plain;
    expect(resources.map(({ type }) => type)).toEqual([
      'azure-native:network:NatGateway',
      'azure-native:network:PublicIPAddress',
      'azure-native:network:VirtualNetwork',
      'azure-native:resources:ResourceGroup',
    ]);
    for (const { inputs, options, type } of resources) {
      expect(inputs).toMatchObject({ resourceGroupName: 'shoot--shop--one', location: 'germanywestcentral' });
      if (!type.endsWith('ResourceGroup')) expect(options.dependsOn, type).toContain('resource-group');
    }
  });

  it('has one private subnet, with the NAT gateway as its only egress', async () => {
    const graph = await plain;
    expect(graph.one('azure-native:network:VirtualNetwork').inputs).toMatchObject({
      addressSpace: { addressPrefixes: ['10.0.0.0/20'] },
      subnets: [
        { name: 'nodes', addressPrefix: '10.0.0.0/20', natGateway: { id: '<nat.id>' }, defaultOutboundAccess: false },
      ],
    });
    expect(graph.one('azure-native:network:NatGateway').inputs).toMatchObject({
      sku: { name: 'Standard' },
      publicIpAddresses: [{ id: '<nat-address.id>' }],
    });
    expect(graph.one('azure-native:network:PublicIPAddress').inputs).toMatchObject({
      sku: { name: 'Standard' },
      publicIPAllocationMethod: 'Static',
    });
  });

  it("has fixed names and the owner's tags", async () => {
    const graph = await plain;
    expect(graph.one('azure-native:network:VirtualNetwork').inputs.virtualNetworkName).toBe('shoot--shop--one');
    expect(graph.one('azure-native:network:NatGateway').inputs.natGatewayName).toBe('shoot--shop--one-nat');
    expect(graph.one('azure-native:network:PublicIPAddress').inputs.publicIpAddressName).toBe('shoot--shop--one-nat');
    for (const { inputs, type } of graph.resources) expect(inputs.tags, type).toEqual(tags);
  });

  it('outputs what the upper layers need', async () => {
    expect((await plain).outputs).toEqual({
      network: '<network.id>',
      subnets: [{ id: '<network.id>/subnets/nodes' }],
      extra: { egressAddress: '203.0.113.7' },
    });
  });
});
