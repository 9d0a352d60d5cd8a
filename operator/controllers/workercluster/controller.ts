import type { Provider } from '../../../providers/contract.ts';
import { hasAccount } from '../../accounts/has-account.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { findCondition } from '../../api/conditions.ts';
import type { Quota } from '../../api/quota.ts';
import type { Shoot } from '../../api/shoot.ts';
import { isAttached, profileNameOf, type WorkerCluster, type WorkerClusterStatus } from '../../api/workercluster.ts';
import type { DepletedOffers } from '../../capacity/depleted-offers.ts';
import { atPlace } from '../../capacity/places.ts';
import type { HoldsOf, SleepHoldsOf } from '../../clusters/deletion-gate.ts';
import { isLarger } from '../../cost/size.ts';
import type { Applier } from '../../kube/applier.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { RecordEvent } from '../../kube/events.ts';
import type { Informer } from '../../kube/informer.ts';
import { keyOf, SHOOTS, WORKERCLUSTERS } from '../../kube/resources.ts';
import { stepOwnerOf, tenantSteps } from '../../kube/tenant-steps.ts';
import type { MeshRefusal } from '../../mesh/allocate.ts';
import type { Meshes } from '../../mesh/meshes.ts';
import type { AttachedController } from '../attached/controller.ts';
import type { Autoscaler } from '../autoscaling/controller.ts';
import { BY_NAMESPACE } from '../by-namespace.ts';
import type { DecidedSizes } from '../decided-sizes.ts';
import { hold } from '../finalizer.ts';
import { keptFor, usedByCluster } from '../kept-profile.ts';
import type { ManagedController } from '../managed/controller.ts';
import { type ClaimantDependencies, claimantsIn, heldBy } from '../quota/claimants.ts';
import { technicalIDTakenBy } from '../same-technical-id.ts';
import { writeStatus } from '../status-writer.ts';
import { type AttachedPlan, planAttached } from './attached.ts';
import { EXPIRING } from './lifetime.ts';
import { knownByShoot, ownRanges } from './networking.ts';
import { placeCluster } from './places.ts';
import { planWorkerCluster, type WorkerClusterView } from './plan.ts';
import { fillIn } from './scale-default.ts';
import type { ProjectShare } from './view.ts';

/** Dependencies for attached clusters. */
interface AttachedClusterDependencies {
  readonly garden: KubeClient;
  readonly clusters: Informer<WorkerCluster>;
  /** Absent: this operator attaches no clusters. */
  readonly attached?: Pick<AttachedController, 'facts' | 'release'> | undefined;
  /** Holds of a cluster: see judgeDeletion. */
  readonly holds: HoldsOf;
  now(): Date;
  readonly recordEvent: RecordEvent;
}

/**
 * Observes, plans and acts for a WorkerCluster of mode Attached. @returns when to reconcile again; undefined: on a
 * change
 */
async function reconcileAttached(
  deps: AttachedClusterDependencies,
  cluster: WorkerCluster,
  signal: AbortSignal,
): Promise<Date | undefined> {
  const key = keyOf(cluster);
  const { name, namespace = '', uid = '', deletionTimestamp } = cluster.metadata;
  const holds = deletionTimestamp ? deps.holds(namespace, name) : [];
  const view = { cluster, facts: deps.attached?.facts(key, uid), holds };
  const plan = tenantSteps.measure(stepOwnerOf(cluster, 'status'), () => planAttached(view, deps.now()));
  if (plan.finalizer === 'add') await hold(deps, WORKERCLUSTERS, deps.clusters, cluster, true, { signal });
  if (plan.release) {
    await deps.attached?.release(key, uid, signal);
    await hold(deps, WORKERCLUSTERS, deps.clusters, cluster, false, { signal });
    return undefined;
  }
  await writeStatus(deps.garden, deps.clusters, cluster, plan.status, signal);
  tell(deps, cluster, plan);
  if (plan.expire)
    await deps.garden.delete(WORKERCLUSTERS, name, namespace, { ...(uid && { preconditions: { uid } }), signal });
  return plan.next;
}

