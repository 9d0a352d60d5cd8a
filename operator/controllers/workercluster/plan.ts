import type { WantedCluster } from '../../../providers/cloud.ts';
import type { Provider } from '../../../providers/contract.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { findCondition, HIBERNATED } from '../../api/conditions.ts';
import { LABELS } from '../../api/group.ts';
import { KUBECONFIG_KEY, kubeconfigSecretName } from '../../api/names.ts';
import type { Shoot } from '../../api/shoot.ts';
import {
  madeModeOf,
  unactedClusterFields,
  type WorkerCluster,
  type WorkerClusterStatus,
} from '../../api/workercluster.ts';
import { HELD, judgeDeletion } from '../../clusters/deletion-gate.ts';
import type { MeshRequest } from '../../mesh/allocate.ts';
import { conditionsBefore, type Said, say, withConditions } from '../conditions.ts';
import { isHeld } from '../finalizer.ts';
import { lacksControlPlane } from '../lacks-control-plane.ts';
import { sum } from '../spec-problems.ts';
import { accountStatus, quotaProblems } from './account.ts';
import { capacityConditionOf } from './capacity.ts';
import { hibernationProblems, keepsEnabled, sleepOf } from './hibernation.ts';
import { hosted } from './hosted.ts';
import { type Lifetime, lifetimeOf, warnedAt } from './lifetime.ts';
import { managed } from './managed.ts';
import { meshProblems, meshWanted, networkingStatus, policiesCondition, rangesCondition } from './networking.ts';
import { clusterRefusalOf, specAccepted } from './refusal.ts';
import { resolve, resolveSizes, runningMode } from './resolve.ts';
import { nodesToTell } from './scale-default.ts';
import { selfManaged } from './self-managed.ts';
import { keptAutoscaledCondition, mayTakeBack, sizeCondition } from './size-condition.ts';
import type { Mode, ModeRequest, ModeStrategy, Observed, Resolved, SizedView, WorkerClusterView } from './view.ts';

export type { WorkerClusterView } from './view.ts';

/** Actions; absent: none. */
interface WorkerClusterPlan {
  /** Added before anything is made, removed when everything is gone. */
  readonly finalizer?: 'add' | 'remove';
  /** Desired Shoot. */
  readonly shoot?: Shoot;
  readonly deleteShoot?: boolean;
  /** Mesh allocation to make first; then plan again. */
  readonly allocate?: MeshRequest;
  /** Wish for the managed service; `desired` absent: leave it unchanged, or delete it. */
  readonly managed?: {
    readonly desired: WantedCluster | undefined;
    /** Delete the half-made cluster: it moves to another place. */
    readonly moves?: boolean;
    /** A hold delays the deletion. */
    readonly held?: boolean;
  };
  /** The ttl is over: delete the object. */
  readonly expire?: boolean;
  /** Next change by time alone, or next check of sold-out offers. */
  readonly next?: Date;
  /** Parts of pools whose request is filled, by name, and removed ones. */
  readonly filled?: readonly string[];
  readonly status: WorkerClusterStatus;
}

const STRATEGIES: Readonly<Record<Mode, ModeStrategy>> = { Hosted: hosted, Managed: managed, SelfManaged: selfManaged };

/** Retry interval: another cluster may have left the mesh. */
const REFUSED_MS = 60_000;

/** Pure: no clock but `now`, no network. */
export function planWorkerCluster(seen: WorkerClusterView, now: Date): WorkerClusterPlan {
  const { cluster } = seen;
  const view = resolveSizes(seen, now);
  if (cluster.metadata.deletionTimestamp) return planDeletion(view, now);
  const resolved = resolve(view, now);
  const life = lifetimeOf(cluster, now);
  const sleep = sleepOf(cluster, now, view.sleepOrder);
  const strategy = STRATEGIES[resolved.mode ?? 'Hosted'];
  const asked = withinQuotas(view, ask(view, resolved, strategy), resolved);
  const observed = strategy.observe(view);
  const held = isHeld(cluster);
  const accepted = asked.problems.length === 0;
  const allocate = accepted ? meshWanted(view, resolved) : undefined;
  const { moves, lookAgainAt, filled, condition } = capacityConditionOf(view, resolved, now);
  const withCapacity = {
    ...observed,
    conditions: [
      ...observed.conditions,
      condition,
      sizeCondition(view, resolved, asked),
      keptAutoscaledCondition(view),
      rangesCondition(view),
      shootDeletedCondition(view),
    ],
  };
  const defaultedNodes = nodesToTell(view, withCapacity.status.nodes);
  return {
    // A cluster that was refused from the start holds nothing.
    ...(held || !(accepted || observed.exists) ? {} : { finalizer: 'add' }),
    // An invalid change is refused as a whole; the cluster stays.
    ...(allocate ? { allocate } : accepted && asked.shoot && { shoot: asked.shoot }),
    ...(resolved.mode === 'Managed' && {
      managed: moves ? { desired: undefined, moves } : { desired: accepted && !allocate ? asked.managed : undefined },
    }),
    ...(life.isOver && { expire: true }),
    ...earliest(
      life.next,
      view.maySleep ? sleep.next : undefined,
      view.keptAwake?.until,
      lookAgainAt,
      view.mesh?.refused && new Date(+now + REFUSED_MS),
    ),
    filled,
    status: {
      ...withWarning(statusOf(view, resolved, asked, withCapacity, now), life, cluster, now),
      ...(view.maySleep && sleep.status && { hibernation: sleep.status }),
      ...(defaultedNodes !== undefined && { defaultedNodes }),
    },
  };
}

