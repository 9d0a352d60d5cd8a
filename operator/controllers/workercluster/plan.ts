import type { Problem, Provider } from '../../../providers/contract.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { findCondition, isTrue } from '../../api/conditions.ts';
import type { ErrorCode } from '../../api/errors.ts';
import { API_VERSION, FINALIZER, LABELS } from '../../api/group.ts';
import type { Condition } from '../../api/meta.ts';
import { KUBECONFIG_KEY, kubeconfigSecretName } from '../../api/names.ts';
import { poolsOf } from '../../api/pools.ts';
import type { Shoot, ShootSpec } from '../../api/shoot.ts';
import {
  profileNameOf,
  unactedClusterFields,
  type WorkerCluster,
  type WorkerClusterStatus,
} from '../../api/workercluster.ts';
import { say, withConditions } from '../conditions.ts';
import { resolveVersion, upgradeProblem } from '../versions.ts';

/** All that a decision about a WorkerCluster rests on. */
export interface WorkerClusterView {
  readonly cluster: WorkerCluster;
  /** The profile that it names, if there is one. */
  readonly profile: CloudProfile | undefined;
  /** Names of all profiles, for the error. */
  readonly profileNames: readonly string[];
  readonly provider: Provider | undefined;
  readonly shoot: Shoot | undefined;
  /** A Shoot of the same name that is not ours. */
  readonly foreignShoot?: boolean;
}

/** What is to be done; absent means: nothing. */
export interface WorkerClusterPlan {
  /** Set before anything is made, taken away when everything is gone. */
  readonly finalizer?: 'add' | 'remove';
  /** The Shoot as it should be. */
  readonly shoot?: Shoot;
  readonly deleteShoot?: boolean;
  readonly status: WorkerClusterStatus;
}

type Mode = NonNullable<WorkerCluster['spec']['mode']>;

/** Pure: no clock but `now`, no network. */
export function planWorkerCluster(view: WorkerClusterView, now: Date): WorkerClusterPlan {
  const { cluster, shoot } = view;
  if (cluster.metadata.deletionTimestamp) return planDeletion(view, now);
  const resolved = resolve(view, now);
  const held = cluster.metadata.finalizers?.includes(FINALIZER);
  const plan: WorkerClusterPlan = {
    ...(held ? {} : { finalizer: 'add' }),
    ...(resolved.spec && { shoot: shootFor(cluster, resolved.spec) }),
    status: statusOf(view, resolved, now),
  };
  // A wrong change of the spec is refused as a whole; the cluster stays as it is.
  return resolved.problems.length > 0 && shoot ? { ...plan, shoot: undefined } : plan;
}

interface Resolved {
  mode: Mode | undefined;
  region: string | undefined;
  version: string | undefined;
  /** Of the Shoot; absent when there are problems. */
  spec: ShootSpec | undefined;
  problems: Problem[];
}

const problem = (field: string, message: string, code: ErrorCode = 'ERR_CONFIGURATION_PROBLEM'): Problem => ({
  field,
  message,
  code,
});
const among = (names: readonly string[]): string =>
  names.length > 12 ? `${names.slice(0, 12).join(', ')}, ...` : names.join(', ');

