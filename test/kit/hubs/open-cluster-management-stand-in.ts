import { setTimeout as delay } from 'node:timers/promises';
import {
  ADDONS,
  DOMAIN,
  KLUSTERLETS,
  MANAGEDCLUSTERS,
  MANIFESTWORKS,
  type ManagedCluster,
} from '../../../operator/hubs/managed-cluster.ts';
import { KubeClient } from '../../../operator/kube/client.ts';
import { isNotFound } from '../../../operator/kube/errors.ts';
import { parseUntrustedKubeconfig } from '../../../operator/kube/kubeconfig.ts';
import {
  type CertificateSigningRequest,
  CLUSTERROLEBINDINGS,
  CLUSTERROLES,
  CONFIGMAPS,
  CSRS,
  conditionIsTrue,
  decodeSecret,
  type KubeObject,
  NAMESPACES,
  NODES,
  type Node,
  RBAC_ROLES,
  type Resource,
  ROLEBINDINGS,
  SECRETS,
} from '../../../operator/kube/resources.ts';
import { agentRequest } from './certificate-request.ts';
import { removeNamespace } from './karmada-stand-in.ts';
import { StandIn } from './stand-in.ts';

const CLUSTER_NAME = `${DOMAIN}/cluster-name`;
/** Of every ManagedCluster that the hub has seen. */
export const CLUSTER_FINALIZERS = [
  `cluster.${DOMAIN}/api-resource-cleanup`,
  `cluster.${DOMAIN}/resource-cleanup`,
] as const;
/** Of ManifestWorks, and of the RoleBinding by which the agent may end them. */
export const WORK_FINALIZER = `cluster.${DOMAIN}/manifest-work-cleanup`;
const AGENT_FINALIZER = `operator.${DOMAIN}/klusterlet-cleanup`;
const HOSTED_FINALIZER = `operator.${DOMAIN}/klusterlet-hosted-cleanup`;
const RBAC = 'rbac.authorization.k8s.io/v1';
const AGAIN_MS = 50;

interface Klusterlet extends KubeObject {
  spec: { clusterName: string; namespace?: string; imagePullSpec?: string };
}
interface Work extends KubeObject {
  spec: { workload: { manifests: KubeObject[] } };
}

/**
 * What of Open Cluster Management 1.3 meets its clusters, as its sources say: registration and garbage collection in the hub, the klusterlet
 * operator, and an agent for each Klusterlet that has its Secrets, with the rights that these give. In its place in tests only, with a
 * namespace controller, which a bare API server has not. Of note: nothing but an agent that reaches its cluster ends a ManifestWork; a
 * ManagedCluster waits for those; its namespace stays; and a Klusterlet without the Secret of the member never ends.
 */
export class OpenClusterManagement extends StandIn {
  /** False: the member is dead. */
  answers = true;
  /** False: its hub controllers and its operator are down. */
  runs = true;

  constructor(client: KubeClient) {
    super(client, [MANAGEDCLUSTERS, KLUSTERLETS, MANIFESTWORKS, ADDONS, CSRS, NAMESPACES, SECRETS]);
  }

  protected override async reconcile(): Promise<void> {
    const clusters = await this.list<ManagedCluster>(MANAGEDCLUSTERS);
    const failures: unknown[] = [];
    const each = async <T>(items: readonly T[], act: (item: T) => Promise<void>) => {
      for (const item of items) await act(item).catch((error) => failures.push(error));
    };
    if (this.runs) await each(clusters, (cluster) => this.#register(cluster));
    for (const klusterlet of await this.list<Klusterlet>(KLUSTERLETS)) {
      if (this.runs) await each([klusterlet], (one) => this.#operate(one));
      if (klusterlet.spec.imagePullSpec) await each([klusterlet], (one) => this.#agent(one));
    }
    const going = (await this.list(NAMESPACES)).filter(({ metadata }) => metadata.deletionTimestamp);
    await each(going, (namespace) => this.#empty(namespace.metadata.name));
    if (failures.length > 0) {
      // Somebody is on the way that no kind tells of.
      void delay(AGAIN_MS).then(() => this.look());
      throw failures[0];
    }
  }

  /** Controllers managedcluster and gc of the hub. */
  async #register(cluster: ManagedCluster): Promise<void> {
    const { name, deletionTimestamp } = cluster.metadata;
    const binding = `open-cluster-management:managedcluster:${name}:work`;
    if (!deletionTimestamp) {
      await this.#finalize(MANAGEDCLUSTERS, cluster, CLUSTER_FINALIZERS);
      await this.#stampTaints(cluster);
      const isAccepted = (cluster.spec as { hubAcceptsClient?: boolean } | undefined)?.hubAcceptsClient;
      if (!isAccepted || conditionIsTrue(cluster as never, 'HubAcceptedManagedCluster')) return;
      const labels = { [CLUSTER_NAME]: name };
      await this.#apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
      await this.#apply({
        apiVersion: RBAC,
        kind: 'RoleBinding',
        metadata: { name: binding, namespace: name, labels, finalizers: [WORK_FINALIZER] },
        roleRef: {
          apiGroup: RBAC.split('/')[0],
          kind: 'ClusterRole',
          name: 'open-cluster-management:managedcluster:work',
        },
      });
      await this.#say(cluster, { HubAcceptedManagedCluster: true });
      return;
    }
    await this.client.delete(ROLEBINDINGS, binding, name);
    for (const kind of [ADDONS, MANIFESTWORKS]) {
      const { items } = await this.client.list(kind, { namespace: name });
      for (const { metadata } of items) await this.client.delete(kind, metadata.name, name);
      if ((await this.client.list(kind, { namespace: name })).items.length > 0) return;
    }
    await this.#strip(ROLEBINDINGS, binding, name);
    await this.#strip(MANAGEDCLUSTERS, name);
  }

  /** The mutating webhook: from then on whoever writes the list has to repeat the time. */
  async #stampTaints({ metadata, spec }: ManagedCluster): Promise<void> {
    const taints = spec?.taints ?? [];
    if (taints.every(({ timeAdded }) => timeAdded)) return;
    const stamped = taints.map((taint) => ({ ...taint, timeAdded: taint.timeAdded ?? '2026-11-22T12:00:00Z' }));
    const patch = { metadata: { resourceVersion: metadata.resourceVersion }, spec: { taints: stamped } };
    await this.client.mergePatch(MANAGEDCLUSTERS, metadata.name, undefined, patch);
  }

