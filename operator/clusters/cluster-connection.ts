import { Applier } from '../kube/applier.ts';
import type { KubeClient } from '../kube/client.ts';
import { Informer } from '../kube/informer.ts';
import type { Log } from '../kube/log.ts';
import {
  type CertificateSigningRequest,
  CSRS,
  type KubeObject,
  keyOf,
  NODES,
  type Node,
  PODS,
  type Pod,
  resourceOf,
} from '../kube/resources.ts';

import type { OpenCluster } from './open-clusters.ts';

const BY_NODE = 'node';

/** What of a pod is ever looked at: a cluster may have thousands, and each is held in memory here. */
function slimPod(pod: Pod): Pod {
  const { name, namespace, uid, resourceVersion, labels, annotations, ownerReferences, deletionTimestamp } =
    pod.metadata;
  const { nodeName, hostNetwork, overhead, resources, containers, initContainers } = pod.spec;
  const mirror = annotations?.['kubernetes.io/config.mirror'];
  return {
    apiVersion: pod.apiVersion,
    kind: pod.kind,
    metadata: {
      name,
      ...(namespace && { namespace }),
      ...(uid && { uid }),
      ...(resourceVersion && { resourceVersion }),
      ...(labels?.['k8s-app'] && { labels: { 'k8s-app': labels['k8s-app'] } }),
      ...(mirror && { annotations: { 'kubernetes.io/config.mirror': mirror } }),
      ...(ownerReferences && { ownerReferences }),
      ...(deletionTimestamp && { deletionTimestamp }),
    },
    spec: {
      ...(nodeName && { nodeName }),
      ...(hostNetwork && { hostNetwork }),
      ...(overhead && { overhead }),
      ...(resources && { resources }),
      containers: containers.map(({ name, resources }) => ({ name, ...(resources && { resources }) })),
      ...(initContainers && {
        initContainers: initContainers.map(({ name, resources, restartPolicy }) => ({
          name,
          ...(resources && { resources }),
          ...(restartPolicy && { restartPolicy }),
        })),
      }),
    },
    status: {
      ...(pod.status?.phase && { phase: pod.status.phase }),
      conditions: (pod.status?.conditions ?? []).filter((c) => c.type === 'Ready'),
    },
  };
}

/** An open line to one shoot's API server: its nodes, pods and certificate requests are watched, never polled. */
export class ClusterConnection implements OpenCluster {
  readonly client: KubeClient;
  readonly nodes: Informer<Node>;
  readonly pods: Informer<Pod>;
  readonly csrs: Informer<CertificateSigningRequest>;
  readonly server: string;
  /** When the operator's certificate should be replaced by a fresh one. */
  readonly renewAt: Date;
  readonly #stopListeners: (() => void)[] = [];

  constructor(client: KubeClient, server: string, renewAt: Date, log: Log, onChange: (object: KubeObject) => void) {
    this.client = client;
    this.server = server;
    this.renewAt = renewAt;
    this.nodes = new Informer<Node>(client, NODES, { log });
    this.pods = new Informer<Pod>(client, PODS, {
      transform: slimPod,
      indexes: { [BY_NODE]: (pod: Pod) => (pod.spec.nodeName ? [pod.spec.nodeName] : []) },
      log,
    });
    this.csrs = new Informer<CertificateSigningRequest>(client, CSRS, { log });
    for (const informer of [this.nodes, this.pods, this.csrs]) informer.onChange((event) => onChange(event.object));
  }

  async start(signal: AbortSignal): Promise<void> {
    for (const informer of [this.nodes, this.pods, this.csrs]) informer.start();
    await Promise.all([this.nodes, this.pods, this.csrs].map((informer) => informer.whenSynced(signal)));
  }

  podsOn(node: string): Pod[] {
    return this.pods.byIndex(BY_NODE, node);
  }

  /** Applies objects to the shoot in order, writing only those that differ. */
  async applyAll(objects: readonly KubeObject[], signal: AbortSignal): Promise<void> {
    const live = new Map<string, KubeObject>();
    await Promise.all(
      objects.map(async (object) => {
        const { name, namespace } = object.metadata;
        const found = await this.client.getOrUndefined(resourceOf(object), name, namespace, { signal });
        if (found) live.set(`${object.kind}/${keyOf(object)}`, found);
      }),
    );
    const applier = new Applier(this.client, (object) => ({ live: live.get(`${object.kind}/${keyOf(object)}`) }));
    for (const object of objects) await applier.apply(object, signal);
  }

  async deleteNode(name: string): Promise<void> {
    await this.client.delete(NODES, name);
  }

  onStop(listener: () => void): void {
    this.#stopListeners.push(listener);
  }

  async stop(): Promise<void> {
    for (const listener of this.#stopListeners.splice(0)) listener();
    await Promise.all([this.nodes, this.pods, this.csrs].map((informer) => informer.stop()));
    await this.client.close();
  }
}
