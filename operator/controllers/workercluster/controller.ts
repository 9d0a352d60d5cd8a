import type { Provider } from '../../../providers/contract.ts';
import { hasAccount } from '../../accounts/has-account.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { findCondition } from '../../api/conditions.ts';
import type { Quota } from '../../api/quota.ts';
import type { Shoot } from '../../api/shoot.ts';
import { isAttached, profileNameOf, type WorkerCluster, type WorkerClusterStatus } from '../../api/workercluster.ts';
import type { DepletedOffers } from '../../capacity/depleted-offers.ts';
import { atPlace } from '../../capacity/places.ts';
import type { SleepHoldsOf } from '../../clusters/deletion-gate.ts';
import { isLarger } from '../../cost/size.ts';
import type { Applier } from '../../kube/applier.ts';
import type { Informer } from '../../kube/informer.ts';
import { keyOf, SHOOTS, WORKERCLUSTERS } from '../../kube/resources.ts';
import { ownerOf, tenantSteps } from '../../kube/tenant-steps.ts';
import type { Refusal } from '../../mesh/allocate.ts';
import type { Meshes } from '../../mesh/meshes.ts';
import type { Autoscaler } from '../autoscaling/controller.ts';
import { BY_NAMESPACE } from '../by-namespace.ts';
import type { DecidedSizes } from '../decided-sizes.ts';
import { hold } from '../finalizer.ts';
import { keptFor, usedByCluster } from '../kept-profile.ts';
import type { ManagedController } from '../managed/controller.ts';
import { type ClaimantDependencies, claimantsIn, heldBy } from '../quota/claimants.ts';
import { technicalIDTakenBy } from '../same-technical-id.ts';
import { writeStatus } from '../status-writer.ts';
import { type AttachedClusterDependencies, reconcileAttached } from './attached-act.ts';
import { EXPIRING } from './lifetime.ts';
import { knownByShoot, ownRanges } from './networking.ts';
import { placed } from './places.ts';
import { planWorkerCluster, type WorkerClusterView } from './plan.ts';
import { fillIn } from './scale-default.ts';
import type { ProjectShare } from './view.ts';

/** What the controller of worker clusters works with. */
export interface WorkerClusterDependencies extends ClaimantDependencies, AttachedClusterDependencies {
  readonly clusters: Informer<WorkerCluster>;
  readonly gardenApplier: Applier;
  /** With index BY_NAMESPACE. */
  readonly quotas: Informer<Quota>;
  readonly capacity: DepletedOffers;
  /** Absent: this operator manages no clouds. */
  readonly managed?: Pick<ManagedController, 'facts' | 'want'> | undefined;
  /** What keeps a cluster awake that is to sleep; absent: nothing ever does. */
  readonly keepsAwake?: SleepHoldsOf;
  /** Receipts of what was decided. Absent: there are none. */
  readonly sizes?: Pick<DecidedSizes, 'remove' | 'sleepOrder'>;
  /** Who decides about nodes of pools that are Coppice's to size. Absent: nobody does. */
  readonly autoscaler?: Pick<Autoscaler, 'condition'>;
  /** Who gives clusters their ranges. Absent: nobody does. */
  readonly meshes?: Pick<Meshes, 'entry' | 'overlapping' | 'allocate' | 'release'>;
  /** `withAccount`: for somebody who has credentials of the cloud. */
  provider(profile: CloudProfile, withAccount: boolean): Provider | undefined;
}

