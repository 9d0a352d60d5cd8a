import type { Problem } from '../../../providers/contract.ts';
import { type CloudProfile, DEFAULT_RANGES } from '../../api/cloudprofile.ts';
import { gpusOf } from '../../api/gpu.ts';
import type { DesiredPool, NormalPool } from '../../api/pools.ts';
import { controlPlaneWorker, hasServed, type Shoot } from '../../api/shoot.ts';
import { madeModeOf, profileNameOf } from '../../api/workercluster.ts';
import { desiredSizes } from '../../capacity/desired-sizes.ts';
import { judgeHolds } from '../../clusters/deletion-gate.ts';
import { resolveVersion, upgradeProblem } from '../kubernetes-version.ts';
import { lacksControlPlane } from '../lacks-control-plane.ts';
import { wasBegun } from '../managed/wish.ts';
import { autoscaleProblems } from './autoscale-problems.ts';
import { divided, lastAsked } from './capacity.ts';
import { sleepOf } from './hibernation.ts';
import { type Mode, problem, type Resolved, type SizedView, type WorkerClusterView } from './view.ts';

const among = (names: readonly string[]): string =>
  names.length > 12 ? `${names.slice(0, 12).join(', ')}, ...` : names.join(', ');

/** Resolves what each pool should have, and whether the cluster is to sleep now. Pure. */
export function sized(view: WorkerClusterView, now: Date): SizedView {
  const { cluster, profile, decided, managed, shoot, provider } = view;
  const { asleep, status, order } = sleepOf(cluster, now, view.sleepOrder);
  const mode = modeOf(view);
  const maySleep = mode === 'Managed' || (mode === 'Hosted' && !lacksControlPlane(profile, provider));
  // What was never there cannot sleep: its add-ons need nodes to come up on.
  const isMade = mode === 'Managed' ? managed?.outputs !== undefined : shoot !== undefined && hasServed(shoot);
  const toSleep = asleep && maySleep && isMade;
  const gate = toSleep && status ? judgeHolds(view.keepsAwake?.(new Date(status.since)) ?? [], now) : undefined;
  const sleeps = toSleep && gate?.open !== false;
  const asked = decided === 'unknown' ? lastAsked(view) : undefined;
  return {
    ...view,
    sizes: profile
      ? desiredSizes({ cluster, profile, ...(decided && { decided }), has: (pool) => asked?.get(pool) })
      : [],
    maySleep,
    ...(gate && !gate.open && { keptAwake: gate }),
    ...(sleeps && { asleep: order ? 'policy' : cluster.spec.hibernation?.enabled ? 'sleep' : 'schedule' }),
    ...(order && { ordered: order }),
  };
}

const modeOf = (view: WorkerClusterView): Mode | undefined =>
  view.profile ? resolveMode(view, view.profile) : (runningMode(view) ?? madeModeOf(view.cluster.spec));

/** Fills in what was left to the profile and finds everything that cannot be had in any mode. */
export function resolve(view: SizedView, now: Date): Resolved {
  const { cluster, profile } = view;
  const { spec } = cluster;
  const usual = { ...DEFAULT_RANGES, ...defined(profile?.spec.defaults) };
  const ranges = { ...usual, ...givenRanges(view), ...defined(spec.networking) };
  if (!profile) {
    const field = spec.cloudProfile ? 'cloudProfile' : 'cloudProvider';
    const message = `there is no CloudProfile "${profileNameOf(cluster)}" (there are: ${among(view.profileNames)}); use one of these, or make the profile`;
    const problems = [problem(field, message)];
    return {
      mode: modeOf(view),
      region: spec.region,
      zones: [],
      version: undefined,
      pools: [],
      divided: [],
      ranges,
      problems,
    };
  }
  const place = resolvePlace(view, profile);
  const kubernetes = resolveKubernetes(view, profile, now);
  const { pools, divided: division } = divided(view, place.region, now);
  const problems = [
    ...identityProblems(view, profile),
    ...place.problems,
    ...kubernetes.problems,
    ...poolProblems(view, profile, view.sizes),
    ...limitProblems(cluster, profile, view.sizes, sum([...(lastAsked(view)?.values() ?? [])])),
    ...autoscaleProblems(cluster, profile),
    ...fallbackProblems(view),
  ];
  return {
    mode: modeOf(view),
    region: place.region,
    zones: spec.zones ?? place.zones,
    version: kubernetes.version,
    pools,
    divided: division,
    ranges,
    problems,
  };
}

