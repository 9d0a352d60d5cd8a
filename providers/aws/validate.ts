import { type AddressRange, ipv4Range, rangeContains, rangeText } from '../../operator/api/address-range.ts';
import type { CloudProfile, MachineType } from '../../operator/api/cloudprofile.ts';
import { parseCount } from '../../operator/api/quantity.ts';
import type { Adoption, CloudPool, WantedCluster } from '../cloud.ts';
import type { Problem } from '../contract.ts';
import { registeredTaints } from '../nodes.ts';
import { poolNameProblems, profileProblems, zoneProblems } from '../validate.ts';
import { adoptProblems } from './adopted.ts';
import { NODES_BITS, PODS_BITS, ZONE_LETTERS } from './subnets.ts';

/**
 * Permitted ranges of Services in EKS, and their size. Source: KubernetesNetworkConfigRequest.serviceIpv4Cidr in
 * botocore 1.43.11.
 */
const PRIVATE_RANGES = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'];
const SERVICES_BITS = { from: 12, to: 24 };
/**
 * Ranges permitted at a public endpoint, a fixed quota. Source: AWS general reference, "Amazon EKS endpoints and
 * quotas".
 */
const MOST_AUTHORIZED = 40;
/** Longest CloudPool.name, since it is part of names with AWS' limits. */
const LONGEST_POOL_NAME = 12;
/** Longest keys and values of labels and taints (labelKey, labelValue, taintKey, taintValue in botocore 1.43.11). */
const LONGEST_LABEL = 63;
/** "Label cannot contain reserved prefixes", aws/containers-roadmap issue 1451. */
const RESERVED_LABELS = ['kubernetes.io/', 'k8s.io/', 'eks.amazonaws.com/'];
/** Size in GiB of EKS' images, the minimum of a disk (CreateNodegroupRequest.diskSize in botocore 1.43.11). */
const SMALLEST_DISK = 20;
/** Addresses of a subnet reserved by AWS. Source: Amazon VPC user guide, "Subnet CIDR blocks". */
const AWS_ADDRESSES = 5;

const problem = (field: string, message: string): Problem => ({ field, message, code: 'ERR_CONFIGURATION_PROBLEM' });

/** Problems of a cluster that EKS or the profile cannot provide; see ManagedClusters.validate. */
export function validateCluster(cluster: WantedCluster, profile: CloudProfile): Problem[] {
  if (cluster.adopt) return validateAdoption(cluster, cluster.adopt, profile);
  const { region, kubernetesVersion, cidrs, pools } = cluster;
  // EKS pods take single addresses: nodes do not exhaust a range as they do with a /24 each.
  const uncounted = pools.map((pool) => ({ ...pool, count: 0 }));
  return [
    ...profileProblems({ region, kubernetesVersion, networking: cidrs, pools: uncounted }, profile),
    ...zoneProblems(cluster, profile),
    ...zoneSetProblems(cluster, profile),
    ...rangeProblems(cluster),
    ...authorizedProblems(cluster.authorizedNetworks),
    ...pools.flatMap((pool, index) => poolProblems(pool, cluster, `pools[${index}]`, profile)),
  ];
}

/** Problems of an adoption: only the id and Coppice's additions are checked. */
function validateAdoption(cluster: WantedCluster, adopt: Adoption, profile: CloudProfile): Problem[] {
  return [
    ...adoptProblems(adopt, cluster.region),
    ...authorizedProblems(cluster.authorizedNetworks),
    ...cluster.pools.flatMap((pool, index) => poolProblems(pool, cluster, `pools[${index}]`, profile)),
  ];
}

function zoneSetProblems({ region, zones }: WantedCluster, profile: CloudProfile): Problem[] {
  const known = profile.spec.regions.find((one) => one.name === region)?.zones?.map((zone) => zone.name);
  if (!known) return [];
  const problems: Problem[] = [];
  if (new Set(zones).size < 2) {
    const given = zones.length === 0 ? 'none is named' : `${zones[0]} is only one`;
    problems.push(problem('zones', `EKS needs two zones or more, ${given}: region ${region} has ${known.join(', ')}`));
  }
  const local = zones.find(
    (zone) => !(zone.startsWith(region) && ZONE_LETTERS.includes(zone.slice(region.length) || '?')),
  );
  if (local && known.includes(local)) {
    problems.push(
      problem('zones', `${local} is no availability zone of ${region}: their names are ${region}a to ${region}h`),
    );
  }
  return problems;
}

const privateOf = (range: AddressRange): string | undefined =>
  PRIVATE_RANGES.find((known) => rangeContains(ipv4Range(known)!, range));

