import type { KarmadaCluster } from '../../../operator/hubs/karmada/cluster.ts';
import { CLUSTER_NAMESPACE, CLUSTERS } from '../../../operator/hubs/karmada/cluster.ts';
import { RESOURCEBINDINGS, WORKS } from '../../../operator/hubs/karmada/seen.ts';
import { KubeClient } from '../../../operator/kube/client.ts';
import { type Controller, runController } from '../../../operator/kube/controller.ts';
import { Informer } from '../../../operator/kube/informer.ts';
import {
  type KubeObject,
  LEASES,
  NAMESPACES,
  NODES,
  type Node,
  ROLEBINDINGS,
  SECRETS,
} from '../../../operator/kube/resources.ts';
import { WorkQueue } from '../../../operator/kube/workqueue.ts';
import { accessOf, agentRun } from './karmada-agent.ts';

const FINALIZER = 'karmada.io/cluster-controller';
const NOT_READY = { key: 'cluster.karmada.io/not-ready', effect: 'NoSchedule' as const };
/** Karmada waits ten seconds between two looks at a cluster that leaves. */
const LOOK_AGAIN_MS = 100;

/**
 * Does what Karmada was seen to do with a Cluster that it pushes to, or that an agent pulls for. First its own taint and the namespace for
 * Works, then Ready and what nodes offer; a Cluster that goes waits for its Works, and then for every binding that still names it. The agent
 * is played with the rights of its token, once its Deployment is there.
 */
export class KarmadaStandIn {
  readonly #hub: KubeClient;
  readonly #member: KubeClient;
  readonly #clusters: Informer<KarmadaCluster>;
  readonly #works: Informer<KubeObject>;
  readonly #queue = new WorkQueue();
  #controller: Controller | undefined;
  /** Its controllers are down: nothing happens, and finalizers stay. */
  isDown = false;
  /** The namespace for Works is left behind, as one of a Karmada whose namespace controller is down. */
  leaksNamespace = false;
  /** Nobody runs the agent: nothing is heard of a cluster that is pulled for. */
  agentIsDown = false;
  #agent: { readonly access: string; readonly client: KubeClient } | undefined;

  constructor(hub: KubeClient, member: KubeClient) {
    this.#hub = hub;
    this.#member = member;
    this.#clusters = new Informer<KarmadaCluster>(hub, CLUSTERS);
    this.#clusters.onChange(({ object }) => this.#queue.add(object.metadata.name));
    this.#works = new Informer<KubeObject>(hub, WORKS);
    this.#works.onChange(({ object }) => this.#queue.add((object.metadata.namespace ?? '').replace('karmada-es-', '')));
  }

