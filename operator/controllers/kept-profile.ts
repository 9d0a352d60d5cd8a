import { isDeepStrictEqual } from 'node:util';
import type { CloudProfile, Region } from '../api/cloudprofile.ts';
import { DEFAULT_POOL } from '../api/pools.ts';
import type { Shoot } from '../api/shoot.ts';
import { profileNameOf, type WorkerCluster } from '../api/workercluster.ts';
import type { ManagedFacts } from './managed/facts.ts';

/** What a cluster uses of a profile. */
interface InUse {
  readonly versions: readonly string[];
  readonly region: string | undefined;
  readonly zones: readonly string[];
  readonly machineTypes: readonly string[];
  /** Defaults of the profile that the cluster relied on. */
  readonly defaults?: Partial<NonNullable<CloudProfile['spec']['defaults']>>;
}

/** Machine types of a cluster: from a WorkerCluster's status, or a Shoot's spec. */
export function grantedMachineTypesOf(object: WorkerCluster | Shoot): string[] {
  const types =
    object.kind === 'Shoot'
      ? (object.spec.provider.workers ?? []).map(({ machine }) => machine.type)
      : (object.status?.admitted?.pools ?? []).map(({ machineType }) => machineType);
  return [...new Set(types)].sort();
}

const known = (names: readonly (string | undefined)[]): string[] => [
  ...new Set(names.filter((name) => name !== undefined)),
];

/** What a Shoot uses. A new Shoot uses nothing; in one that people wrote, a new version is a new wish. */
export function usedByShoot(shoot: Shoot): InUse | undefined {
  const { spec, status, metadata } = shoot;
  if (status?.seedName === undefined) return undefined;
  const isOwned = metadata.ownerReferences?.some(({ kind }) => kind === 'WorkerCluster');
  return {
    versions: known([status.kubernetesVersion, isOwned ? spec.kubernetes.version : undefined]),
    region: spec.region,
    zones: known((spec.provider.workers ?? []).flatMap(({ zones = [] }) => zones)),
    machineTypes: grantedMachineTypesOf(shoot),
  };
}

/**
 * What a WorkerCluster uses of its place's profile, by its Shoot or the cloud's last request. undefined: nothing known
 * to exist.
 */
export function usedByCluster(
  cluster: WorkerCluster,
  shoot: Shoot | undefined,
  managed: Pick<ManagedFacts, 'version' | 'pools' | 'madeIn'> | undefined,
): InUse | undefined {
  const { spec, status } = cluster;
  const madeHere = managed?.madeIn?.profile === profileNameOf(cluster) ? managed.madeIn : undefined;
  // With fallbacks, the grant does not say which place it is for.
  const granted = spec.fallback ? undefined : status?.admitted;
  if (!shoot && !madeHere && !granted) return undefined;
  const region = shoot?.spec.region ?? madeHere?.region ?? granted?.region;
  const pools = [...(shoot?.spec.provider.workers ?? []), ...(managed?.pools ?? [])];
  return {
    versions: known([
      shoot?.status?.kubernetesVersion,
      shoot?.spec.kubernetes.version,
      managed?.version,
      status?.kubernetesVersion,
    ]),
    region,
    zones: known(pools.flatMap(({ zones = [] }) => zones)),
    machineTypes: known([...grantedMachineTypesOf(cluster), ...(shoot ? grantedMachineTypesOf(shoot) : [])]),
    defaults: { ...defaultsOf(cluster, shoot?.spec.networking ?? madeHere?.cidrs), ...(region && { region }) },
  };
}

/** Defaults that a cluster relied on: changed defaults of the profile are for new clusters. */
function defaultsOf(
  { spec, status }: WorkerCluster,
  ranges: { pods?: string; services?: string } | undefined,
): InUse['defaults'] {
  const pools = spec.pools?.length ? spec.pools : [{ name: DEFAULT_POOL }];
  const names = (one: { machineType?: string | undefined; machineTypes?: string[] | undefined }) =>
    one.machineType !== undefined || one.machineTypes !== undefined;
  const unnamed = names(spec) ? [] : pools.filter((pool) => !names(pool) && !('gpu' in pool)).map(({ name }) => name);
  const granted = status?.admitted;
  const machineType = granted?.pools.find(({ name }) => unnamed.includes(name))?.machineType;
  // Other ranges would mean another network, and another cluster.
  const { pods, services } = ranges ?? {};
  return {
    ...(machineType && { machineType }),
    ...(pods && { pods }),
    ...(services && { services }),
  };
}

/**
 * A profile for a running cluster: what it uses stays available to it. Removing something from a profile stops new
 * wishes, nothing that runs. Pure; returns the same profile when nothing was removed.
 */
export function keptFor(profile: CloudProfile, inUse: InUse, now: Date): CloudProfile {
  const spec = {
    ...profile.spec,
    kubernetes: { ...profile.spec.kubernetes, versions: keptVersions(profile, inUse, now) },
    machineTypes: keptMachineTypes(profile, inUse),
    regions: keptRegions(profile, inUse),
    ...keptDefaults(profile, inUse),
  };
  const isSame =
    spec.kubernetes.versions === profile.spec.kubernetes.versions &&
    spec.machineTypes === profile.spec.machineTypes &&
    spec.defaults === profile.spec.defaults &&
    spec.regions === profile.spec.regions;
  return isSame ? profile : { ...profile, spec };
}

function keptVersions({ spec }: CloudProfile, { versions }: InUse, now: Date) {
  const offered = spec.kubernetes.versions ?? [];
  const isOffered = (version: string) =>
    offered.some((one) => one.version === version && !(one.expirationDate && new Date(one.expirationDate) <= now));
  const kept = versions.filter((version) => !isOffered(version));
  if (kept.length === 0) return spec.kubernetes.versions;
  return [
    ...offered.filter(({ version }) => !kept.includes(version)),
    // Deprecated versions are used only when named.
    ...kept.map((version) => ({ version, classification: 'deprecated' as const })),
  ];
}

function keptMachineTypes({ spec, status }: CloudProfile, { machineTypes }: InUse) {
  const isKept = ({ name }: { name: string }) => machineTypes.includes(name);
  const unusable = spec.machineTypes.filter((type) => isKept(type) && type.usable === false);
  const gone = (status?.machineTypes ?? []).filter(
    (type) => isKept(type) && !spec.machineTypes.some(({ name }) => name === type.name),
  );
  if (unusable.length + gone.length === 0) return spec.machineTypes;
  return [...spec.machineTypes, ...gone].map((type) => (isKept(type) ? { ...type, usable: true } : type));
}

function keptDefaults({ spec }: CloudProfile, { defaults = {} }: InUse): Pick<CloudProfile['spec'], 'defaults'> {
  const kept = { ...spec.defaults, ...defaults };
  return isDeepStrictEqual(kept, spec.defaults ?? {}) ? {} : { defaults: kept };
}

function keptRegions({ spec }: CloudProfile, { region: name, zones }: InUse): Region[] {
  const region = spec.regions.find((one) => one.name === name);
  const missing = zones.filter((zone) => !region?.zones?.some((one) => one.name === zone));
  if (name === undefined || (region && missing.length === 0)) return spec.regions;
  const kept: Region = {
    ...(region ?? { name }),
    zones: [...(region?.zones ?? []), ...missing.map((zone) => ({ name: zone }))],
  };
  return [...spec.regions.filter((one) => one !== region), kept];
}