  /** The klusterlet operator, in mode SingletonHosted. */
  async #operate(klusterlet: Klusterlet): Promise<void> {
    const { name, deletionTimestamp, finalizers = [] } = klusterlet.metadata;
    const labels = { [`${DOMAIN}/created-by-klusterlet`]: name };
    const role = (suffix: string) => `open-cluster-management:management:${name}${suffix}`;
    const ofHub: [Resource, string, string?][] = [
      [CLUSTERROLES, role('-registration:addon-management')],
      [CLUSTERROLEBINDINGS, role('-registration:addon-management')],
      [RBAC_ROLES, role(':extension-apiserver'), 'kube-system'],
      [ROLEBINDINGS, role('-registration:agent'), 'kube-system'],
      [ROLEBINDINGS, role('-work:agent'), 'kube-system'],
    ];
    const access = await this.#kubeconfigIn(name, 'external-managed-kubeconfig');
    if (!deletionTimestamp) {
      await this.#finalize(KLUSTERLETS, klusterlet, access ? [AGENT_FINALIZER, HOSTED_FINALIZER] : [AGENT_FINALIZER]);
      if (!access) return;
      for (const [{ kind }, objectName, namespace] of ofHub)
        await this.#apply({
          apiVersion: RBAC,
          kind,
          metadata: { name: objectName, ...(namespace && { namespace }), labels },
          ...(kind.endsWith('Binding') && {
            roleRef: {
              apiGroup: RBAC.split('/')[0],
              kind: kind.replace('Binding', ''),
              name: namespace ? role(':extension-apiserver') : objectName,
            },
          }),
        });
      await this.#inMember(access, async (member) => {
        await member.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: klusterlet.spec.namespace! } });
      });
      return;
    }
    if (finalizers.includes(HOSTED_FINALIZER)) {
      if (!access) return;
      await this.#inMember(access, (member) => removeNamespace(member, klusterlet.spec.namespace!));
    }
    for (const [kind, objectName, namespace] of ofHub) await this.client.delete(kind, objectName, namespace);
    await this.client.delete(NAMESPACES, name);
    await this.#strip(KLUSTERLETS, name);
  }

  /** The agent: registration, then status and works. */
  async #agent({ metadata: { name: namespace, uid }, spec: { clusterName } }: Klusterlet): Promise<void> {
    const [access, bootstrap] = await Promise.all([
      this.#kubeconfigIn(namespace, 'external-managed-kubeconfig'),
      this.#kubeconfigIn(namespace, 'bootstrap-hub-kubeconfig'),
    ]);
    const cluster = (await this.client.getOrUndefined(MANAGEDCLUSTERS, clusterName)) as ManagedCluster | undefined;
    if (!access) return;
    if (cluster && !conditionIsTrue(cluster as never, 'ManagedClusterJoined')) {
      if (!bootstrap || !(await this.#isSigned(bootstrap, clusterName, uid!))) return;
      if (!conditionIsTrue(cluster as never, 'HubAcceptedManagedCluster')) return;
      await this.#say(cluster, { ManagedClusterJoined: true });
    }
    await this.#inMember(access, async (member) => {
      if (cluster && !cluster.metadata.deletionTimestamp) await this.#report(cluster, member);
      for (const work of (await this.client.list<Work>(MANIFESTWORKS, { namespace: clusterName })).items)
        await this.#work(work, member);
    });
  }

  /** It asks as whom the bootstrap kubeconfig says, and has its certificate when somebody has approved. */
  async #isSigned(bootstrap: string, cluster: string, agent: string): Promise<boolean> {
    const labelSelector = `${CLUSTER_NAME}=${cluster}`;
    const requests = (await this.client.list<CertificateSigningRequest>(CSRS, { labelSelector })).items;
    const own = requests.filter(({ metadata }) => metadata.name.startsWith(`${cluster}-${agent.slice(0, 5)}`));
    if (own.length > 0) return own.some((request) => conditionIsTrue(request, 'Approved'));
    await withClient(bootstrap, async (hub) => {
      await hub.get(MANAGEDCLUSTERS, cluster);
      await hub.create(await agentRequest(cluster, agent));
    });
    return false;
  }

  async #report(cluster: ManagedCluster, member: KubeClient): Promise<void> {
    const { items } = await member.list<Node>(NODES);
    const allocatable = items[0]?.status?.allocatable;
    await this.#say(cluster, { ManagedClusterConditionAvailable: true }, allocatable && { allocatable });
  }

  async #work({ metadata, spec }: Work, member: KubeClient): Promise<void> {
    const { name, namespace, finalizers = [], deletionTimestamp } = metadata;
    const names = spec.workload.manifests.map((one) => one.metadata.name);
    if (deletionTimestamp) {
      for (const one of names) await member.delete(CONFIGMAPS, one, 'default');
      return this.#strip(MANIFESTWORKS, name, namespace);
    }
    if (!finalizers.includes(WORK_FINALIZER))
      await this.client.mergePatch(MANIFESTWORKS, name, namespace, { metadata: { finalizers: [WORK_FINALIZER] } });
    for (const one of spec.workload.manifests) await member.apply(one, { fieldManager: 'work-agent' });
  }

  /** The namespace controller: what still has finalizers keeps the namespace. */
  async #empty(name: string): Promise<void> {
    let left = 0;
    for (const kind of [SECRETS, ROLEBINDINGS, ADDONS, MANIFESTWORKS]) {
      for (const { metadata } of (await this.client.list(kind, { namespace: name })).items)
        await this.client.delete(kind, metadata.name, name);
      left += (await this.client.list(kind, { namespace: name })).items.length;
    }
    if (left > 0) throw new Error(`namespace ${name} has ${left} objects with finalizers`);
    await removeNamespace(this.client, name);
  }

  async #kubeconfigIn(namespace: string, name: string): Promise<string | undefined> {
    const secret = await this.client.getOrUndefined(SECRETS, name, namespace);
    return secret && decodeSecret(secret.data).kubeconfig;
  }

  async #inMember(access: string, act: (member: KubeClient) => Promise<void>): Promise<void> {
    if (!this.answers) throw new Error('dial tcp: i/o timeout');
    await withClient(access, act);
  }

  async #say({ metadata, status }: ManagedCluster, said: Record<string, boolean>, more: object = {}): Promise<void> {
    const before = status?.conditions ?? [];
    const isSaid = Object.keys(said).every((type) => before.some((one) => one.type === type && one.status === 'True'));
    if (isSaid && Object.entries(more).every(([key, value]) => same((status as Record<string, unknown>)?.[key], value)))
      return;
    const conditions = Object.entries(said).map(([type, isTrue]) => ({
      type,
      status: isTrue ? 'True' : 'False',
      reason: type,
      message: type,
      lastTransitionTime: '2026-11-22T12:00:00Z',
    }));
    const patch = {
      metadata: { resourceVersion: metadata.resourceVersion },
      status: { conditions: [...before.filter(({ type }) => !(type in said)), ...conditions], ...more },
    };
    await this.client.mergePatch(MANAGEDCLUSTERS, metadata.name, undefined, patch, { subresource: 'status' });
  }

  async #apply(object: KubeObject): Promise<void> {
    await this.client.apply(object, { fieldManager: 'open-cluster-management' });
  }

  async #finalize(kind: Resource, { metadata }: KubeObject, wanted: readonly string[]): Promise<void> {
    const { finalizers = [], resourceVersion, name } = metadata;
    if (wanted.every((one) => finalizers.includes(one))) return;
    const patch = { metadata: { finalizers: [...new Set([...finalizers, ...wanted])], resourceVersion } };
    await this.client.mergePatch(kind, name, undefined, patch);
  }

  async #strip(kind: Resource, name: string, namespace?: string): Promise<void> {
    await this.client.mergePatch(kind, name, namespace, { metadata: { finalizers: null } }).catch((error) => {
      if (!isNotFound(error)) throw error;
    });
  }
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

async function withClient(kubeconfig: string, act: (client: KubeClient) => Promise<void>): Promise<void> {
  const client = new KubeClient(parseUntrustedKubeconfig(kubeconfig));
  try {
    await act(client);
  } finally {
    await client.close();
  }
}
