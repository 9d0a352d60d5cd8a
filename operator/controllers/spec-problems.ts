import type { Problem } from '../../providers/contract.ts';
import type { CloudProfile } from '../api/cloudprofile.ts';
import type { ErrorCode } from '../api/errors.ts';
import { gpusOf } from '../api/gpu.ts';
import type { DesiredPool, NormalPool } from '../api/pools.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import { desiredSizes } from '../capacity/desired-sizes.ts';
import { resolveVersion } from './kubernetes-version.ts';

interface Written {
  readonly cluster: WorkerCluster;
}

/** A problem of a spec. @param field path below `spec` */
export const problem = (field: string, message: string, code: ErrorCode = 'ERR_CONFIGURATION_PROBLEM'): Problem => ({
  field,
  message,
  code,
});

/** A limited list of names for an error. */
export const shortList = (names: readonly string[]): string =>
  names.length > 12 ? `${names.slice(0, 12).join(', ')}, ...` : names.join(', ');

/** Problems of a new cluster's spec by its profile, in any mode. Pure. */
export function specProblems(cluster: WorkerCluster, profile: CloudProfile, now: Date): Problem[] {
  const sizes = desiredSizes({ cluster, profile });
  return [
    ...resolvePlace({ cluster }, profile).problems,
    ...kubernetesProblems(cluster.spec.kubernetes?.version, profile, now),
    ...poolProblems({ cluster }, profile, sizes),
    ...limitProblems(cluster, profile, sizes),
  ];
}

/** Region and zones of a cluster by its profile, with their problems. Pure. */
export function resolvePlace({ cluster: { spec } }: Written, profile: CloudProfile) {
  const name = profile.metadata.name;
  const problems: Problem[] = [];
  const region = spec.region ?? profile.spec.defaults?.region ?? profile.spec.regions[0]?.name;
  const known = profile.spec.regions.find((candidate) => candidate.name === region);
  if (!known) {
    problems.push(
      problem(
        'region',
        `CloudProfile "${name}" has no region "${region}" (it has: ${shortList(profile.spec.regions.map((r) => r.name))})`,
      ),
    );
  }
  const zones = (known?.zones ?? []).map((zone) => zone.name);
  for (const zone of spec.zones ?? []) {
    if (known && !zones.includes(zone))
      problems.push(problem('zones', `region ${region} has no zone "${zone}" (it has: ${shortList(zones)})`));
  }
  return { region, zones, problems };
}

/** Problems of a requested version. Pure. */
export function kubernetesProblems(wanted: string | undefined, profile: CloudProfile, now: Date): Problem[] {
  if (resolveVersion(wanted, profile, now) !== undefined) return [];
  const offered = (profile.spec.kubernetes.versions ?? []).map((offer) => offer.version);
  const message = `CloudProfile "${profile.metadata.name}" offers no Kubernetes ${wanted ?? ''} (it offers: ${shortList(offered)})`;
  return [problem('kubernetes.version', message)];
}

function gpuProblems(
  { gpu, machineType, zones }: NormalPool,
  index: number,
  { spec }: WorkerCluster,
  profile: CloudProfile,
): Problem[] {
  const has = gpusOf(profile.spec.machineTypes.find((type) => type.name === machineType));
  if (has >= gpu) return [];
  const field = `pools[${index}].gpu`;
  const own = spec.pools?.[index];
  if (own?.machineType !== undefined || own?.machineTypes !== undefined)
    return [problem(field, `machine type ${machineType} has ${has} GPUs, not ${gpu}: name another, or none`)];
  const offered = profile.spec.machineTypes.filter((type) => gpusOf(type) > 0);
  const known = offered.map((type) => `${type.name} with ${gpusOf(type)}`);
  const where = zones.length > 0 ? ` in ${zones.join(', ')}` : '';
  const message = `CloudProfile "${profile.metadata.name}" has no machine type with ${gpu} GPUs${where}`;
  return [problem(field, `${message} (with GPUs it has: ${known.length > 0 ? shortList(known) : 'none'})`)];
}

/** Problems of pools. Pure. */
export function poolProblems({ cluster }: Written, profile: CloudProfile, pools: readonly DesiredPool[]): Problem[] {
  const name = profile.metadata.name;
  const problems: Problem[] = [];
  const types = profile.spec.machineTypes.map((type) => type.name);
  pools.forEach((pool, index) => {
    const own = cluster.spec.pools?.[index];
    const field = own?.machineType ? `pools[${index}].machineType` : 'machineType';
    const list = own?.machineTypes ? `pools[${index}].machineTypes` : 'machineTypes';
    for (const other of pool.alternatives) {
      if (types.includes(other)) continue;
      const message = `CloudProfile "${name}" has no machine type "${other}" (it has: ${shortList(types)})`;
      if (!problems.some((known) => known.field === list && known.message === message))
        problems.push(problem(list, message));
    }
    if (!pool.machineType)
      problems.push(
        problem(field, `name a machine type: CloudProfile "${name}" has no default (it has: ${shortList(types)})`),
      );
    else if (!types.includes(pool.machineType)) {
      problems.push(
        problem(
          field,
          `CloudProfile "${name}" has no machine type "${pool.machineType}" (it has: ${shortList(types)})`,
        ),
      );
    } else problems.push(...gpuProblems(pool, index, cluster, profile));
  });
  // The API server sees the defaulted number: without it, removing the pools would remove all nodes.
  const { pools: listed, dataPlaneNodes, adopt } = cluster.spec;
  if (!listed && dataPlaneNodes === undefined && !adopt)
    problems.push(problem('dataPlaneNodes', 'say how many nodes: dataPlaneNodes, or pools with a minimum each'));
  return problems;
}

/** Judges growth only: a cluster above a lowered limit stays, and may shrink. */
export function limitProblems(
  { spec }: WorkerCluster,
  profile: CloudProfile,
  pools: readonly DesiredPool[],
  before = 0,
): Problem[] {
  const most = profile.spec.limits?.maxNodesTotal;
  const nodes = sum(pools.map(({ count }) => count));
  if (most === undefined || nodes <= most || nodes <= before) return [];
  const message = `CloudProfile "${profile.metadata.name}" allows at most ${most} nodes in a cluster, not ${nodes}; ask for ${most} or fewer`;
  return [problem(spec.dataPlaneNodes === undefined ? 'pools' : 'dataPlaneNodes', message, 'ERR_INFRA_QUOTA_EXCEEDED')];
}

/** Sum. */
export const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
