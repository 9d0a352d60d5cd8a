import { Network, Router, RouterNat, Subnetwork } from '@pulumi/gcp/compute/index.js';
import type { NetworkInputs } from '../../cloud.ts';
import type { ProgramOutputs } from '../../pulumi/program.ts';
import { descriptionOf } from '../labels.ts';
import { computeName, SECONDARY_RANGES } from '../names.ts';

/**
 * A network of its own with one regional subnet for all zones. Nodes have no address of the internet: they reach it by Cloud NAT, and
 * Google's APIs (and registries) by Private Google Access.
 */
export function network({ owner, region, cidrs }: NetworkInputs): ProgramOutputs {
  const description = descriptionOf(owner);
  // Google cannot change it later: a word more in it must not replace the network under a running cluster.
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
    // Of this subnet only: another NAT of the network would otherwise be refused.
    sourceSubnetworkIpRangesToNat: 'LIST_OF_SUBNETWORKS',
    subnetworks: [{ name: subnet.id, sourceIpRangesToNats: ['ALL_IP_RANGES'] }],
    // A fixed number of ports a node is used up by one busy pod; errors only, because every connection would be a line to pay for.
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
