import {
  BASES,
  CLUSTER_ID,
  CLUSTERNET_CLUSTERS,
  DEPLOYER,
  DESCRIPTIONS,
  SUBSCRIPTION_UID,
  SUBSCRIPTIONS,
} from '../../../operator/hubs/clusternet.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import {
  CONFIGMAPS,
  decodeSecret,
  type KubeObject,
  keyOf,
  NAMESPACES,
  type Resource,
  SECRETS,
  type Secret,
} from '../../../operator/kube/resources.ts';
import { type Access, Deployed } from './deployed.ts';
import { removeNamespace } from './karmada-stand-in.ts';
import { StandIn } from './stand-in.ts';

const FINALIZER = 'apps.clusternet.io/finalizer';
const UNSCHEDULABLE = 'clusters.clusternet.io/unschedulable';
const IN_NAMESPACE: readonly Resource[] = [CLUSTERNET_CLUSTERS, SECRETS, BASES, DESCRIPTIONS];

interface Condition {
  type: string;
  status: string;
  [field: string]: string;
}
type ManagedCluster = KubeObject & {
  spec: { clusterId: string; taints?: { key: string; effect: string; value?: string }[] };
  status?: { conditions?: Condition[]; appPusher?: boolean };
};
type Subscription = KubeObject & {
  spec: {
    schedulingStrategy: string;
    subscribers: { clusterAffinity: { matchLabels?: Record<string, string> } }[];
    feeds: unknown[];
  };
  status?: { bindingClusters?: string[] };
};

const isReady = ({ status }: ManagedCluster): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
const isGoing = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined;

/**
 * What of Clusternet 0.18 meets a cluster that has no agent, as its sources say; and the API server's namespace controller, which deletes
 * in no order. In its place in tests only. Of note: what is deployed to a cluster that is gone or not Ready is forgotten, and stays in it; a
 * taint has Subscriptions that replicate scheduled anew, and none that divides; credentials are read once for each cluster id.
 */
export class Clusternet extends StandIn {
  readonly deployed = new Deployed();
  readonly #access = new Map<string, Access>();
  /** False: its controllers are down. */
  isUp = true;

  constructor(client: KubeClient) {
    super(client, [NAMESPACES, SUBSCRIPTIONS, ...IN_NAMESPACE]);
  }

