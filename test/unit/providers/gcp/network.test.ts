import { describe, expect, it } from 'vitest';
import { programs } from '../../../../providers/gcp/programs.ts';
import { graphOf } from '../../../kit/pulumi-graph.ts';
import { networkInputs, owner } from './fixtures.ts';

const declared = () => graphOf(programs.network!, networkInputs);

describe('the Google network of a cluster', () => {
  it('has one regional subnet, with ranges for pods and Services, and private access to Google', async () => {
    const graph = await declared();
    expect(graph.one('gcp:compute/network:Network').inputs).toMatchObject({ autoCreateSubnetworks: false });
    expect(graph.one('gcp:compute/subnetwork:Subnetwork').inputs).toMatchObject({
      network: '<network.id>',
      region: 'europe-west3',
      ipCidrRange: '10.0.0.0/20',
      privateIpGoogleAccess: true,
      secondaryIpRanges: [
        { rangeName: 'pods', ipCidrRange: '10.4.0.0/14' },
        { rangeName: 'services', ipCidrRange: '10.8.0.0/20' },
      ],
    });
  });

  it('gives nodes and pods egress by Cloud NAT', async () => {
    const graph = await declared();
    const router = graph.one('gcp:compute/router:Router').inputs;
    expect(router).toMatchObject({ network: '<network.id>', region: 'europe-west3' });
    expect(graph.one('gcp:compute/routerNat:RouterNat').inputs).toMatchObject({
      router: router.name,
      region: 'europe-west3',
      natIpAllocateOption: 'AUTO_ONLY',
      sourceSubnetworkIpRangesToNat: 'LIST_OF_SUBNETWORKS',
      subnetworks: [{ name: '<nodes.id>', sourceIpRangesToNats: ['ALL_IP_RANGES'] }],
      enableDynamicPortAllocation: true,
    });
  });

  it('has fixed names, and the owner in descriptions', async () => {
    const { resources } = await declared();
    expect(resources.map(({ inputs }) => inputs.name).sort()).toEqual([
      'shoot--shop--one',
      'shoot--shop--one-nat',
      'shoot--shop--one-nodes',
      'shoot--shop--one-router',
    ]);
    for (const { type, inputs } of resources.filter((one) => one.type !== 'gcp:compute/routerNat:RouterNat')) {
      expect(inputs.description, type).toContain(`coppice-uid=${owner.uid}`);
    }
  });

  it('is not replaced for a changed description', async () => {
    const graph = await declared();
    expect(graph.one('gcp:compute/network:Network').options.ignoreChanges).toContain('description');
    expect(graph.one('gcp:compute/subnetwork:Subnetwork').options.ignoreChanges).toContain('description');
  });

  it('outputs what the upper layers need', async () => {
    const { outputs } = await declared();
    expect(outputs).toEqual({
      network: '<network.id>',
      subnets: [{ id: '<nodes.id>' }],
      extra: { podsRange: 'pods', servicesRange: 'services' },
    });
  });
});