function rangeProblems({ cidrs, zones, pools }: WantedCluster): Problem[] {
  const problems: Problem[] = [];
  const limits = { nodes: NODES_BITS, pods: PODS_BITS, services: SERVICES_BITS };
  const ranges: Partial<Record<keyof typeof limits, AddressRange>> = {};
  for (const [name, { from, to }] of Object.entries(limits) as [keyof typeof limits, typeof NODES_BITS][]) {
    const range = ipv4Range(cidrs[name]);
    if (!range) continue;
    ranges[name] = range;
    if (rangeText(range) !== cidrs[name])
      problems.push(
        problem(`networking.${name}`, `${cidrs[name]} does not begin the range: write ${rangeText(range)}`),
      );
    if (range.prefix >= from && range.prefix <= to) continue;
    problems.push(
      problem(`networking.${name}`, `${cidrs[name]} does not fit AWS: choose a range from /${from} to /${to}`),
    );
  }
  const { nodes, pods, services } = ranges;
  if (services && !privateOf(services)) {
    const message = `EKS takes Services from ${PRIVATE_RANGES.join(', ')} only, ${cidrs.services} lies outside`;
    problems.push(problem('networking.services', message));
  }
  // A VPC accepts no second range from another private block (Amazon VPC user guide, "IPv4 CIDR block association
  // restrictions").
  const [first, second] = [nodes && privateOf(nodes), pods && privateOf(pods)];
  if (first && second && first !== second) {
    const message = `pods ${cidrs.pods} lie in ${second} and nodes ${cidrs.nodes} in ${first}, which one VPC cannot have both`;
    problems.push(problem('networking.pods', `${message}: choose pods from 100.64.0.0/10`));
  }
  const room = nodes ? zones.length * (2 ** (32 - nodes.prefix - 4) - AWS_ADDRESSES) : Number.POSITIVE_INFINITY;
  const most = pools.reduce((sum, pool) => sum + mostOf(pool), 0);
  if (nodes && nodes.prefix <= NODES_BITS.to && zones.length > 0 && most > room) {
    const message = `${cidrs.nodes} has addresses for ${room} nodes in ${zones.length} zones, ${most} are wanted`;
    problems.push(problem('networking.nodes', message));
  }
  return problems;
}

/** Upper limit of a pool's nodes, as far as there is one. */
const mostOf = ({ desired, maximum }: CloudPool): number =>
  Math.max(desired ?? 0, Number.isFinite(maximum) ? maximum : 0);

function authorizedProblems(networks: readonly string[]): Problem[] {
  const problems = networks.flatMap((network, index) =>
    ipv4Range(network)
      ? []
      : [problem(`authorizedNetworks[${index}]`, `${network} is no IPv4 range such as 198.51.100.0/24`)],
  );
  if (networks.length > MOST_AUTHORIZED) {
    const message = `${networks.length} networks are more than the ${MOST_AUTHORIZED} that EKS takes`;
    problems.push(problem('authorizedNetworks', message));
  }
  return problems;
}

function poolProblems(pool: CloudPool, { zones }: WantedCluster, field: string, profile: CloudProfile): Problem[] {
  const { name, minimum, maximum, desired } = pool;
  const problems = poolNameProblems(name, LONGEST_POOL_NAME, field);
  const say = (part: string, message: string) => problems.push(problem(`${field}.${part}`, message));
  if (minimum > maximum) say('minimum', `minimum ${minimum} is more than maximum ${maximum}`);
  if (desired === undefined && !Number.isFinite(maximum))
    say('maximum', 'an autoscaled pool needs a maximum: what it may cost has no limit otherwise');
  for (const zone of pool.zones.filter((one) => !zones.includes(one)))
    say('zones', `${zone} is none of the cluster's zones ${zones.join(', ')}`);
  if (pool.diskGiB !== undefined && pool.diskGiB < SMALLEST_DISK)
    say('diskGiB', `a disk of ${pool.diskGiB} GiB is smaller than the ${SMALLEST_DISK} that EKS' images need`);
  const type = profile.spec.machineTypes.find((known) => known.name === pool.machineType);
  return [...problems, ...labelProblems(pool, field), ...(type ? typeProblems(pool, type, field) : [])];
}

function labelProblems(pool: CloudPool, field: string): Problem[] {
  const problems: Problem[] = [];
  for (const [key, value] of Object.entries(pool.labels)) {
    const prefix = RESERVED_LABELS.find((reserved) => key.includes(reserved));
    if (prefix) problems.push(problem(`${field}.labels`, `EKS keeps labels ${prefix}* for itself: take ${key} away`));
    if (key.length > LONGEST_LABEL || value.length > LONGEST_LABEL)
      problems.push(problem(`${field}.labels`, `EKS takes no label longer than ${LONGEST_LABEL} characters: ${key}`));
  }
  for (const { key } of registeredTaints(pool).filter((taint) => taint.key.length > LONGEST_LABEL))
    problems.push(problem(`${field}.taints`, `EKS takes no key longer than ${LONGEST_LABEL} characters: ${key}`));
  return problems;
}

function typeProblems(pool: CloudPool, type: MachineType, field: string): Problem[] {
  const problems: Problem[] = [];
  const architecture = type.architecture ?? 'amd64';
  if (pool.architecture !== architecture) {
    const message = `machine type ${type.name} is ${architecture}, not ${pool.architecture}`;
    problems.push(problem(`${field}.architecture`, message));
  }
  const gpus = parseCount(type.gpu ?? 0);
  if (pool.gpu > gpus)
    problems.push(problem(`${field}.gpu`, `machine type ${type.name} has ${gpus} GPUs, ${pool.gpu} are wanted`));
  return problems;
}