/** Condition that somebody deleted the Shoot of a cluster that stays: see isDeletedByHand. */
function shootDeletedCondition({ cluster: { metadata }, shoot }: SizedView): Said<'WorkerCluster'> | undefined {
  if (findCondition(shoot?.status?.conditions, 'Deleting')?.reason !== HELD) return undefined;
  const message = `Shoot ${metadata.namespace}/${metadata.name} was deleted by hand, and the cluster runs on. Delete WorkerCluster ${metadata.name} to have it taken apart`;
  return say('ShootDeleted', true, 'ByHand', message);
}

const earliest = (...times: (Date | undefined)[]): Pick<WorkerClusterPlan, 'next'> => {
  const known = times.flatMap((time) => (time ? [+time] : []));
  return known.length > 0 ? { next: new Date(Math.min(...known)) } : {};
};

const withWarning = (
  status: WorkerClusterStatus,
  { warning, expiresAt }: Lifetime,
  cluster: WorkerCluster,
  now: Date,
): WorkerClusterStatus => ({
  ...status,
  conditions: [
    ...(status.conditions ?? []),
    // A warning from a clock ahead of this one is written again: the notice counts from now.
    ...withConditions<'WorkerCluster'>(warnedAt(cluster, now) ? cluster.status?.conditions : [], [warning], now),
  ],
  ...(expiresAt && { expiresAt }),
});

/** Quotas are checked last: an impossible cluster takes nobody's share. */
function withinQuotas(view: SizedView, asked: ModeRequest, { pools }: Resolved): ModeRequest {
  const problems = asked.problems.length === 0 ? quotaProblems(view, pools) : [];
  return problems.length > 0 ? { problems, overQuota: true } : asked;
}

function ask(view: SizedView, resolved: Resolved, strategy: ModeStrategy): ModeRequest {
  const { profile, provider, cluster } = view;
  const { region, zones, version, ranges } = resolved;
  const problems = profile
    ? [...resolved.problems, ...hibernationProblems(cluster), ...strategy.limits(view), ...meshProblems(view)]
    : resolved.problems;
  if (problems.length > 0 || !profile || !provider || !region || !version) return { problems };
  if (mayTakeBack(view)) return { problems };
  const pools = resolved.pools.map((pool) => ({ ...pool, machineType: pool.machineType! }));
  return strategy.ask(view, { profile, provider, region, zones, version, pools, ranges, known: view.mesh?.known });
}

function statusOf(
  view: SizedView,
  resolved: Resolved,
  asked: ModeRequest,
  observed: Observed,
  now: Date,
): WorkerClusterStatus {
  const { cluster, provider } = view;
  const { mode, region, pools } = resolved;
  const before = cluster.status;
  const simulated = provider?.simulated === true;
  const objectsOnly = lacksControlPlane(view.profile, provider);
  const fields = unactedClusterFields(cluster.spec, mode, {
    inCloud: provider?.inCloud,
    lacksControlPlane: objectsOnly,
  });
  // Kept in the message, so that the next reconcile knows it.
  const isKept = view.maySleep && keepsEnabled(cluster);
  const unacted = [...fields, ...(isKept ? ['hibernation.enabled'] : [])];
  const refusal = clusterRefusalOf(asked);
  const { exists } = observed;
  // The finalizer precedes everything, and backups keep it, unlike status.
  const nothingMade = refusal !== undefined && !exists && !isHeld(cluster) && !before?.admitted;
  const ready = observed.ready.status === 'True' && (!refusal || (before?.observedGeneration ?? -1) >= 0);

  const conditions = withConditions<'WorkerCluster'>(
    before?.conditions,
    [
      refusal && !exists
        ? say('Ready', false, refusal.reason, refusal.why, refusal.codes)
        : { ...observed.ready, status: ready ? 'True' : 'False' },
      specAccepted(refusal, exists, unacted),
      ...observed.conditions,
      simulated ? simulatedNote(provider, view.profile) : undefined,
      mode === 'Managed' && !refusal ? controlPlaneNote(cluster) : undefined,
      exists && !objectsOnly ? policiesCondition(mode) : undefined,
    ],
    now,
  );
  return {
    conditions,
    phase: observed.sleeps
      ? HIBERNATED
      : phaseOf(before?.phase, {
          refused: refusal !== undefined,
          waiting: asked.overQuota === true,
          ready,
          exists,
        }),
    ...(mode && { mode }),
    ...(provider && { provider: provider.name }),
    simulated,
    ...(region && { region }),
    ...observed.status,
    ...nodesAsked(view, observed, refusal !== undefined),
    ...networkingStatus(view, resolved, exists),
    ...accountStatus(view, !refusal, now, pools),
    ...(nothingMade && { nothingMade }),
    ...(observed.usable || before?.kubeconfigRef
      ? { kubeconfigRef: { name: kubeconfigSecretName(cluster.metadata.name), key: KUBECONFIG_KEY } }
      : {}),
    selector: `${LABELS.workerCluster}=${cluster.metadata.name}`,
    lastErrors: [
      ...asked.problems.map((p) => ({ taskID: `spec.${p.field}`, description: p.message, codes: [p.code] })),
      ...observed.errors,
    ],
    observedGeneration: cluster.metadata.generation,
  };
}

