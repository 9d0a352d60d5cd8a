import { ipv4Range } from '../../operator/api/address-range.ts';
import type { CloudProfile } from '../../operator/api/cloudprofile.ts';
import { parseCount } from '../../operator/api/quantity.ts';
import type { Adoption, CloudPool, WantedCluster } from '../cloud.ts';
import type { Problem } from '../contract.ts';
import { poolNameProblems, profileProblems, zoneProblems } from '../validate.ts';
import { acceleratorOf } from './accelerators.ts';
import { adoptProblems } from './adopted.ts';

/**
 * GKE's limit of the Services range ("Services CIDR range is smaller than minimum (14 < 16)", rancher/rancher issue
 * 32207).
 */
const WIDEST_SERVICES = 16;
/** Google reserves four addresses of a subnet (cloud.google.com/vpc/docs/subnets), and the API server takes one. */
const TAKEN_ADDRESSES = 5;
/** Longest CloudPool.name, since it is part of names with Google's limits. */
const LONGEST_POOL_NAME = 12;

const problem = (field: string, message: string): Problem => ({ field, message, code: 'ERR_CONFIGURATION_PROBLEM' });

/** Problems of a cluster that GKE or the profile cannot provide; see ManagedClusters.validate. */
export function validateCluster(cluster: WantedCluster, profile: CloudProfile): Problem[] {
  if (cluster.adopt) return validateAdoption(cluster, cluster.adopt, profile);
  const { region, kubernetesVersion, cidrs, pools } = cluster;
  const wanted = pools.map((pool) => ({ ...pool, count: mostOf(pool) }));
  return [
    ...profileProblems({ region, kubernetesVersion, networking: cidrs, pools: wanted }, profile),
    ...(cluster.zones.length === 0
      ? [problem('zones', `a cluster in ${region} needs a zone for its nodes: name one`)]
      : []),
    ...zoneProblems(cluster, profile),
    ...rangeProblems(cluster),
    ...pools.flatMap((pool, index) => poolProblems(pool, `pools[${index}]`, profile)),
  ];
}

/** Problems of an adoption: only the id and Coppice's additions are checked. */
function validateAdoption(cluster: WantedCluster, adopt: Adoption, profile: CloudProfile): Problem[] {
  return [
    ...adoptProblems(adopt, cluster.region),
    ...authorizedProblems(cluster.authorizedNetworks),
    ...cluster.pools.flatMap((pool, index) => poolProblems(pool, `pools[${index}]`, profile)),
  ];
}

/** Upper limit of a pool's nodes, as far as there is one. */
const mostOf = ({ desired, maximum }: CloudPool): number =>
  Math.max(desired ?? 0, Number.isFinite(maximum) ? maximum : 0);

function rangeProblems({ cidrs, pools, authorizedNetworks }: WantedCluster): Problem[] {
  const problems: Problem[] = [];
  const services = ipv4Range(cidrs.services);
  if (services && services.prefix < WIDEST_SERVICES) {
    const range = `${cidrs.services} is too large for Services at GKE`;
    problems.push(problem('networking.services', `${range}: /${WIDEST_SERVICES} at most`));
  }
  const nodes = ipv4Range(cidrs.nodes);
  const most = nodes ? Number(nodes.size) - TAKEN_ADDRESSES : Number.POSITIVE_INFINITY;
  const count = pools.reduce((sum, pool) => sum + mostOf(pool), 0);
  if (count > most) {
    problems.push(problem('networking.nodes', `${cidrs.nodes} has addresses for ${most} nodes, ${count} are wanted`));
  }
  return [...problems, ...authorizedProblems(authorizedNetworks)];
}

const authorizedProblems = (networks: readonly string[]): Problem[] =>
  networks.flatMap((network, index) =>
    ipv4Range(network)
      ? []
      : [problem(`authorizedNetworks[${index}]`, `${network} is no IPv4 range such as 198.51.100.0/24`)],
  );

function poolProblems(pool: CloudPool, field: string, profile: CloudProfile): Problem[] {
  const problems = poolNameProblems(pool.name, LONGEST_POOL_NAME, field);
  const say = (part: string, message: string) => problems.push(problem(`${field}.${part}`, message));
  const { minimum, maximum, desired } = pool;
  if (minimum > maximum) say('minimum', `minimum ${minimum} is more than maximum ${maximum}`);
  if (desired === undefined && !Number.isFinite(maximum)) {
    say('maximum', 'an autoscaled pool needs a maximum: what it may cost has no limit otherwise');
  }
  const type = profile.spec.machineTypes.find((known) => known.name === pool.machineType);
  if (!type) return problems;
  const architecture = type.architecture ?? 'amd64';
  if (pool.architecture !== architecture) {
    say('architecture', `machine type ${type.name} is ${architecture}, not ${pool.architecture}`);
  }
  const gpus = parseCount(type.gpu ?? 0);
  if (pool.gpu > gpus) say('gpu', `machine type ${type.name} has ${gpus} GPUs, ${pool.gpu} are wanted`);
  else if (pool.gpu > 0 && acceleratorOf(type.name) === undefined) {
    say('gpu', `which GPU machines of type ${type.name} have is not known: choose a type such as g2-standard-4`);
  }
  return problems;
}
