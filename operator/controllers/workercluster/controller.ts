import type { Provider } from '../../../providers/contract.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { FINALIZER } from '../../api/group.ts';
import type { Shoot } from '../../api/shoot.ts';
import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import type { Applier } from '../../kube/applier.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import { type KubeObject, SHOOTS, WORKERCLUSTERS } from '../../kube/resources.ts';
import { writeStatus } from '../status-writer.ts';
import { planWorkerCluster, type WorkerClusterView } from './plan.ts';

/** What the controller of worker clusters works with. */
export interface WorkerClusterWorld {
  readonly garden: KubeClient;
  readonly gardenApplier: Applier;
  readonly clusters: Informer<WorkerCluster>;
  readonly shoots: Informer<Shoot>;
  readonly profiles: Informer<CloudProfile>;
  now(): Date;
  provider(profile: CloudProfile): Provider | undefined;
  record(object: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string): void;
}

/** Observe, plan, act for one WorkerCluster. */
export async function reconcileWorkerCluster(
  world: WorkerClusterWorld,
  key: string,
  signal: AbortSignal,
): Promise<{ requeueAfterMs: number } | undefined> {
  const cluster = world.clusters.get(key);
  if (!cluster) {
    // A delete that came in the same moment as the finalizer can win: what was made for the cluster must not outlive it.
    const orphan = world.shoots.get(key);
    const owner = orphan?.metadata.ownerReferences?.find((reference) => reference.kind === 'WorkerCluster');
    if (orphan && owner && !orphan.metadata.deletionTimestamp) {
      const { name, namespace, uid } = orphan.metadata;
      await world.garden.delete(SHOOTS, name, namespace, { preconditions: { uid }, signal });
    }
    return undefined;
  }
  const profile = world.profiles.get(profileNameOf(cluster));
  const shoot = ownShoot(world, cluster);
  const view: WorkerClusterView = {
    cluster,
    profile,
    profileNames: world.profiles.list().map((known) => known.metadata.name),
    provider: profile && world.provider(profile),
    shoot,
    foreignShoot: shoot === undefined && world.shoots.get(key) !== undefined,
  };
  const plan = planWorkerCluster(view, world.now());
  let { status } = plan;
  const { name, namespace } = cluster.metadata;

  if (plan.finalizer === 'add') {
    const finalizers = [...(cluster.metadata.finalizers ?? []), FINALIZER];
    const metadata = { finalizers, resourceVersion: cluster.metadata.resourceVersion };
    world.clusters.absorb(
      await world.garden.mergePatch<WorkerCluster>(WORKERCLUSTERS, name, namespace, { metadata }, { signal }),
    );
  }
  if (plan.shoot) {
    const { object, changed } = await world.gardenApplier.apply(plan.shoot, signal);
    if (changed) {
      world.shoots.absorb(object);
      // Whether all is Ready was said of the Shoot as it was: of what is asked for now it is not true yet.
      ({ status } = planWorkerCluster({ ...view, shoot: object }, world.now()));
    }
    if (changed && !shoot) world.record(cluster, 'Normal', 'ShootMade', `made Shoot ${namespace}/${name}`);
  }
  if (plan.deleteShoot) await world.garden.delete(SHOOTS, name, namespace, { propagationPolicy: 'Background', signal });
  if (plan.finalizer === 'remove') {
    const finalizers = (cluster.metadata.finalizers ?? []).filter((finalizer) => finalizer !== FINALIZER);
    await world.garden.mergePatch(WORKERCLUSTERS, name, namespace, { metadata: { finalizers } }, { signal });
    return undefined;
  }
  const refused = status.conditions?.find(
    (condition) => condition.type === 'SpecAccepted' && condition.status === 'False',
  );
  const known = cluster.status?.conditions?.find((condition) => condition.type === 'SpecAccepted');
  if (refused && refused.message !== known?.message)
    world.record(cluster, 'Warning', 'ConfigurationProblem', refused.message ?? '');
  const made = world.shoots.get(key);
  if (!refused && !cluster.status && made && isUntouched(made, world.now())) return { requeueAfterMs: FIRST_WORD_MS };
  await writeStatus(world.garden, world.clusters, cluster, status, signal);
  return undefined;
}

/** Its Shoot says more in a moment: told before that, every new cluster would cost a write that nobody has time to read. */
const FIRST_WORD_MS = 500;

const isUntouched = (shoot: Shoot, now: Date): boolean =>
  !shoot.status && +now - Date.parse(shoot.metadata.creationTimestamp ?? '') < 2 * FIRST_WORD_MS + WHOLE_SECOND_MS;
/** Kubernetes' timestamps are cut to whole seconds. */
const WHOLE_SECOND_MS = 1000;

/** The Shoot of this cluster; one of the same name that somebody made by hand is not. */
function ownShoot(world: WorkerClusterWorld, cluster: WorkerCluster): Shoot | undefined {
  const shoot = world.shoots.get(`${cluster.metadata.namespace}/${cluster.metadata.name}`);
  const owned = shoot?.metadata.ownerReferences?.some((owner) => owner.uid === cluster.metadata.uid);
  return owned ? shoot : undefined;
}