/** Fills in what was left to the profile and finds everything that cannot be had. */
export function resolve(view: WorkerClusterView, now: Date): Resolved {
  const { cluster, profile, provider } = view;
  const { spec } = cluster;
  const name = profileNameOf(cluster);
  if (!profile) {
    const field = spec.cloudProfile ? 'cloudProfile' : 'cloudProvider';
    const message = `there is no CloudProfile "${name}" (there are: ${among(view.profileNames)}); use one of these, or make the profile`;
    return {
      mode: spec.mode,
      region: spec.region,
      version: undefined,
      spec: undefined,
      problems: [problem(field, message)],
    };
  }
  const problems: Problem[] = [];
  if (view.foreignShoot) {
    const { namespace, name: own } = cluster.metadata;
    problems.push(
      problem(
        'metadata.name',
        `there is a Shoot ${namespace}/${own} already that was not made for this cluster; delete it or take another name`,
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

  // Nobody manages a control plane where the cloud is simulated: it is hosted in the seed instead, and status says so.
  const asked = spec.mode ?? profile.spec.defaults?.mode ?? 'Hosted';
  const mode: Mode = asked === 'Managed' && provider?.simulated ? 'Hosted' : asked;
  if (mode !== 'Hosted') {
    problems.push(
      problem(
        'mode',
        `mode ${mode} is not available yet with provider ${provider?.name ?? spec.cloudProvider}; use mode Hosted`,
      ),
    );
  }
  if (mode === 'Hosted' && spec.controlPlaneNodes > 3) {
    problems.push(
      problem('controlPlaneNodes', `a hosted control plane has 1 or 3 members, not ${spec.controlPlaneNodes}`),
    );
  }

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

  const running = view.shoot?.status?.kubernetesVersion;
  const wanted = spec.kubernetes?.version;
  // Without a wish the cluster stays at what it runs: a new entry in a profile must not upgrade everybody.
  const version = wanted === undefined && running ? running : resolveVersion(wanted, profile, now);
  if (!version) {
    const offered = (profile.spec.kubernetes.versions ?? []).map((offer) => offer.version);
    problems.push(
      problem(
        'kubernetes.version',
        `CloudProfile "${name}" offers no Kubernetes ${wanted ?? ''} (it offers: ${among(offered)})`,
      ),
    );
  } else if (running) {
    const why = upgradeProblem(running, version);
    if (why) problems.push(problem('kubernetes.version', why));
  }

  const pools = poolsOf(cluster, profile);
  const types = profile.spec.machineTypes.map((type) => type.name);
  pools.forEach((pool, index) => {
    const field = spec.pools?.[index]?.machineType ? `pools[${index}].machineType` : 'machineType';
    if (!pool.machineType)
      problems.push(
        problem(field, `name a machine type: CloudProfile "${name}" has no default (it has: ${among(types)})`),
      );
    else if (!types.includes(pool.machineType)) {
      problems.push(
        problem(field, `CloudProfile "${name}" has no machine type "${pool.machineType}" (it has: ${among(types)})`),
      );
    }
  });
  const nodes = pools.reduce((sum, pool) => sum + pool.count, 0);
  const most = profile.spec.limits?.maxNodesTotal;
  if (most !== undefined && nodes > most) {
    problems.push(
      problem(
        'dataPlaneNodes',
        `CloudProfile "${name}" allows at most ${most} nodes in a cluster, not ${nodes}`,
        'ERR_INFRA_QUOTA_EXCEEDED',
      ),
    );
  }

  const ranges = {
    pods: spec.networking?.pods ?? profile.spec.defaults?.pods ?? '100.96.0.0/11',
    services: spec.networking?.services ?? profile.spec.defaults?.services ?? '100.64.0.0/13',
  };
  if (problems.length === 0 && provider && version && region) {
    const machines = pools.map((pool) => ({ ...pool, machineType: pool.machineType! }));
    problems.push(
      ...provider.validate({ region, kubernetesVersion: version, networking: ranges, pools: machines }, profile),
    );
  }
  if (problems.length > 0) return { mode, region, version, spec: undefined, problems };
  const shootSpec: ShootSpec = {
    cloudProfile: { kind: 'CloudProfile', name },
    region: region!,
    kubernetes: { version: version! },
    networking: ranges,
    ...(spec.controlPlaneNodes > 1 && {
      controlPlane: { highAvailability: { failureTolerance: { type: 'node' } }, replicas: spec.controlPlaneNodes },
    }),
    provider: {
      type: profile.spec.type,
      workers: pools.map((pool) => ({
        name: pool.name,
        machine: { type: pool.machineType! },
        minimum: pool.count,
        maximum: pool.count,
        maxSurge: 1,
        maxUnavailable: 0,
        ...(pool.zones.length > 0 && { zones: pool.zones }),
        ...(Object.keys(pool.labels).length > 0 && { labels: pool.labels }),
        ...(pool.taints.length > 0 && { taints: pool.taints }),
      })),
    },
    ...(spec.hibernation && { hibernation: spec.hibernation }),
    ...(spec.maintenance && { maintenance: spec.maintenance }),
  };
  return { mode, region, version, spec: shootSpec, problems };
}

function shootFor(cluster: WorkerCluster, spec: ShootSpec): Shoot {
  const { name, namespace, uid } = cluster.metadata;
  return {
    apiVersion: API_VERSION,
    kind: 'Shoot',
    metadata: {
      name,
      namespace,
      // The finalizer comes with the object: it saves a write, and there is no moment without it.
      finalizers: [FINALIZER],
      labels: { [LABELS.workerCluster]: name, [LABELS.provider]: cluster.spec.cloudProvider },
      ownerReferences: [
        { apiVersion: API_VERSION, kind: 'WorkerCluster', name, uid: uid!, controller: true, blockOwnerDeletion: true },
      ],
    },
    spec,
  };
}

/** What a Shoot says that is true of the WorkerCluster as well, word for word. */
const MIRRORED = ['APIServerAvailable', 'ControlPlaneHealthy', 'EveryNodeReady', 'SystemComponentsHealthy', 'Draining'];

function statusOf(view: WorkerClusterView, resolved: Resolved, now: Date): WorkerClusterStatus {
  const { cluster, provider, shoot } = view;
  const { mode, region, problems } = resolved;
  const before = cluster.status;
  const ofShoot = shoot?.status;
  const simulated = provider?.simulated === true;
  const unacted = unactedClusterFields(cluster.spec);
  const codes = [...new Set(problems.map((p) => p.code))];
  const why = problems
    .map((p) => `${p.field.startsWith('metadata.') ? '' : 'spec.'}${p.field}: ${p.message}`)
    .join('; ');
  const current = shoot !== undefined && ofShoot?.observedGeneration === shoot.metadata.generation;
  const shootReady = isTrue(ofShoot?.conditions, 'Ready') && current;
  const ready = shootReady && (problems.length === 0 || before?.observedGeneration !== undefined);

  const conditions = withConditions(
    before?.conditions,
    [
      problems.length > 0 && !shoot
        ? say('Ready', false, 'ConfigurationProblem', why, codes)
        : say(
            'Ready',
            ready,
            ready ? 'ClusterReady' : (findCondition(ofShoot?.conditions, 'Ready')?.reason ?? 'Creating'),
            readyMessage(view, ready),
          ),
      problems.length > 0
        ? say('SpecAccepted', false, 'ConfigurationProblem', shoot ? `${why}. The cluster stays as it was` : why, codes)
        : say(
            'SpecAccepted',
            true,
            'Accepted',
            unacted.length > 0 ? `accepted; kept but not acted on yet: ${unacted.join(', ')}` : 'the spec can be had',
          ),
      ...MIRRORED.map((type) => withoutTime(findCondition(ofShoot?.conditions, type))),
      simulated
        ? say(
            'Simulated',
            true,
            'NoCloudCredentials',
            `SIMULATED: the control plane is real, the nodes are not. CloudProfile ${view.profile?.metadata.name} is bound to provider ${provider.name}; nothing runs in a cloud and nothing is paid for`,
          )
        : undefined,
      controlPlaneNote(cluster, mode, resolved),
    ],
    now,
  );
  const nodes = ofShoot?.nodes;
  return {
    conditions,
    phase:
      problems.length > 0 && !shoot
        ? 'Failed'
        : ready
          ? 'Ready'
          : before?.phase === 'Ready' || before?.phase === 'Updating'
            ? 'Updating'
            : shoot
              ? 'Creating'
              : 'Pending',
    ...(mode && { mode }),
    ...(provider && { provider: provider.name }),
    simulated,
    ...(region && { region }),
    ...(ofShoot?.kubernetesVersion && { kubernetesVersion: ofShoot.kubernetesVersion }),
    ...(ofShoot?.advertisedAddresses?.[0] && { endpoint: ofShoot.advertisedAddresses[0].url }),
    ...(shoot && { shootRef: { name: shoot.metadata.name, namespace: shoot.metadata.namespace } }),
    ...(isTrue(ofShoot?.conditions, 'APIServerAvailable') || before?.kubeconfigRef
      ? { kubeconfigRef: { name: kubeconfigSecretName(cluster.metadata.name), key: KUBECONFIG_KEY } }
      : {}),
    ...(ofShoot?.controlPlane && { controlPlane: ofShoot.controlPlane }),
    ...(nodes && { nodes, dataPlaneNodes: nodes.current }),
    selector: `${LABELS.workerCluster}=${cluster.metadata.name}`,
    ...(ofShoot?.resource && { resource: ofShoot.resource }),
    ...(ofShoot?.lastOperation && { lastOperation: ofShoot.lastOperation }),
    lastErrors: [
      ...problems.map((p) => ({ taskID: `spec.${p.field}`, description: p.message, codes: [p.code] })),
      ...(ofShoot?.lastErrors ?? []),
    ],
    observedGeneration: cluster.metadata.generation,
  };
}

const withoutTime = (condition: Condition | undefined) => {
  if (!condition) return undefined;
  const { lastTransitionTime: _, observedGeneration: __, ...rest } = condition;
  return rest;
};

function readyMessage({ shoot }: WorkerClusterView, ready: boolean): string {
  if (ready) return 'the control plane serves, all nodes are Ready';
  if (!shoot) return 'the Shoot is being made';
  return findCondition(shoot.status?.conditions, 'Ready')?.message ?? 'waiting for the Shoot to be taken up';
}

function controlPlaneNote(cluster: WorkerCluster, mode: Mode | undefined, resolved: Resolved) {
  if (mode === undefined || resolved.problems.length > 0) return undefined;
  const n = cluster.spec.controlPlaneNodes;
  return mode === 'Managed'
    ? say(
        'ControlPlaneNodesApplied',
        false,
        'ManagedByCloud',
        `the cloud runs the control plane; controlPlaneNodes: ${n} has no effect`,
      )
    : undefined;
}

function planDeletion(view: WorkerClusterView, now: Date): WorkerClusterPlan {
  const { cluster, shoot } = view;
  const status = { ...cluster.status, observedGeneration: cluster.metadata.generation };
  if (!shoot) {
    const held = cluster.metadata.finalizers?.includes(FINALIZER);
    return { ...(held ? { finalizer: 'remove' } : {}), status };
  }
  const waiting = findCondition(shoot.status?.conditions, 'Deleting');
  const message =
    waiting?.message ?? `waiting for Shoot ${shoot.metadata.namespace}/${shoot.metadata.name} to be taken down`;
  return {
    ...(shoot.metadata.deletionTimestamp ? {} : { deleteShoot: true }),
    status: {
      ...status,
      phase: 'Deleting',
      ...(shoot.status?.lastOperation && { lastOperation: shoot.status.lastOperation }),
      lastErrors: shoot.status?.lastErrors ?? [],
      conditions: withConditions(
        cluster.status?.conditions,
        [
          say('Ready', false, 'Deleting', 'the cluster is being deleted'),
          say('Deleting', true, waiting?.reason ?? 'WaitingForShoot', message, waiting?.codes),
          ...(cluster.status?.conditions ?? []).filter((c) => c.type === 'Simulated').map(withoutTime),
        ],
        now,
      ),
    },
  };
}