  async start(): Promise<void> {
    for (const cache of [this.#clusters, this.#works]) {
      cache.start();
      await cache.whenSynced(AbortSignal.timeout(30_000));
    }
    this.#controller = runController({
      name: 'karmada',
      queue: this.#queue,
      concurrency: 1,
      reconcile: (name) => this.#reconcile(name),
    });
  }

  async stop(): Promise<void> {
    await this.#controller?.stop(0);
    await Promise.all([this.#clusters.stop(), this.#works.stop()]);
    await this.#agent?.client.close();
  }

  /** Looks at all again, now that it is not down any more. */
  wake(): void {
    this.isDown = false;
    for (const { metadata } of this.#clusters.list()) this.#queue.add(metadata.name);
  }

  async #reconcile(name: string): Promise<{ requeueAfterMs?: number }> {
    const cluster = (await this.#hub.getOrUndefined(CLUSTERS, name)) as KarmadaCluster | undefined;
    // One without an ID is of a test, which has nothing behind it.
    if (!cluster || this.isDown || cluster.spec?.id === undefined) return {};
    const namespace = `karmada-es-${name}`;
    if (cluster.metadata.deletionTimestamp) return this.#remove(cluster, namespace);
    await this.#hub.apply({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace, labels: { 'karmada.io/system': 'true' } },
    });
    // One to which nothing leads is of a test, which compares it with what it was.
    if (!isPulled(cluster) && !(await this.#reaches(cluster))) return { requeueAfterMs: LOOK_AGAIN_MS };
    const carrier = isPulled(cluster) ? await this.#agentClient() : this.#hub;
    const taints = (cluster.spec.taints ?? []).filter(({ key }) => key !== NOT_READY.key);
    await this.#write(cluster, {
      metadata: { finalizers: [FINALIZER] },
      spec: { taints: carrier && cluster.status ? taints : [...taints, NOT_READY] },
    });
    if (!carrier) {
      await this.#hold(cluster);
      return { requeueAfterMs: LOOK_AGAIN_MS };
    }
    await this.#report(carrier, cluster);
    if (isPulled(cluster)) await takeWorks(carrier, namespace);
    return {};
  }

  async #reaches({ spec }: KarmadaCluster): Promise<boolean> {
    const { name } = spec!.secretRef!;
    const secret = await this.#hub.getOrUndefined(SECRETS, name, CLUSTER_NAMESPACE);
    return secret?.data?.token !== undefined && secret.data.caBundle !== undefined;
  }

  /** As the agent of the member, where one is to run. */
  async #agentClient(): Promise<KubeClient | undefined> {
    const run = this.agentIsDown ? undefined : await agentRun(this.#member);
    const access = run && accessOf(run);
    if (access !== this.#agent?.access) {
      await this.#agent?.client.close();
      this.#agent = access ? { access, client: KubeClient.fromKubeconfig(access) } : undefined;
    }
    return this.#agent?.client;
  }

  async #report(by: KubeClient, { metadata: { name }, spec }: KarmadaCluster): Promise<void> {
    const { items } = await this.#member.list<Node>(NODES);
    const allocatable = items[0]?.status?.allocatable;
    const conditions = [{ type: 'Ready', status: 'True', reason: 'ClusterReady', message: 'cluster is healthy' }];
    const status = { conditions, resourceSummary: { allocatable } };
    const live = (await by.get(CLUSTERS, name)) as KarmadaCluster;
    if (JSON.stringify(status) !== JSON.stringify(live.status))
      await by.update({ ...live, status }, { resource: CLUSTERS, subresource: 'status' });
    if (spec?.syncMode === 'Pull') await renewLease(by, name);
  }

  /** What Karmada makes of silence. */
  async #hold({ metadata: { name }, status }: KarmadaCluster): Promise<void> {
    if (status?.conditions?.[0]?.status !== 'True') return;
    const conditions = [{ ...status.conditions[0], status: 'Unknown', reason: 'ClusterStatusUnknown' }];
    await this.#hub.mergePatch(CLUSTERS, name, undefined, { status: { conditions } }, { subresource: 'status' });
  }

  async #remove(cluster: KarmadaCluster, namespace: string): Promise<{ requeueAfterMs?: number }> {
    const { metadata, status } = cluster;
    const again = { requeueAfterMs: LOOK_AGAIN_MS };
    const isReady = status?.conditions?.[0]?.status === 'True';
    const works = (await this.#hub.list(WORKS, { namespace })).items;
    for (const work of works) await this.#hub.delete(WORKS, work.metadata.name, namespace).catch(() => {});
    if (isPulled(cluster) && isReady) {
      // With the namespace its roles go, and whoever is to take away the Works may not any more.
      for (const one of (await this.#hub.list(ROLEBINDINGS, { namespace })).items)
        await this.#hub.delete(ROLEBINDINGS, one.metadata.name, namespace).catch(() => {});
      if (works.length > 0) return again;
    }
    for (const work of works)
      await this.#hub
        .mergePatch(WORKS, work.metadata.name, namespace, { metadata: { finalizers: null } })
        .catch(() => {});
    if (!this.leaksNamespace) await removeNamespace(this.#hub, namespace);
    const bindings = (await this.#hub.list(RESOURCEBINDINGS)).items as (KubeObject & {
      spec: { clusters?: { name: string }[] };
    })[];
    if (bindings.some(({ spec }) => spec.clusters?.some(({ name }) => name === metadata.name))) return again;
    await this.#hub.delete(LEASES, metadata.name, CLUSTER_NAMESPACE).catch(() => {});
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

const isPulled = ({ spec }: KarmadaCluster): boolean => spec?.syncMode === 'Pull';

async function renewLease(by: KubeClient, name: string): Promise<void> {
  const lease = await by.getOrUndefined(LEASES, name, CLUSTER_NAMESPACE);
  const metadata = lease?.metadata ?? { name, namespace: CLUSTER_NAMESPACE };
  const renewed = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: { holderIdentity: name } };
  await (lease ? by.update(renewed) : by.create(renewed));
}

/** Takes in the member away what Works that are being deleted have put there, which is nothing here. */
async function takeWorks(by: KubeClient, namespace: string): Promise<void> {
  const { items } = await by.list(WORKS, { namespace });
  for (const work of items.filter(({ metadata }) => metadata.deletionTimestamp))
    await by.update({ ...work, metadata: { ...work.metadata, finalizers: [] } }, { resource: WORKS });
}

/** What the namespace controller does, which a bare API server has not. */
export async function removeNamespace(client: KubeClient, name: string): Promise<void> {
  await client.delete(NAMESPACES, name).catch(() => {});
  const left = await client.getOrUndefined(NAMESPACES, name);
  if (!left) return;
  const body = { ...left, spec: { finalizers: [] } };
  await client.request('PUT', `/api/v1/namespaces/${name}/finalize`, { body }).catch(() => {});
}