/** Records Events when the cluster becomes usable or unusable. */
function tell(deps: AttachedClusterDependencies, cluster: WorkerCluster, { status }: AttachedPlan): void {
  const serves = findCondition(status.conditions, 'APIServerAvailable');
  const known = findCondition(cluster.status?.conditions, 'APIServerAvailable');
  if (!serves || (serves.status === known?.status && serves.reason === known.reason)) return;
  deps.recordEvent(cluster, serves.status === 'True' ? 'Normal' : 'Warning', serves.reason ?? '', serves.message ?? '');
}

/** Dependencies of the controller of WorkerClusters. */
export interface WorkerClusterDependencies extends ClaimantDependencies, AttachedClusterDependencies {
  readonly clusters: Informer<WorkerCluster>;
  readonly gardenApplier: Applier;
  /** Needs index BY_NAMESPACE. */
  readonly quotas: Informer<Quota>;
  readonly capacity: DepletedOffers;
  /** Absent: this operator manages no clouds. */
  readonly managed?: Pick<ManagedController, 'facts' | 'want'> | undefined;
  /** Holds that keep a cluster awake; absent: none. */
  readonly keepsAwake?: SleepHoldsOf;
  /** Receipts of decided sizes. Absent: none. */
  readonly sizes?: Pick<DecidedSizes, 'remove' | 'sleepOrder'>;
  /** Autoscaler of pools that Coppice sizes. Absent: none. */
  readonly autoscaler?: Pick<Autoscaler, 'condition'>;
  /** Allocator of mesh ranges. Absent: none. */
  readonly meshes?: Pick<Meshes, 'entry' | 'overlapping' | 'allocate' | 'release'>;
  /** `withAccount`: credentials of the cloud exist. */
  provider(profile: CloudProfile, withAccount: boolean): Provider | undefined;
}

/** Observes, plans and acts for one WorkerCluster. */
export async function reconcileWorkerCluster(
  deps: WorkerClusterDependencies,
  key: string,
  signal: AbortSignal,
): Promise<{ requeueAfterMs: number } | undefined> {
  const written = deps.clusters.get(key);
  if (!written) {
    await removeLeftOvers(deps, key, signal);
    return undefined;
  }
  if (isAttached(written)) return lookAt(deps, await reconcileAttached(deps, written, signal));
  const { place, ...seen } = observe(deps, key, written);
  let { view } = seen;
  const { cluster, profile, provider, shoot } = view;
  const planned = () => planWorkerCluster(view, deps.now());
  let plan = tenantSteps.measure(stepOwnerOf(view.cluster, 'status'), planned);
  if (plan.allocate) {
    const { refused } = await deps.meshes!.allocate(plan.allocate);
    view = { ...view, ...meshView(deps, cluster, shoot, refused) };
    plan = planWorkerCluster(view, deps.now());
  }
  // Synchronously with the decision: from here on other clusters see the grant.
  const granted = grant(deps, view, plan.status);
  let { status } = plan;
  const { name, namespace, uid = '' } = cluster.metadata;

  if (cluster.status?.nothingMade && !status.nothingMade) {
    // Until this is written, immutable fields can still change.
    const { nothingMade: _, ...fixed } = cluster.status;
    await writeStatus(deps.garden, deps.clusters, cluster, fixed, signal);
    if (deps.clusters.get(key)?.metadata.generation !== cluster.metadata.generation) return { requeueAfterMs: 0 };
  }
  if (plan.finalizer === 'add') await hold(deps, WORKERCLUSTERS, deps.clusters, cluster, true, { signal });
  // Persisted before anything is made, so that a restarted operator counts it too.
  if (granted) await writeStatus(deps.garden, deps.clusters, cluster, { ...cluster.status, admitted: granted }, signal);
  if (plan.shoot) {
    const { object, changed } = await deps.gardenApplier.apply(plan.shoot, signal);
    if (changed) {
      deps.shoots.absorb(object);
      // Conditions of the old Shoot do not apply to the new spec yet.
      ({ status } = planWorkerCluster({ ...view, shoot: object }, deps.now()));
    }
  }
  if (plan.managed) {
    const newest = atPlace(deps.clusters.get(key) ?? written, place);
    if (plan.managed.moves) deps.capacity.left(uid, place);
    deps.managed?.want(key, { cluster: newest, place, profile, clouds: provider?.managed, ...plan.managed });
  }
  if (plan.deleteShoot) await deps.garden.delete(SHOOTS, name, namespace, { propagationPolicy: 'Background', signal });
  if (plan.finalizer === 'remove') {
    await deps.sizes?.remove(key, signal);
    await deps.meshes?.release(key);
    await hold(deps, WORKERCLUSTERS, deps.clusters, cluster, false, { signal });
    deps.granted.delete(uid);
    deps.capacity.forget(uid);
    return undefined;
  }
  deps.capacity.settle(uid, ({ part }) => plan.filled?.includes(part) ?? false);
  const isRefused = tellOfRefusal(deps, cluster, status);
  const made = deps.shoots.get(key);
  if (!isRefused && !hasBeenTold(cluster) && made && isUntouched(made, deps.now()))
    return { requeueAfterMs: FIRST_WORD_MS };
  await writeStatus(deps.garden, deps.clusters, cluster, status, signal);
  if (cluster.spec.dataPlaneNodes === undefined || cluster.hasOldMark)
    await fillIn(deps.garden, deps.clusters, cluster, signal);
  deps.granted.delete(uid);
  tellOfEnd(deps, cluster, status);
  if (plan.expire) {
    await deps.garden.delete(WORKERCLUSTERS, name, namespace, { ...(uid && { preconditions: { uid } }), signal });
  }
  return lookAt(deps, plan.next);
}

