import { Network, Router, RouterNat, Subnetwork } from '@pulumi/gcp/compute/index.js';
import type { NetworkInputs } from '../../cloud.ts';
import type { ProgramOutputs } from '../../pulumi/program.ts';
import { descriptionOf } from '../labels.ts';
import { computeName, SECONDARY_RANGES } from '../names.ts';

/**
 * A separate network with one regional subnet for all zones. Nodes have no public address: they reach the internet by
 * Cloud NAT, and Google's APIs (and registries) by Private Google Access.
 */
export function network({ owner, region, cidrs }: NetworkInputs): ProgramOutputs {
  const description = descriptionOf(owner);
  // Immutable at Google: a changed text must not replace the network under a running cluster.
  const options = { ignoreChanges: ['description'] };
  const vpc = new Network(
    'network',
    {
      name: computeName(owner),
      description,
      // Auto mode would take 10.128.0.0/9 for subnets in every region.
      autoCreateSubnetworks: false,
      routingMode: 'REGIONAL',
    },
    options,
  );
  const subnet = new Subnetwork(
    'nodes',
    {
      name: computeName(owner, 'nodes'),
      description,
      network: vpc.id,
      region,
      ipCidrRange: cidrs.nodes,
      privateIpGoogleAccess: true,
      secondaryIpRanges: [
        { rangeName: SECONDARY_RANGES.podsRange, ipCidrRange: cidrs.pods },
        { rangeName: SECONDARY_RANGES.servicesRange, ipCidrRange: cidrs.services },
      ],
    },
    options,
  );
  const router = new Router('router', { name: computeName(owner, 'router'), description, network: vpc.id, region });
  new RouterNat('nat', {
    name: computeName(owner, 'nat'),
    router: router.name,
    region,
    natIpAllocateOption: 'AUTO_ONLY',
    // This subnet only: otherwise another NAT of the network would be refused.
    sourceSubnetworkIpRangesToNat: 'LIST_OF_SUBNETWORKS',
    subnetworks: [{ name: subnet.id, sourceIpRangesToNats: ['ALL_IP_RANGES'] }],
    // A fixed number of ports per node is exhausted by one busy pod; errors only, since every logged connection is
    // billed.
    enableDynamicPortAllocation: true,
    enableEndpointIndependentMapping: false,
    logConfig: { enable: true, filter: 'ERRORS_ONLY' },
  });
  return {
    network: vpc.id,
    subnets: [{ id: subnet.id }],
    extra: SECONDARY_RANGES,
  };
}
