import { addressRangesOverlap, ipv4Range } from '../../operator/api/address-range.ts';
import type { CloudProfile, MachineType } from '../../operator/api/cloudprofile.ts';
import { parseCount } from '../../operator/api/quantity.ts';
import type { Adoption, CloudPool, WantedCluster } from '../cloud.ts';
import type { Problem } from '../contract.ts';
import { poolNameProblems, profileProblems, zoneProblems } from '../validate.ts';
import { adoptProblems } from './adopted.ts';
import { LONGEST } from './names.ts';

/** Ranges forbidden in AKS clusters (azure-aks-docs articles/aks/concepts-network-cni-overview.md). */
const RESERVED_RANGES = ['169.254.0.0/16', '172.30.0.0/16', '172.31.0.0/16', '192.0.2.0/24'];
/** Label prefixes reserved by AKS (azure-aks-docs articles/aks/use-labels.md). */
const RESERVED_LABELS = ['kubernetes.azure.com/', 'kubernetes.io/'];
/**
 * Limit of ranges that may reach an API server (azure-aks-docs articles/aks/api-server-authorized-ip-ranges.md); one is
 * the nodes' own.
 */
const MOST_AUTHORIZED = 199;
/** Limit of nodes per agent pool (@pulumi/azure-native AgentPoolArgs.count). */
const MOST_NODES = 1000;
/** Smallest disk, GiB (azure-aks-docs articles/aks/node-auto-provisioning-aksnodeclass.md). */
const SMALLEST_DISK = 30;
/**
 * Nodes of the system pool, and addresses of each subnet reserved by Azure (azure-aks-docs
 * concepts-network-azure-cni-overlay.md).
 */
const SYSTEM_NODES = 2;
const AZURES_ADDRESSES = 5;

const problem = (field: string, message: string): Problem => ({ field, message, code: 'ERR_CONFIGURATION_PROBLEM' });

/** Problems of a cluster that AKS or the profile cannot provide; see ManagedClusters.validate. */
export function validateCluster(cluster: WantedCluster, profile: CloudProfile): Problem[] {
  if (cluster.adopt) return validateAdoption(cluster, cluster.adopt, profile);
  const { region, kubernetesVersion, cidrs, pools } = cluster;
  const networking = { pods: cidrs.pods, services: cidrs.services, nodes: cidrs.nodes };
  const wanted = {
    region,
    kubernetesVersion,
    networking,
    pools: pools.map((pool) => ({ ...pool, count: mostOf(pool) })),
  };
  return [
    ...profileProblems(wanted, profile),
    ...zoneProblems(cluster, profile),
    ...pools.flatMap((pool, index) => poolProblems(pool, `pools[${index}]`, profile)),
    ...rangeProblems(cluster),
    ...authorizedProblems(cluster.authorizedNetworks),
  ];
}

/** Problems of an adoption: only the id and Coppice's additions are checked. */
function validateAdoption(cluster: WantedCluster, adopt: Adoption, profile: CloudProfile): Problem[] {
  return [
    ...adoptProblems(adopt),
    ...cluster.pools.flatMap((pool, index) => poolProblems(pool, `pools[${index}]`, profile)),
    ...authorizedProblems(cluster.authorizedNetworks),
  ];
}

const mostOf = ({ desired, maximum }: CloudPool): number => Math.max(desired ?? 0, maximum);

function poolProblems(pool: CloudPool, field: string, profile: CloudProfile): Problem[] {
  const { minimum, maximum, desired } = pool;
  const problems = poolNameProblems(pool.name, LONGEST.agentPool, field);
  const say = (part: string, message: string) => problems.push(problem(`${field}.${part}`, message));
  if (minimum > maximum) say('minimum', `minimum ${minimum} is more than maximum ${maximum}`);
  if (maximum > MOST_NODES) say('maximum', `${maximum} nodes are more than the ${MOST_NODES} of one pool at AKS`);
  if (desired === undefined && maximum < 1) say('maximum', 'an autoscaled pool at AKS needs a maximum of 1 or more');
  if (pool.diskGiB !== undefined && pool.diskGiB < SMALLEST_DISK)
    say('diskGiB', `a disk of ${pool.diskGiB} GiB is smaller than the ${SMALLEST_DISK} that AKS wants`);
  for (const label of Object.keys(pool.labels)) {
    const prefix = RESERVED_LABELS.find((reserved) => label.startsWith(reserved));
    if (prefix) say('labels', `AKS keeps labels ${prefix}* for itself: take ${label} away`);
  }
  if (pool.startupTaints?.length)
    say(
      'startupTaints',
      'AKS puts back every taint of an agent pool: have the agent tolerate its own taint, and set it on nodes',
    );
  const type = profile.spec.machineTypes.find((known) => known.name === pool.machineType);
  if (type) problems.push(...typeProblems(pool, type, field));
  return problems;
}

function typeProblems(pool: CloudPool, type: MachineType, field: string): Problem[] {
  const problems: Problem[] = [];
  const architecture = type.architecture ?? 'amd64';
  if (pool.architecture !== architecture)
    problems.push(
      problem(`${field}.architecture`, `machine type ${type.name} is ${architecture}, not ${pool.architecture}`),
    );
  const gpus = parseCount(type.gpu);
  if (pool.gpu > gpus)
    problems.push(problem(`${field}.gpu`, `machine type ${type.name} has ${gpus} GPUs, ${pool.gpu} are wanted`));
  return problems;
}

function rangeProblems({ cidrs, pools }: WantedCluster): Problem[] {
  const problems: Problem[] = [];
  for (const [key, text] of Object.entries(cidrs)) {
    const range = ipv4Range(text);
    // profileProblems reports invalid ranges.
    if (!range) continue;
    const field = `networking.${key}`;
    const reserved = RESERVED_RANGES.find((known) => addressRangesOverlap(range, ipv4Range(known)!));
    if (reserved) problems.push(problem(field, `${text} overlaps with ${reserved}, which Azure keeps for itself`));
    if (key === 'services' && (range.prefix <= 12 || range.prefix > 28))
      problems.push(problem(field, `${text} must be smaller than a /12 and no smaller than a /28`));
    if (key !== 'nodes') continue;
    const needed = pools.reduce((sum, pool) => sum + mostOf(pool), SYSTEM_NODES);
    const offered = Number(range.size) - AZURES_ADDRESSES;
    if (needed > offered)
      problems.push(problem(field, `${text} has room for ${Math.max(0, offered)} nodes, ${needed} may be wanted`));
  }
  return problems;
}

function authorizedProblems(networks: readonly string[]): Problem[] {
  const wrong = networks.filter((network) => !ipv4Range(network));
  const problems = wrong.map((network) =>
    problem('authorizedNetworks', `${network} is no IPv4 range such as 198.51.100.0/24`),
  );
  if (networks.length > MOST_AUTHORIZED)
    problems.push(problem('authorizedNetworks', `AKS takes ${MOST_AUTHORIZED} ranges, not ${networks.length}`));
  return problems;
}
