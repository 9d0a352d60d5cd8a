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

describe('every resource', () => {
  it('must have a physical name', async () => {
    const nameless = declaring(() => new NatGateway('nat', { resourceGroupName: 'g', tags }));
    await expect(nameless).rejects.toThrow('azure-native:network:NatGateway nat has no natGatewayName');
  });

  it('must bear the tags of its owner', async () => {
    const { 'coppice-uid': _, ...some } = tags;
    const args = { resourceGroupName: 'g', natGatewayName: 'n', tags: some };
    await expect(declaring(() => new NatGateway('nat', args))).rejects.toThrow('lacks the tags coppice-uid');
  });

  it('must be of a type of which it is known what names it', async () => {
    const unknown = declaring(() => new RouteTable('routes', { resourceGroupName: 'g', tags }));
    await expect(unknown).rejects.toThrow('which property names it?');
  });
});
