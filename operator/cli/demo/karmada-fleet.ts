import { LABELS } from '../../api/group.ts';
import { readCpu } from '../../api/quantity.ts';
import { readerOf } from '../../controllers/membership/two-sides.ts';
import { CLUSTER_NAMESPACE, CLUSTERS, freeOn, type KarmadaCluster } from '../../hubs/karmada/cluster.ts';
import { karmadaHub } from '../../hubs/karmada/karmada.ts';
import { RESOURCEBINDINGS, worksNamespaceName } from '../../hubs/karmada/seen.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Informer } from '../../kube/informer.ts';
import { podSecurityLabels } from '../../kube/pod-security.ts';
import { DEPLOYMENTS, type KubeObject, NAMESPACES, type Resource, SECRETS } from '../../kube/resources.ts';
import { CliError } from '../errors.ts';
import { CLUSTERS_IN, DEMO, demoWorkOf, FIT, FLEET, MARK, PEAK, REPLICA, RISEN, WORK } from './burst-objects.ts';
import type { Fleet } from './fleet.ts';

/** Secret in the operator's namespace with Karmada's kubeconfig; exists while the demo has objects in that Karmada. */
export const KARMADA_SECRET = 'burst-demo-karmada';
/** Deployment of the extra replicas. A second Deployment, because Karmada divides a Deployment as a whole. */
const SALE = 'sale';
const RUSH = 'rush';
const REPLICAS = { [SALE]: RISEN - FIT, [RUSH]: PEAK - RISEN };
const PROPAGATIONPOLICIES: Resource = {
  group: 'policy.karmada.io',
  version: 'v1alpha1',
  plural: 'propagationpolicies',
  kind: 'PropagationPolicy',
  namespaced: true,
};
const PATIENCE_MS = 2 * 60_000;

type Binding = KubeObject & { status?: { conditions?: { type: string; status: string; message?: string }[] } };

/** An existing Karmada with its own scheduler. Clusters of the demo become its members. */
export class KarmadaFleet implements Fleet {
  readonly hub = { type: 'Karmada', kubeconfigRef: { name: KARMADA_SECRET } } as const;
  readonly scheduler = 'Karmada';
  readonly kinds = 'no Cluster, no Secret and no namespace';
  readonly objects: readonly KubeObject[];
  readonly #karmada: KubeClient;
  readonly #marks: Readonly<Record<string, string>>;
  readonly #clusters: Informer<KarmadaCluster>;
  readonly #bindings: Informer<Binding>;
  readonly #secrets: Informer;
  readonly #namespaces: Informer;