/**
 * Deletes leftovers of a WorkerCluster that disappeared: a deletion at the same moment as the finalizer's write may
 * win.
 */
async function removeLeftOvers(deps: WorkerClusterDependencies, key: string, signal: AbortSignal): Promise<void> {
  await deps.sizes?.remove(key, signal);
  await deps.meshes?.release(key);
  const orphan = deps.shoots.get(key);
  const owner = orphan?.metadata.ownerReferences?.find((reference) => reference.kind === 'WorkerCluster');
  if (orphan && owner && !orphan.metadata.deletionTimestamp) {
    const { name, namespace, uid } = orphan.metadata;
    await deps.garden.delete(SHOOTS, name, namespace, { preconditions: { uid }, signal });
  }
}

/** Inputs of the plan, and the number of the cluster's place. Reads caches only. */
function observe(
  deps: WorkerClusterDependencies,
  key: string,
  written: WorkerCluster,
): { place: number; view: WorkerClusterView } {
  const { uid = '' } = written.metadata;
  const shoot = ownShoot(deps, written);
  const managed = deps.managed?.facts(key, uid);
  const profileOf = (one: WorkerCluster) => deps.profiles.get(profileNameOf(one));
  const { place, cluster, ...places } = placeCluster(written, managed, deps.capacity, profileOf);
  const { namespace = '', name, deletionTimestamp } = cluster.metadata;
  const offered = profileOf(cluster);
  const inUse = usedByCluster(cluster, shoot, managed);
  const profile = offered && inUse ? keptFor(offered, inUse, deps.now()) : offered;
  const view: WorkerClusterView = {
    cluster,
    profile,
    profileNames: deps.profiles.list().map((known) => known.metadata.name),
    provider: profile && deps.provider(profile, hasAccount(cluster, shoot)),
    shoot,
    managed,
    foreignShoot: shoot === undefined && deps.shoots.get(key) !== undefined,
    // An admitted cluster owns its technical id.
    idTakenBy: written.status?.admitted ? undefined : technicalIDTakenBy(written, deps.clusters, deps.shoots),
    project: projectShare(deps, cluster),
    capacity: deps.capacity.known(written.metadata),
    decided: deps.decided?.(written) ?? 'none',
    sleepOrder: deps.sizes?.sleepOrder(key, uid) ?? 'none',
    autoscaled: deps.autoscaler?.condition(key, uid),
    holds: deletionTimestamp ? deps.holds(namespace, name) : [],
    keepsAwake: (since) => deps.keepsAwake?.(namespace, name, since) ?? [],
    ...places,
    ...meshView(deps, cluster, shoot),
  };
  return { place, view };
}

