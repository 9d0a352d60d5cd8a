import { NatGateway } from '@pulumi/azure-native/network/natGateway.js';
import { RouteTable } from '@pulumi/azure-native/network/routeTable.js';
import { describe, expect, it } from 'vitest';
import { named } from '../../../../providers/azure/programs/naming.ts';
import { graphOf } from '../../../kit/pulumi-graph.ts';
import { tags } from './fixtures.ts';

const declaring = (declare: () => object) =>
  graphOf(
    named(() => {
      declare();
      return {};
    }),
    {},
  );

describe('each resource of an Azure program', () => {
  it('is refused without a physical name', async () => {
    const nameless = declaring(() => new NatGateway('nat', { resourceGroupName: 'g', tags }));
    await expect(nameless).rejects.toThrow('azure-native:network:NatGateway nat has no natGatewayName');
  });

  it("is refused without the owner's tags", async () => {
    const { 'coppice-uid': _, ...some } = tags;
    const args = { resourceGroupName: 'g', natGatewayName: 'n', tags: some };
    await expect(declaring(() => new NatGateway('nat', args))).rejects.toThrow('lacks the tags coppice-uid');
  });

  it('is refused if the property with its name is unknown', async () => {
    const unknown = declaring(() => new RouteTable('routes', { resourceGroupName: 'g', tags }));
    await expect(unknown).rejects.toThrow('which property names it?');
  });
});
