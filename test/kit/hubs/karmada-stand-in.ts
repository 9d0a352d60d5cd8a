import { RESOURCEBINDINGS, WORKS } from '../../../operator/hubs/karmada.ts';
import type { KarmadaCluster } from '../../../operator/hubs/karmada-cluster.ts';
import { CLUSTER_NAMESPACE, CLUSTERS } from '../../../operator/hubs/karmada-cluster.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { type Controller, runController } from '../../../operator/kube/controller.ts';
import { Informer } from '../../../operator/kube/informer.ts';
import { type KubeObject, NAMESPACES, NODES, type Node, SECRETS } from '../../../operator/kube/resources.ts';
import { WorkQueue } from '../../../operator/kube/workqueue.ts';

const FINALIZER = 'karmada.io/cluster-controller';
const NOT_READY = { key: 'cluster.karmada.io/not-ready', effect: 'NoSchedule' as const };
/** Karmada waits ten seconds between two looks at a cluster that leaves. */
const LOOK_AGAIN_MS = 100;

/**
 * Does what Karmada was seen to do with a Cluster that it pushes to. First its own taint and the namespace for Works, then Ready and what
 * nodes offer; a Cluster that goes waits for its Works, and then for every binding that still names it.
 */
export class KarmadaStandIn {
  readonly #hub: KubeClient;
  readonly #member: KubeClient;
  readonly #clusters: Informer<KarmadaCluster>;
  readonly #queue = new WorkQueue();
  #controller: Controller | undefined;
  /** Its controllers are down: nothing happens, and finalizers stay. */
  isDown = false;
  /** The namespace for Works is left behind, as one of a Karmada whose namespace controller is down. */
  leaksNamespace = false;

  constructor(hub: KubeClient, member: KubeClient) {
    this.#hub = hub;
    this.#member = member;
    this.#clusters = new Informer<KarmadaCluster>(hub, CLUSTERS);
    this.#clusters.onChange(({ object }) => this.#queue.add(object.metadata.name));
  }

  async start(): Promise<void> {
    this.#clusters.start();
    await this.#clusters.whenSynced(AbortSignal.timeout(30_000));
    this.#controller = runController({
      name: 'karmada',
      queue: this.#queue,
      concurrency: 1,
      reconcile: (name) => this.#reconcile(name),
    });
  }

  async stop(): Promise<void> {
    await this.#controller?.stop(0);
    await this.#clusters.stop();
  }

  /** Looks at all again, now that it is not down any more. */
  wake(): void {
    this.isDown = false;
    for (const { metadata } of this.#clusters.list()) this.#queue.add(metadata.name);
  }

  async #reconcile(name: string): Promise<{ requeueAfterMs?: number }> {
    const cluster = (await this.#hub.getOrUndefined(CLUSTERS, name)) as KarmadaCluster | undefined;
    // One that is pulled from waits for its agent.
    if (!cluster || this.isDown || cluster.spec?.secretRef === undefined) return {};
    const namespace = `karmada-es-${name}`;
    if (cluster.metadata.deletionTimestamp) return this.#remove(cluster, namespace);
    await this.#hub.apply({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace, labels: { 'karmada.io/system': 'true' } },
    });
    const isReady = await this.#reaches(cluster);
    const taints = (cluster.spec.taints ?? []).filter(({ key }) => key !== NOT_READY.key);
    await this.#write(cluster, {
      metadata: { finalizers: [FINALIZER] },
      spec: { taints: isReady && cluster.status ? taints : [...taints, NOT_READY] },
    });
    if (isReady) await this.#report(cluster);
    return isReady ? {} : { requeueAfterMs: LOOK_AGAIN_MS };
  }

  async #reaches({ spec }: KarmadaCluster): Promise<boolean> {
    const { name } = spec!.secretRef!;
    const secret = await this.#hub.getOrUndefined(SECRETS, name, CLUSTER_NAMESPACE);
    return secret?.data?.token !== undefined && secret.data.caBundle !== undefined;
  }

  async #report({ metadata: { name }, status }: KarmadaCluster): Promise<void> {
    const { items } = await this.#member.list<Node>(NODES);
    const allocatable = items[0]?.status?.allocatable;
    const conditions = [{ type: 'Ready', status: 'True', reason: 'ClusterReady', message: 'cluster is healthy' }];
    const said = { conditions, resourceSummary: { allocatable } };
    if (JSON.stringify(said) === JSON.stringify(status)) return;
    await this.#hub.mergePatch(CLUSTERS, name, undefined, { status: said }, { subresource: 'status' });
  }

  async #remove({ metadata }: KarmadaCluster, namespace: string): Promise<{ requeueAfterMs?: number }> {
    const again = { requeueAfterMs: LOOK_AGAIN_MS };
    const works = (await this.#hub.list(WORKS, { namespace })).items;
    for (const work of works) {
      await this.#hub.delete(WORKS, work.metadata.name, namespace);
      await this.#hub
        .mergePatch(WORKS, work.metadata.name, namespace, { metadata: { finalizers: null } })
        .catch(() => {});
    }
    if (!this.leaksNamespace) await removeNamespace(this.#hub, namespace);
    const bindings = (await this.#hub.list(RESOURCEBINDINGS)).items as (KubeObject & {
      spec: { clusters?: { name: string }[] };
    })[];
    if (bindings.some(({ spec }) => spec.clusters?.some(({ name }) => name === metadata.name))) return again;
    await this.#hub.mergePatch(CLUSTERS, metadata.name, undefined, { metadata: { finalizers: null } }).catch(() => {});
    return {};
  }

  /** An update of the whole object, as Karmada's: of a list nothing that it has read is lost. */
  async #write(cluster: KarmadaCluster, patch: { metadata: object; spec: { taints: unknown[] } }): Promise<void> {
    const { finalizers = [], resourceVersion } = cluster.metadata;
    const isSame = JSON.stringify(patch.spec.taints) === JSON.stringify(cluster.spec?.taints ?? []);
    if (finalizers.includes(FINALIZER) && isSame) return;
    const metadata = { ...patch.metadata, resourceVersion };
    await this.#hub.mergePatch(CLUSTERS, cluster.metadata.name, undefined, { ...patch, metadata });
  }
}

/** What the namespace controller does, which a bare API server has not. */
export async function removeNamespace(client: KubeClient, name: string): Promise<void> {
  await client.delete(NAMESPACES, name).catch(() => {});
  const left = await client.getOrUndefined(NAMESPACES, name);
  if (!left) return;
  const body = { ...left, spec: { finalizers: [] } };
  await client.request('PUT', `/api/v1/namespaces/${name}/finalize`, { body }).catch(() => {});
}