const lookAt = (deps: Pick<WorkerClusterDependencies, 'now'>, next: Date | undefined) =>
  next && { requeueAfterMs: Math.max(0, +next - +deps.now()) + TIMER_SLACK_MS };

/** Timers may fire a fraction of a millisecond early, when nothing is due yet. */
const TIMER_SLACK_MS = 1;

/** Records an Event when the spec is refused for a new reason. @returns whether it is refused */
function tellOfRefusal(deps: WorkerClusterDependencies, cluster: WorkerCluster, status: WorkerClusterStatus): boolean {
  const said = findCondition(status.conditions, 'SpecAccepted');
  if (said?.status !== 'False') return false;
  const known = findCondition(cluster.status?.conditions, 'SpecAccepted');
  if (said.message !== known?.message)
    deps.recordEvent(cluster, 'Warning', said.reason ?? 'ConfigurationProblem', said.message ?? '');
  return true;
}

/** Records an Event for each new text about the cluster's expiry: somebody may want to extend it. */
function tellOfEnd(deps: WorkerClusterDependencies, cluster: WorkerCluster, status: WorkerClusterStatus): void {
  const said = findCondition(status.conditions, EXPIRING);
  const known = findCondition(cluster.status?.conditions, EXPIRING);
  if (said && said.message !== known?.message)
    deps.recordEvent(cluster, 'Warning', said.reason ?? EXPIRING, said.message ?? '');
}

/** Reads other entries only if a range of the cluster may overlap. */
function meshView(
  { meshes }: WorkerClusterDependencies,
  cluster: WorkerCluster,
  shoot: Shoot | undefined,
  refused?: MeshRefusal,
): Pick<WorkerClusterView, 'mesh'> {
  if (!meshes) return {};
  const { uid = '' } = cluster.metadata;
  const known = meshes.entry(keyOf(cluster), uid) ?? (shoot && knownByShoot(shoot));
  const own = ownRanges(cluster, known);
  return { mesh: { known, refused, overlapping: own.length > 0 ? meshes.overlapping(keyOf(cluster), own) : [] } };
}

/** Without quotas, which most namespaces lack, other clusters are not read. */
function projectShare(deps: WorkerClusterDependencies, cluster: WorkerCluster): ProjectShare {
  const { namespace = '', name } = cluster.metadata;
  const quotas = deps.quotas.byIndex(BY_NAMESPACE, namespace);
  const all = quotas.length > 0 ? claimantsIn(deps, namespace) : [];
  const held = heldBy(deps, cluster);
  return { quotas, held, others: all.filter(({ key }) => key !== `${namespace}/${name}`) };
}

/** Records the grant of the plan; returns it when a quota counts it and it exceeds the persisted one. */
function grant(
  deps: WorkerClusterDependencies,
  { cluster, project }: WorkerClusterView,
  { admitted }: WorkerClusterStatus,
) {
  if (!admitted) return undefined;
  deps.granted.set(cluster.metadata.uid ?? '', admitted);
  return project && project.quotas.length > 0 && isLarger(admitted, cluster.status?.admitted) ? admitted : undefined;
}

/** Delay of a new cluster's first status: its Shoot follows in a moment, and each write costs. */
const FIRST_WORD_MS = 500;

/** The API server gives new objects a default status without conditions. */
const hasBeenTold = ({ status }: WorkerCluster | Shoot): boolean => status?.conditions !== undefined;

const isUntouched = (shoot: Shoot, now: Date): boolean =>
  !hasBeenTold(shoot) &&
  +now - Date.parse(shoot.metadata.creationTimestamp ?? '') < 2 * FIRST_WORD_MS + WHOLE_SECOND_MS;
/** Kubernetes' timestamps have whole seconds. */
const WHOLE_SECOND_MS = 1000;

/** The Shoot of this cluster; not one of the same name that somebody created. */
function ownShoot(deps: WorkerClusterDependencies, cluster: WorkerCluster): Shoot | undefined {
  const shoot = deps.shoots.get(keyOf(cluster));
  const owned = shoot?.metadata.ownerReferences?.some((owner) => owner.uid === cluster.metadata.uid);
  return owned ? shoot : undefined;
}
