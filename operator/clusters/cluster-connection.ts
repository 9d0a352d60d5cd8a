import { Applier } from '../kube/applier.ts';
import type { KubeClient } from '../kube/client.ts';
import { tenantBudget } from '../kube/http/byte-budget.ts';
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
import type { TenantStep } from '../kube/tenant-steps.ts';
import { ConnectionHealth } from './connection-health.ts';
import { slimCertificateRequest, slimNode } from './kept-objects.ts';
import { keptPod } from './kept-pod.ts';
import type { OpenCluster } from './open-clusters.ts';

/** Longest time an API server may take to report readiness before it counts as not answering. */
const ASK_MS = 3_000;
const BY_NODE = 'node';

/** An open connection to a shoot's API server: its nodes, pods and certificate requests are watched, never polled. */
export class ClusterConnection implements OpenCluster {
  readonly client: KubeClient;
  readonly nodes: Informer<Node>;
  readonly pods: Informer<Pod>;
  readonly csrs: Informer<CertificateSigningRequest>;
  readonly server: string;
  /** The tenant's cluster, for steps that take turns. */
  readonly owner: Pick<TenantStep, 'namespace' | 'cluster'>;
  /** When the operator's client certificate should be renewed. */
  readonly renewAt: Date;
  /** Detects that the API server stops answering. */
  readonly health: ConnectionHealth;
  readonly #stopListeners: (() => void)[] = [];

  /**
   * @param of `tenant`: namespace of the cluster in the garden; `name`: that of the cluster
   * @param onHealth called when the API server stops answering, and when it answers again
   */
  constructor(
    client: KubeClient,
    { server, tenant, name = server }: { server: string; tenant: string; name?: string },
    renewAt: Date,
    log: Log,
    onChange: (object: KubeObject) => void,
    onHealth: (answers: boolean) => void = () => {},
  ) {
    this.client = client;
    this.server = server;
    this.owner = { namespace: tenant, cluster: name };
    this.renewAt = renewAt;
    const shared = { budget: tenantBudget(tenant), owner: this.owner, log };
    this.health = new ConnectionHealth({ ask: () => client.ready({ timeoutMs: ASK_MS }), told: onHealth });
    const failed = () => this.health.doubt();
    this.nodes = new Informer<Node>(client, NODES, { transform: slimNode, ...shared, failed });
    this.pods = new Informer<Pod>(client, PODS, {
      transform: keptPod,
      indexes: { [BY_NODE]: (pod: Pod) => (pod.spec.nodeName ? [pod.spec.nodeName] : []) },
      ...shared,
    });
    this.csrs = new Informer<CertificateSigningRequest>(client, CSRS, {
      transform: slimCertificateRequest,
      ...shared,
      failed,
    });
    for (const informer of [this.nodes, this.pods, this.csrs]) informer.onChange((event) => onChange(event.object));
  }

  /** Also rejects when the API server's answer exceeds the limits; call `stop` then. */
  async start(signal: AbortSignal): Promise<void> {
    for (const informer of [this.nodes, this.pods, this.csrs]) informer.start();
    await Promise.all([this.nodes, this.pods, this.csrs].map((informer) => informer.whenSynced(signal)));
  }

  get answers(): boolean {
    return this.health.answers;
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
    this.health.stop();
    for (const listener of this.#stopListeners.splice(0)) listener();
    await Promise.all([this.nodes, this.pods, this.csrs].map((informer) => informer.stop()));
    await this.client.close();
  }
}