  /**
   * @param kubeconfig of `karmada`, without file paths
   * @param namespace the operator's
   * @param garden UID of the garden's namespace kube-system: distinguishes gardens that use one Karmada
   */
  constructor(karmada: KubeClient, kubeconfig: string, namespace: string, garden: string) {
    this.#karmada = karmada;
    this.#marks = { ...MARK, [LABELS.garden]: garden };
    this.objects = [
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: KARMADA_SECRET, namespace, labels: MARK },
        stringData: { value: kubeconfig },
      },
    ];
    this.#clusters = new Informer<KarmadaCluster>(karmada, CLUSTERS);
    this.#bindings = new Informer<Binding>(karmada, RESOURCEBINDINGS, { namespace: FLEET });
    this.#secrets = new Informer(karmada, SECRETS, { namespace: CLUSTER_NAMESPACE });
    this.#namespaces = new Informer(karmada, NAMESPACES);
  }

  /** Throws CliError if the API server is no Karmada, or if the demo's names are taken there. */
  async check(signal: AbortSignal): Promise<void> {
    const [problem] = await karmadaHub.validate(readerOf(this.#karmada, signal), this.hub);
    if (problem)
      throw new CliError(`${this.#karmada.server} is not a Karmada: ${problem}`, {
        advice: 'choose its context with --context',
      });
    const taken = await this.#karmada.getOrUndefined(NAMESPACES, FLEET, undefined, { signal });
    if (taken && !this.#isOurs(taken))
      throw new CliError(
        `there is a Namespace ${FLEET} in that Karmada that no demo of this garden created, and the demo needs that name`,
      );
  }

  async begin(signal: AbortSignal): Promise<AbortSignal> {
    for (const cache of this.caches()) cache.start();
    const metadata = { name: FLEET, labels: podSecurityLabels('baseline') };
    await this.#make({ apiVersion: 'v1', kind: 'Namespace', metadata }, NAMESPACES, signal);
    return new AbortController().signal;
  }

  readonly caches = () => [this.#clusters, this.#bindings, this.#secrets, this.#namespaces] as readonly Informer[];
  readonly nameOf = (member: string) => `Cluster ${member} of Karmada`;

  leftOf(member: string): string[] {
    const secrets = this.#secrets
      .list()
      .filter(({ metadata: { name, labels } }) => labels?.[LABELS.hub] === DEMO && name.startsWith(member));
    const namespace = worksNamespaceName(member);
    return [
      ...(this.#clusters.get(member) ? [`Cluster ${member}`] : []),
      ...secrets.map(({ metadata }) => `Secret ${metadata.name}`),
      ...(this.#namespaces.get(namespace) ? [`Namespace ${namespace}`] : []),
    ];
  }

  readonly fill = (signal: AbortSignal) => this.#propagate(WORK, FIT, signal);

  isFull(member: string): boolean {
    const free = freeOn(this.#clusters.get(member));
    return free?.cpu !== undefined && readCpu(free.cpu) < readCpu(REPLICA.cpu);
  }

  readonly rise = (signal: AbortSignal) => this.#propagate(SALE, REPLICAS[SALE], signal);
  readonly peak = (signal: AbortSignal) => this.#propagate(RUSH, REPLICAS[RUSH], signal);

  refusal(): string | undefined {
    for (const name of [SALE, RUSH] as const) {
      const { conditions = [] } = this.#bindings.get(`${FLEET}/${name}-deployment`)?.status ?? {};
      const said = conditions.find(({ type, status }) => type === 'Scheduled' && status === 'False');
      if (said) return `Deployment ${name} needs ${REPLICAS[name]} replicas, and Karmada says: ${said.message ?? 'no'}`;
    }
    return undefined;
  }

  async ebb(signal: AbortSignal): Promise<string> {
    for (const kind of [DEPLOYMENTS, PROPAGATIONPOLICIES])
      await this.#takeAway(kind, signal, ({ metadata: { name } }) => name === SALE || name === RUSH);
    return `Deployments ${SALE} and ${RUSH} are deleted`;
  }

  async end(): Promise<void> {
    await Promise.all(this.caches().map((cache) => cache.stop()));
  }

  /** Deletes all work of this garden's demos, and waits until Karmada has released it. */
  async takeWork(signal: AbortSignal): Promise<void> {
    for (const kind of [DEPLOYMENTS, PROPAGATIONPOLICIES]) await this.#takeAway(kind, signal);
    const namespace = await this.#karmada.getOrUndefined(NAMESPACES, FLEET, undefined, { signal });
    if (namespace && this.#isOurs(namespace)) await this.#untilNone(RESOURCEBINDINGS, { namespace: FLEET }, signal);
  }

  /** Deletes the rest, once all clusters have left. Throws if something remains. */
  async takeRest(signal: AbortSignal): Promise<void> {
    await this.#takeAway(NAMESPACES, signal);
    const selectors = { labelSelector: selectorOf(this.#marks) };
    await this.#untilNone(NAMESPACES, selectors, signal);
    const ours = { labelSelector: selectorOf({ [LABELS.hub]: DEMO, [LABELS.garden]: this.#marks[LABELS.garden]! }) };
    for (const kind of [CLUSTERS, SECRETS]) await this.#untilNone(kind, ours, signal);
  }

  readonly #isOurs = ({ metadata: { labels } }: KubeObject): boolean =>
    Object.entries(this.#marks).every(([key, value]) => labels?.[key] === value);

  async #propagate(name: string, replicas: number, signal: AbortSignal): Promise<void> {
    await this.#make(demoWorkOf(name, replicas), DEPLOYMENTS, signal);
    const labelSelector = { matchLabels: { [LABELS.workerClusterNamespace]: CLUSTERS_IN } };
    const policy: KubeObject = {
      apiVersion: 'policy.karmada.io/v1alpha1',
      kind: 'PropagationPolicy',
      metadata: { name, namespace: FLEET },
      spec: {
        resourceSelectors: [{ apiVersion: 'apps/v1', kind: 'Deployment', name }],
        placement: {
          // Do not touch other members of that Karmada.
          clusterAffinity: { labelSelector },
          replicaScheduling: {
            replicaSchedulingType: 'Divided',
            replicaDivisionPreference: 'Weighted',
            weightPreference: { dynamicWeight: 'AvailableReplicas' },
          },
        },
      },
    };
    await this.#make(policy, PROPAGATIONPOLICIES, signal);
  }

  /** Creates an object. Create, not apply: apply would take over an object of somebody else. */
  async #make(object: KubeObject, resource: Resource, signal: AbortSignal): Promise<void> {
    const { metadata } = object;
    const marked = { ...object, metadata: { ...metadata, labels: { ...metadata.labels, ...this.#marks } } };
    await this.#karmada.create(marked, { resource, signal });
  }

  async #takeAway(
    kind: Resource,
    signal: AbortSignal,
    which: (one: KubeObject) => boolean = () => true,
  ): Promise<void> {
    const { items } = await this.#karmada.list(kind, { labelSelector: selectorOf(this.#marks), signal });
    for (const { metadata } of items.filter(which)) {
      const { name, namespace, uid = '' } = metadata;
      await this.#karmada.delete(kind, name, namespace, { signal, preconditions: { uid } });
    }
  }

  async #untilNone(
    kind: Resource,
    which: { namespace?: string; labelSelector?: string },
    signal: AbortSignal,
  ): Promise<void> {
    const informer = new Informer(this.#karmada, kind, which);
    informer.start();
    try {
      await informer.waitFor(() => informer.size === 0, {
        timeoutMs: PATIENCE_MS,
        signal,
        what: () =>
          `${kind.kind} ${informer
            .list()
            .map(({ metadata }) => metadata.name)
            .join(', ')} of the demo to be deleted in Karmada`,
      });
    } finally {
      await informer.stop();
    }
  }
}

const selectorOf = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join();