  protected override async reconcile(): Promise<void> {
    if (!this.isUp) return;
    const clusters = await this.list<ManagedCluster>(CLUSTERNET_CLUSTERS);
    for (const cluster of clusters) await this.#lifecycle(cluster);
    const subscriptions = await this.list<Subscription>(SUBSCRIPTIONS);
    for (const one of subscriptions) await this.#schedule(one, clusters);
    const uids = subscriptions.map(({ metadata }) => metadata.uid);
    for (const base of await this.list(BASES)) {
      const isOver = !uids.includes(base.metadata.labels?.[SUBSCRIPTION_UID]);
      if (isOver && !isGoing(base)) await this.#delete(BASES, base);
      else await this.#describe(base);
    }
    for (const one of await this.list(DESCRIPTIONS)) {
      const ofCluster = clusters.find(({ metadata }) => metadata.namespace === one.metadata.namespace);
      // One that fails is tried again, and the others are seen to all the same.
      await this.#deploy(one, ofCluster).catch((error: unknown) => {
        this.failure = error;
      });
    }
    for (const secret of await this.list<Secret>(SECRETS))
      if (secret.metadata.name === DEPLOYER) await this.#protect(SECRETS, secret);
    for (const namespace of (await this.list(NAMESPACES)).filter(isGoing)) await this.#empty(namespace.metadata.name);
  }

  async #lifecycle(cluster: ManagedCluster): Promise<void> {
    const { name, namespace } = cluster.metadata;
    const { conditions = [] } = cluster.status ?? {};
    if (!conditions.some(({ type }) => type === 'ClusterInit')) {
      const said = { type: 'ClusterInit', status: 'True', reason: 'ClusterInitDisabled', message: 'not enabled' };
      const status = { conditions: [...conditions, { ...said, lastTransitionTime: '2026-11-22T12:00:00Z' }] };
      await this.client.mergePatch(CLUSTERNET_CLUSTERS, name, namespace, { status }, { subresource: 'status' });
    }
    const { taints = [] } = cluster.spec;
    const isTainted = taints.some(({ key }) => key === UNSCHEDULABLE);
    const isLost = conditions.some(({ type }) => type === 'Ready') && !isReady(cluster);
    if (isTainted === isLost) return;
    const others = taints.filter(({ key }) => key !== UNSCHEDULABLE);
    const spec = {
      taints: isLost ? [...others, { key: UNSCHEDULABLE, value: 'Silent', effect: 'NoSchedule' }] : others,
    };
    const { resourceVersion } = cluster.metadata;
    await this.client.mergePatch(CLUSTERNET_CLUSTERS, name, namespace, { metadata: { resourceVersion }, spec });
  }

  async #schedule(one: Subscription, clusters: readonly ManagedCluster[]): Promise<void> {
    const { metadata, spec, status } = one;
    let bound = status?.bindingClusters ?? [];
    if (spec.schedulingStrategy !== 'Dividing' || bound.length === 0) {
      const fits = clusters.filter(
        (cluster) =>
          (cluster.spec.taints ?? []).length === 0 &&
          spec.subscribers.some(({ clusterAffinity: { matchLabels = {} } }) =>
            Object.entries(matchLabels).every(([key, value]) => cluster.metadata.labels?.[key] === value),
          ),
      );
      const bindingClusters = fits.map(keyOf);
      if (bindingClusters.join() !== bound.join()) {
        const patch = { status: { bindingClusters } };
        await this.client.mergePatch(SUBSCRIPTIONS, metadata.name, metadata.namespace, patch, {
          subresource: 'status',
        });
      }
      bound = bindingClusters;
    }
    const bases = (await this.list(BASES)).filter(
      ({ metadata: { labels } }) => labels?.[SUBSCRIPTION_UID] === metadata.uid,
    );
    const namespaces = bound.map((key) => key.slice(0, key.indexOf('/')));
    for (const base of bases)
      if (!isGoing(base) && !namespaces.includes(base.metadata.namespace!)) await this.#delete(BASES, base);
    for (const name of namespaces) {
      const namespace = await this.client.getOrUndefined(NAMESPACES, name);
      if (!namespace || isGoing(namespace) || bases.some((base) => base.metadata.namespace === name)) continue;
      const labels = { [SUBSCRIPTION_UID]: metadata.uid!, [CLUSTER_ID]: namespace.metadata.labels![CLUSTER_ID]! };
      await this.client.create(
        {
          apiVersion: 'apps.clusternet.io/v1alpha1',
          kind: 'Base',
          metadata: { name: `${metadata.name}-base`, namespace: name, labels, finalizers: [FINALIZER] },
          spec: { feeds: spec.feeds },
        },
        { resource: BASES },
      );
    }
  }

  async #describe(base: KubeObject): Promise<void> {
    const { name, namespace, labels } = base.metadata;
    const description = await this.client.getOrUndefined(DESCRIPTIONS, `${name}-generic`, namespace);
    if (isGoing(base)) {
      if (!description) await this.#let(BASES, base);
      else if (!isGoing(description)) await this.#delete(DESCRIPTIONS, description);
    } else if (!description) {
      const metadata = { name: `${name}-generic`, namespace: namespace!, labels, finalizers: [FINALIZER] };
      const object = { apiVersion: 'apps.clusternet.io/v1alpha1', kind: 'Description', metadata };
      await this.client.create({ ...object, spec: { deployer: 'Generic' } } as KubeObject, { resource: DESCRIPTIONS });
    }
  }

  async #deploy(description: KubeObject, cluster: ManagedCluster | undefined): Promise<void> {
    const { name, namespace } = description.metadata;
    const isLost = !cluster || ((cluster.status?.conditions ?? []).length > 0 && !isReady(cluster));
    if (isGoing(description) && isLost) return this.#let(DESCRIPTIONS, description);
    if (!cluster?.status?.appPusher) return;
    const { clusterId } = cluster.spec;
    const access = this.#access.get(clusterId) ?? (await this.#read(namespace!));
    this.#access.set(clusterId, access);
    if (!isGoing(description)) return this.deployed.apply(access, name);
    await this.deployed.prune(access, name);
    await this.#let(DESCRIPTIONS, description);
  }

  async #read(namespace: string): Promise<Access> {
    const { data } = await this.client.get<Secret>(SECRETS, DEPLOYER, namespace);
    const { 'apiserver-advertise-url': server = '', 'ca.crt': ca = '', token = '' } = decodeSecret(data);
    return { server, ca, token };
  }

  async #protect(resource: Resource, object: KubeObject): Promise<void> {
    const { name, namespace, finalizers } = object.metadata;
    if (isGoing(object)) return this.#let(resource, object);
    if (finalizers?.includes(FINALIZER)) return;
    await this.client.mergePatch(resource, name, namespace, { metadata: { finalizers: [FINALIZER] } });
  }

  async #empty(namespace: string): Promise<void> {
    let left = 0;
    for (const resource of [...IN_NAMESPACE, CONFIGMAPS])
      for (const one of (await this.client.list(resource, { namespace })).items) {
        left++;
        if (!isGoing(one)) await this.#delete(resource, one);
      }
    if (left === 0) await removeNamespace(this.client, namespace);
    // Nobody tells of what ends now and had no finalizer.
    else setTimeout(() => this.look(), AGAIN_MS);
  }

  #delete = (resource: Resource, { metadata: { name, namespace } }: KubeObject) =>
    this.client.delete(resource, name, namespace);

  /** Takes its finalizer off. */
  async #let(resource: Resource, { metadata: { name, namespace } }: KubeObject): Promise<void> {
    await this.client.mergePatch(resource, name, namespace, { metadata: { finalizers: null } });
  }
}

const AGAIN_MS = 200;

/** Deploys something to clusters with these labels. */
export const subscription = (
  name: string,
  matchLabels: Record<string, string>,
  schedulingStrategy: 'Replication' | 'Dividing' = 'Replication',
): KubeObject => ({
  apiVersion: 'apps.clusternet.io/v1alpha1',
  kind: 'Subscription',
  metadata: { name, namespace: 'shop' },
  spec: {
    schedulingStrategy,
    ...(schedulingStrategy === 'Dividing' && { dividingScheduling: { type: 'Static' } }),
    subscribers: [{ clusterAffinity: { matchLabels } }],
    feeds: [{ apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name }],
  },
});