/** Observe, plan, act for one WorkerCluster. */
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
  let plan = tenantSteps.measure(ownerOf(view.cluster, 'status'), planned);
  if (plan.allocate) {
    const { refused } = await deps.meshes!.allocate(plan.allocate);
    view = { ...view, ...meshView(deps, cluster, shoot, refused) };
    plan = planWorkerCluster(view, deps.now());
  }
  // In the same breath as the decision: from here on everybody else sees what was granted.
  const granted = grant(deps, view, plan.status);
  let { status } = plan;
  const { name, namespace, uid = '' } = cluster.metadata;

  if (cluster.status?.nothingMade && !status.nothingMade) {
    // Until this is written somebody may still change what cannot be changed afterwards.
    const { nothingMade: _, ...fixed } = cluster.status;
    await writeStatus(deps.garden, deps.clusters, cluster, fixed, signal);
    if (deps.clusters.get(key)?.metadata.generation !== cluster.metadata.generation) return { requeueAfterMs: 0 };
  }
  if (plan.finalizer === 'add') await hold(deps, WORKERCLUSTERS, deps.clusters, cluster, true, { signal });
  // Written down before anything is made, so that an operator that starts anew counts it as well.
  if (granted) await writeStatus(deps.garden, deps.clusters, cluster, { ...cluster.status, admitted: granted }, signal);
  if (plan.shoot) {
    const { object, changed } = await deps.gardenApplier.apply(plan.shoot, signal);
    if (changed) {
      deps.shoots.absorb(object);
      // Whether all is Ready was said of the Shoot as it was: of what is asked for now it is not true yet.
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

/** Takes away what was made for a cluster that is no more: a delete in the same moment as the finalizer can win. */
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

/** All that the plan rests on, and the number of the place that the cluster is in. Asks caches alone. */
function observe(
  deps: WorkerClusterDependencies,
  key: string,
  written: WorkerCluster,
): { place: number; view: WorkerClusterView } {
  const { uid = '' } = written.metadata;
  const shoot = ownShoot(deps, written);
  const managed = deps.managed?.facts(key, uid);
  const profileOf = (one: WorkerCluster) => deps.profiles.get(profileNameOf(one));
  const { place, cluster, ...places } = placed(written, managed, deps.capacity, profileOf);
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
    // What was admitted has its id.
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

/** Timers may be early by a fraction of a millisecond: nothing would be due yet. */
const TIMER_SLACK_MS = 1;

/** An Event where the spec is refused for another reason than before. @returns whether it is refused */
function tellOfRefusal(deps: WorkerClusterDependencies, cluster: WorkerCluster, status: WorkerClusterStatus): boolean {
  const said = findCondition(status.conditions, 'SpecAccepted');
  if (said?.status !== 'False') return false;
  const known = findCondition(cluster.status?.conditions, 'SpecAccepted');
  if (said.message !== known?.message)
    deps.recordEvent(cluster, 'Warning', said.reason ?? 'ConfigurationProblem', said.message ?? '');
  return true;
}

/** An Event each time that something new is to be said about the cluster's end: somebody may want to prolong it. */
function tellOfEnd(deps: WorkerClusterDependencies, cluster: WorkerCluster, status: WorkerClusterStatus): void {
  const said = findCondition(status.conditions, EXPIRING);
  const known = findCondition(cluster.status?.conditions, EXPIRING);
  if (said && said.message !== known?.message)
    deps.recordEvent(cluster, 'Warning', said.reason ?? EXPIRING, said.message ?? '');
}

/** Nobody is asked what others have unless a range of the cluster may be theirs too. */
function meshView(
  { meshes }: WorkerClusterDependencies,
  cluster: WorkerCluster,
  shoot: Shoot | undefined,
  refused?: Refusal,
): Pick<WorkerClusterView, 'mesh'> {
  if (!meshes) return {};
  const { uid = '' } = cluster.metadata;
  const known = meshes.entry(keyOf(cluster), uid) ?? (shoot && knownByShoot(shoot));
  const own = ownRanges(cluster, known);
  return { mesh: { known, refused, overlapping: own.length > 0 ? meshes.overlapping(keyOf(cluster), own) : [] } };
}

/** Without quotas nobody else is looked at: most namespaces have none. */
function projectShare(deps: WorkerClusterDependencies, cluster: WorkerCluster): ProjectShare {
  const { namespace = '', name } = cluster.metadata;
  const quotas = deps.quotas.byIndex(BY_NAMESPACE, namespace);
  const all = quotas.length > 0 ? claimantsIn(deps, namespace) : [];
  const held = heldBy(deps, cluster);
  return { quotas, held, others: all.filter(({ key }) => key !== `${namespace}/${name}`) };
}

/** Notes what the plan grants; returns it when a quota counts it and it is more than is written down. */
function grant(
  deps: WorkerClusterDependencies,
  { cluster, project }: WorkerClusterView,
  { admitted }: WorkerClusterStatus,
) {
  if (!admitted) return undefined;
  deps.granted.set(cluster.metadata.uid ?? '', admitted);
  return project && project.quotas.length > 0 && isLarger(admitted, cluster.status?.admitted) ? admitted : undefined;
}

/** Its Shoot says more in a moment: told before that, every new cluster would cost a write that nobody has time to read. */
const FIRST_WORD_MS = 500;

/** An API server gives each new object a status that says nothing yet. */
const hasBeenTold = ({ status }: WorkerCluster | Shoot): boolean => status?.conditions !== undefined;

const isUntouched = (shoot: Shoot, now: Date): boolean =>
  !hasBeenTold(shoot) &&
  +now - Date.parse(shoot.metadata.creationTimestamp ?? '') < 2 * FIRST_WORD_MS + WHOLE_SECOND_MS;
/** Kubernetes' timestamps are cut to whole seconds. */
const WHOLE_SECOND_MS = 1000;

/** The Shoot of this cluster; one of the same name that somebody made by hand is not. */
function ownShoot(deps: WorkerClusterDependencies, cluster: WorkerCluster): Shoot | undefined {
  const shoot = deps.shoots.get(keyOf(cluster));
  const owned = shoot?.metadata.ownerReferences?.some((owner) => owner.uid === cluster.metadata.uid);
  return owned ? shoot : undefined;
}