/** The ranges that the cluster was given by its mesh. */
function givenRanges({ mesh }: WorkerClusterView): { pods?: string; services?: string } {
  const entry = mesh?.known?.entry;
  return Object.fromEntries((entry?.given ?? []).flatMap((kind) => (entry![kind] ? [[kind, entry![kind]]] : [])));
}

/** Of the ranges, those that are given; another object's fields are left out. */
function defined(given: { pods?: string; services?: string; nodes?: string } | undefined) {
  const entries = Object.keys(DEFAULT_RANGES).map((key) => [key, given?.[key as keyof typeof DEFAULT_RANGES]]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined)) as Partial<typeof DEFAULT_RANGES>;
}

/** The mode that things were made in, which nothing changes any more. */
export const runningMode = ({ shoot, managed, cluster }: WorkerClusterView): Mode | undefined =>
  shoot ? modeOfShoot(shoot) : managed?.exists || (!managed && wasBegun(cluster)) ? 'Managed' : undefined;

const modeOfShoot = ({ spec }: Shoot): Mode => (controlPlaneWorker(spec) ? 'SelfManaged' : 'Hosted');

function resolveMode({ cluster, provider, ...view }: WorkerClusterView, profile: CloudProfile): Mode {
  const running = runningMode({ cluster, provider, ...view });
  if (running) return running;
  // Nobody manages a control plane where the cloud is simulated: it is hosted in the seed instead, and status says so.
  const asked = madeModeOf(cluster.spec) ?? profile.spec.defaults?.mode ?? 'Hosted';
  return asked === 'Managed' && provider?.simulated ? 'Hosted' : asked;
}

function identityProblems(view: WorkerClusterView, profile: CloudProfile): Problem[] {
  const { cluster, provider } = view;
  const { spec } = cluster;
  const { namespace, name: own } = cluster.metadata;
  const name = profile.metadata.name;
  const problems: Problem[] = [];
  if (view.foreignShoot) {
    problems.push(
      problem(
        'metadata.name',
        `there is a Shoot ${namespace}/${own} already that was not made for this cluster; delete it or take another name`,
      ),
    );
  }
  if (view.idTakenBy && !runningMode(view)) {
    problems.push(
      problem(
        'metadata.name',
        `what is made for the cluster would have the same names as what is made for ${view.idTakenBy}; take another name`,
      ),
    );
  }
  if (profile.spec.type !== spec.cloudProvider && name !== spec.cloudProvider) {
    problems.push(
      problem(
        'cloudProfile',
        `CloudProfile "${name}" is of type ${profile.spec.type}, but cloudProvider is ${spec.cloudProvider}`,
      ),
    );
  }
  if (!provider) {
    problems.push(
      problem(
        'cloudProvider',
        `this operator has no provider "${profile.spec.provider ?? profile.spec.type}", which CloudProfile "${name}" asks for`,
      ),
    );
  }
  if (provider?.barred && !runningMode(view)) problems.push(problem('cloudProvider', provider.barred));
  const credentials = spec.credentialsRef;
  if (credentials?.namespace !== undefined && credentials.namespace !== namespace) {
    problems.push(
      problem(
        'credentialsRef.namespace',
        `credentials are used in their own namespace only: put ${credentials.name} into namespace ${namespace}`,
      ),
    );
  }
  return problems;
}

function resolvePlace({ cluster: { spec } }: Pick<WorkerClusterView, 'cluster'>, profile: CloudProfile) {
  const name = profile.metadata.name;
  const problems: Problem[] = [];
  const region = spec.region ?? profile.spec.defaults?.region ?? profile.spec.regions[0]?.name;
  const known = profile.spec.regions.find((candidate) => candidate.name === region);
  if (!known) {
    problems.push(
      problem(
        'region',
        `CloudProfile "${name}" has no region "${region}" (it has: ${among(profile.spec.regions.map((r) => r.name))})`,
      ),
    );
  }
  const zones = (known?.zones ?? []).map((zone) => zone.name);
  for (const zone of spec.zones ?? []) {
    if (known && !zones.includes(zone))
      problems.push(problem('zones', `region ${region} has no zone "${zone}" (it has: ${among(zones)})`));
  }
  return { region, zones, problems };
}