/** Existing and requested nodes: a refused size must not look accepted. */
function nodesAsked(
  { cluster, sizes }: SizedView,
  { status: { nodes }, exists }: Observed,
  isRefused: boolean,
): Pick<WorkerClusterStatus, 'nodes'> {
  if (!isRefused) return nodes ? { nodes: { ...nodes, asked: nodes.desired } } : {};
  if (!nodes && exists) return {};
  const asked = sizes.length > 0 ? sum(sizes.map(({ count }) => count)) : (cluster.spec.dataPlaneNodes ?? 0);
  return { nodes: { ...(nodes ?? { desired: 0, current: 0, ready: 0 }), asked } };
}

function phaseOf(
  before: string | undefined,
  is: { refused: boolean; waiting: boolean; ready: boolean; exists: boolean },
): string {
  if (is.refused && !is.exists) return is.waiting ? 'Pending' : 'Failed';
  if (is.ready) return 'Ready';
  if (before === 'Ready' || before === 'Updating' || before === HIBERNATED) return 'Updating';
  return is.exists ? 'Creating' : 'Pending';
}

function simulatedNote(provider: Provider, profile: CloudProfile | undefined) {
  const what = lacksControlPlane(profile, provider)
    ? 'there is NO control plane and there are no nodes'
    : 'the control plane is real, the nodes are not';
  return say(
    'Simulated',
    true,
    'NoCloudCredentials',
    `SIMULATED: ${what}. CloudProfile ${profile?.metadata.name} is bound to provider ${provider.name}; nothing runs in a cloud and nothing is paid for`,
  );
}

const controlPlaneNote = (cluster: WorkerCluster) =>
  say(
    'ControlPlaneNodesApplied',
    false,
    'ManagedByCloud',
    `the cloud runs the control plane; controlPlaneNodes: ${cluster.spec.controlPlaneNodes} has no effect`,
  );

const KEPT = ['Simulated', 'InfrastructureReady'];

function planDeletion(view: SizedView, now: Date): WorkerClusterPlan {
  const { cluster } = view;
  const status = { ...cluster.status, observedGeneration: cluster.metadata.generation };
  const held = isHeld(cluster);
  // The mode of what exists, not the profile's present default.
  const mode = runningMode(view) ?? madeModeOf(cluster.status ?? {}) ?? madeModeOf(cluster.spec) ?? 'Hosted';
  const strategy = STRATEGIES[mode];
  const deletion = strategy.deletion(view);
  if (deletion.gone) return { ...(held ? { finalizer: 'remove' } : {}), status };
  const gate = judgeDeletion(view.holds ?? [], deletion.begun, now);
  const waiting = gate.open ? deletion.waiting : say('Deleting', true, HELD, gate.message);
  const { lastOperation } = strategy.observe(view).status;
  // Conditions about begun work in the cloud stay until it is gone: see wasBegun.
  const kept = conditionsBefore('WorkerCluster', cluster.status?.conditions).filter(({ type }) => KEPT.includes(type));
  return {
    ...(gate.open && deletion.deleteShoot && { deleteShoot: true }),
    ...(mode === 'Managed' && { managed: { desired: undefined, ...(!gate.open && { held: true }) } }),
    ...(gate.until && { next: gate.until }),
    status: {
      ...status,
      ...accountStatus(view, false, now, view.sizes),
      phase: 'Deleting',
      ...(lastOperation && { lastOperation }),
      lastErrors: [...strategy.observe(view).errors],
      conditions: withConditions<'WorkerCluster'>(
        cluster.status?.conditions,
        [say('Ready', false, 'Deleting', 'the cluster is being deleted'), waiting, ...kept],
        now,
      ),
    },
  };
}
