import type { Problem } from '../../../providers/contract.ts';
import { type CloudProfile, DEFAULT_RANGES } from '../../api/cloudprofile.ts';
import { parseCron } from '../../api/cron.ts';
import { controlPlaneWorker, hasServed, type Shoot } from '../../api/shoot.ts';
import { madeModeOf, profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import { desiredSizes } from '../../capacity/desired-sizes.ts';
import { judgeHolds } from '../../clusters/deletion-gate.ts';
import { resolveVersion, upgradeProblem } from '../kubernetes-version.ts';
import { lacksControlPlane } from '../lacks-control-plane.ts';
import { wasBegun } from '../managed/wish.ts';
import {
  kubernetesProblems,
  limitProblems,
  poolProblems,
  problem,
  resolvePlace,
  shortList,
  sum,
} from '../spec-problems.ts';
import { dividePools, lastAsked } from './capacity.ts';
import { sleepOf } from './hibernation.ts';
import type { Mode, Resolved, SizedView, WorkerClusterView } from './view.ts';

/** Problems of the pools' autoscaling settings. */
const autoscaleProblems = ({ spec }: WorkerCluster, profile: CloudProfile): Problem[] => [
  ...deciderProblems(spec, profile),
  ...budgetProblems(spec),
];

/** By the requested mode: a simulated managed cluster is hosted, so that manifests can be tried. */
function deciderProblems(spec: WorkerCluster['spec'], profile: CloudProfile): Problem[] {
  if ((madeModeOf(spec) ?? profile.spec.defaults?.mode ?? 'Hosted') === 'Managed') return [];
  return (spec.pools ?? []).flatMap(({ name, autoscale }, index) =>
    autoscale === 'Cloud'
      ? [
          problem(
            `pools[${index}].autoscale`,
            `no cloud has an autoscaler for pool ${name}, whose machines Coppice makes: use Coppice, or None`,
          ),
        ]
      : [],
  );
}

/** The CRD's pattern also accepts backward ranges. */
const budgetProblems = ({ pools = [] }: WorkerCluster['spec']): Problem[] =>
  pools.flatMap(({ disruption }, pool) =>
    (disruption?.budgets ?? []).flatMap(({ schedule }, budget) =>
      schedule === undefined || parseCron(schedule) !== undefined
        ? []
        : [
            problem(
              `pools[${pool}].disruption.budgets[${budget}].schedule`,
              `"${schedule}" is no cron expression of five fields such as "0 8 * * 1-5"`,
            ),
          ],
    ),
  );

/** Resolves each pool's size, and whether the cluster must sleep now. Pure. */
export function resolveSizes(view: WorkerClusterView, now: Date): SizedView {
  const { cluster, profile, decided, managed, shoot, provider } = view;
  const { asleep, status, order } = sleepOf(cluster, now, view.sleepOrder);
  const mode = modeOf(view);
  const maySleep = mode === 'Managed' || (mode === 'Hosted' && !lacksControlPlane(profile, provider));
  // A cluster must be completed before it sleeps: its addons need nodes first.
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

/** Fills in defaults of the profile, and finds problems that hold in any mode. */
export function resolve(view: SizedView, now: Date): Resolved {
  const { cluster, profile } = view;
  const { spec } = cluster;
  const usual = { ...DEFAULT_RANGES, ...defined(profile?.spec.defaults) };
  const ranges = { ...usual, ...givenRanges(view), ...defined(spec.networking) };
  if (!profile) {
    const field = spec.cloudProfile ? 'cloudProfile' : 'cloudProvider';
    const message = `there is no CloudProfile "${profileNameOf(cluster)}" (there are: ${shortList(view.profileNames)}); use one of these, or make the profile`;
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
  const { pools, divided: division } = dividePools(view, place.region, now);
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

/** Ranges that the mesh allocated. */
function givenRanges({ mesh }: WorkerClusterView): { pods?: string; services?: string } {
  const entry = mesh?.known?.entry;
  return Object.fromEntries((entry?.given ?? []).flatMap((kind) => (entry![kind] ? [[kind, entry![kind]]] : [])));
}

/** Only the defined ranges of the object. */
function defined(given: { pods?: string; services?: string; nodes?: string } | undefined) {
  const entries = Object.keys(DEFAULT_RANGES).map((key) => [key, given?.[key as keyof typeof DEFAULT_RANGES]]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined)) as Partial<typeof DEFAULT_RANGES>;
}

/** Mode of what exists, which never changes. */
export const runningMode = ({ shoot, managed, cluster }: WorkerClusterView): Mode | undefined =>
  shoot ? modeOfShoot(shoot) : managed?.exists || (!managed && wasBegun(cluster)) ? 'Managed' : undefined;

const modeOfShoot = ({ spec }: Shoot): Mode => (controlPlaneWorker(spec) ? 'SelfManaged' : 'Hosted');

function resolveMode({ cluster, provider, ...view }: WorkerClusterView, profile: CloudProfile): Mode {
  const running = runningMode({ cluster, provider, ...view });
  if (running) return running;
  // In a simulated cloud nobody manages control planes: hosted in the seed instead, and the status says so.
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

function resolveKubernetes(view: WorkerClusterView, profile: CloudProfile, now: Date) {
  const wanted = view.cluster.spec.kubernetes?.version;
  const known = view.managed?.version ?? (runningMode(view) && view.cluster.status?.kubernetesVersion);
  const running = view.shoot?.status?.kubernetesVersion ?? known;
  // Without a stated version the running one stays: a new entry in a profile must not upgrade everybody.
  const version = wanted === undefined && running ? running : resolveVersion(wanted, profile, now);
  if (!version) return { version, problems: kubernetesProblems(wanted, profile, now) };
  const why = running ? upgradeProblem(running, version) : undefined;
  return { version, problems: why ? [problem('kubernetes.version', why)] : [] };
}

/** Problems of fallbacks, reported before they are needed. */
function fallbackProblems({ cluster, fallbacks = [], profileNames, decided }: WorkerClusterView): Problem[] {
  return fallbacks.flatMap(({ cluster: there, profile }, index): Problem[] => {
    const at = `fallback[${index}]`;
    if (!profile) {
      const field = cluster.spec.fallback?.[index]?.cloudProfile ? 'cloudProfile' : 'cloudProvider';
      const message = `there is no CloudProfile "${profileNameOf(there)}" (there are: ${shortList(profileNames)})`;
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