function resolveKubernetes(view: WorkerClusterView, profile: CloudProfile, now: Date) {
  const wanted = view.cluster.spec.kubernetes?.version;
  const known = view.managed?.version ?? (runningMode(view) && view.cluster.status?.kubernetesVersion);
  const running = view.shoot?.status?.kubernetesVersion ?? known;
  // Without a wish the cluster stays at what it runs: a new entry in a profile must not upgrade everybody.
  const version = wanted === undefined && running ? running : resolveVersion(wanted, profile, now);
  if (!version) {
    const offered = (profile.spec.kubernetes.versions ?? []).map((offer) => offer.version);
    const message = `CloudProfile "${profile.metadata.name}" offers no Kubernetes ${wanted ?? ''} (it offers: ${among(offered)})`;
    return { version, problems: [problem('kubernetes.version', message)] };
  }
  const why = running ? upgradeProblem(running, version) : undefined;
  return { version, problems: why ? [problem('kubernetes.version', why)] : [] };
}

function gpuProblems(
  { gpu, machineType, zones }: NormalPool,
  index: number,
  { spec }: WorkerClusterView['cluster'],
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
  return [problem(field, `${message} (with GPUs it has: ${known.length > 0 ? among(known) : 'none'})`)];
}

/** Found at once, not when the first place is sold out and people are asleep. */
function fallbackProblems({ cluster, fallbacks = [], profileNames, decided }: WorkerClusterView): Problem[] {
  return fallbacks.flatMap(({ cluster: there, profile }, index): Problem[] => {
    const at = `fallback[${index}]`;
    if (!profile) {
      const field = cluster.spec.fallback?.[index]?.cloudProfile ? 'cloudProfile' : 'cloudProvider';
      const message = `there is no CloudProfile "${profileNameOf(there)}" (there are: ${among(profileNames)})`;
      return [problem(`${at}.${field}`, message)];
    }
    const pools = desiredSizes({ cluster: there, profile, ...(decided && { decided }) });
    const problems = [
      ...resolvePlace({ cluster: there }, profile).problems,
      ...poolProblems({ cluster: there }, profile, pools),
      ...limitProblems(there, profile, pools),
    ];
    return problems.map((found) => ({ ...found, field: `${at}.${found.field}` }));
  });
}

function poolProblems(
  { cluster }: Pick<WorkerClusterView, 'cluster'>,
  profile: CloudProfile,
  pools: readonly DesiredPool[],
): Problem[] {
  const name = profile.metadata.name;
  const problems: Problem[] = [];
  const types = profile.spec.machineTypes.map((type) => type.name);
  pools.forEach((pool, index) => {
    const own = cluster.spec.pools?.[index];
    const field = own?.machineType ? `pools[${index}].machineType` : 'machineType';
    const list = own?.machineTypes ? `pools[${index}].machineTypes` : 'machineTypes';
    for (const other of pool.alternatives) {
      if (types.includes(other)) continue;
      const message = `CloudProfile "${name}" has no machine type "${other}" (it has: ${among(types)})`;
      if (!problems.some((known) => known.field === list && known.message === message))
        problems.push(problem(list, message));
    }
    if (!pool.machineType)
      problems.push(
        problem(field, `name a machine type: CloudProfile "${name}" has no default (it has: ${among(types)})`),
      );
    else if (!types.includes(pool.machineType)) {
      problems.push(
        problem(field, `CloudProfile "${name}" has no machine type "${pool.machineType}" (it has: ${among(types)})`),
      );
    } else problems.push(...gpuProblems(pool, index, cluster, profile));
  });
  // The API server sees the number that we filled in: without it, taking the pools away would take all nodes.
  const { pools: listed, dataPlaneNodes, adopt } = cluster.spec;
  if (!listed && dataPlaneNodes === undefined && !adopt)
    problems.push(problem('dataPlaneNodes', 'say how many nodes: dataPlaneNodes, or pools with a minimum each'));
  return problems;
}

/** Only growth is judged: a cluster above a lowered limit stays as it is, and may shrink. */
function limitProblems(
  { spec }: WorkerClusterView['cluster'],
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

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
