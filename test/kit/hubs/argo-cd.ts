import { APPLICATIONS } from '../../../operator/hubs/argo-cd.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { decodeSecret, type KubeObject, SECRETS, type Secret } from '../../../operator/kube/resources.ts';
import { type Access, Deployed } from './deployed.ts';
import { StandIn } from './stand-in.ts';

export const RESOURCES = 'resources-finalizer.argocd.argoproj.io';
const GENERATED = 'test/generated-by';
const SKIP = 'argocd.argoproj.io/skip-reconcile';

interface Application extends KubeObject {
  spec: { destination: { name?: string; server?: string } };
}
interface Cluster extends Access {
  readonly name: string;
  readonly isSkipped: boolean;
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * What of Argo CD 3.6 meets its clusters, as its sources say: cluster generators, an Application that deploys, and how it ends. In its
 * place in tests only. Of note: a skipped cluster's Applications are not even finalized (canProcessApp), and one whose cluster is unknown
 * ends and leaves behind what it deployed (finalizeApplicationDeletion). 2.14 heeds no skipping: that one is tried for real, in
 * test/e2e/argo-cd.test.ts.
 */
export class ArgoCD extends StandIn {
  readonly deployed = new Deployed();
  /** Name of an ApplicationSet -> the labels that its cluster generator selects. */
  readonly generators = new Map<string, Readonly<Record<string, string>>>();

  constructor(client: KubeClient) {
    super(client, [SECRETS, APPLICATIONS]);
  }

  protected override async reconcile(): Promise<void> {
    const clusters = await this.#clusters();
    await this.#generate(clusters);
    for (const application of await this.list<Application>(APPLICATIONS)) await this.#process(application, clusters);
  }

  async #clusters(): Promise<Cluster[]> {
    const secrets = (await this.list<Secret>(SECRETS)).filter(
      ({ metadata }) =>
        metadata.namespace === 'argocd' && metadata.labels?.['argocd.argoproj.io/secret-type'] === 'cluster',
    );
    return secrets.map(({ metadata, data }) => {
      const { name = '', server = '', config = '{}' } = decodeSecret(data);
      const { bearerToken = '', tlsClientConfig = {} } = JSON.parse(config);
      return {
        name,
        server,
        token: bearerToken,
        ca: Buffer.from(tlsClientConfig.caData ?? '', 'base64').toString(),
        isSkipped: metadata.annotations?.[SKIP] === 'true',
        labels: metadata.labels ?? {},
      };
    });
  }

  /** The ApplicationSet controller: it does not heed skip-reconcile. */
  async #generate(clusters: readonly Cluster[]): Promise<void> {
    const wanted = new Map<string, KubeObject>();
    for (const [set, labels] of this.generators)
      for (const cluster of clusters)
        if (Object.entries(labels).every(([key, value]) => cluster.labels[key] === value)) {
          const name = `${cluster.name}-${set}`;
          wanted.set(name, application(name, { name: cluster.name }, { [GENERATED]: set }));
        }
    const have = await this.list<Application>(APPLICATIONS);
    for (const one of wanted.values())
      if (!have.some(({ metadata }) => metadata.name === one.metadata.name))
        await this.client.create(one, { resource: APPLICATIONS });
    for (const { metadata } of have)
      if (metadata.labels?.[GENERATED] && !wanted.has(metadata.name) && !metadata.deletionTimestamp)
        await this.client.delete(APPLICATIONS, metadata.name, metadata.namespace);
  }

  async #process({ metadata, spec }: Application, clusters: readonly Cluster[]): Promise<void> {
    const { destination } = spec;
    const found = clusters.filter(({ name, server }) =>
      destination.server ? server === destination.server : name === destination.name,
    );
    const cluster = found.length === 1 ? found[0] : undefined;
    if (cluster?.isSkipped) return;
    try {
      if (!metadata.deletionTimestamp) {
        if (cluster) await this.deployed.apply(cluster, metadata.name);
        return;
      }
      if (cluster) await this.deployed.prune(cluster, metadata.name);
    } catch (error) {
      // The next one is seen to all the same.
      this.failure = error;
      return;
    }
    await this.client.mergePatch(APPLICATIONS, metadata.name, metadata.namespace, { metadata: { finalizers: null } });
  }
}

/** An Application that takes what it deployed with it. */
export const application = (
  name: string,
  destination: Application['spec']['destination'],
  labels: Record<string, string> = {},
): KubeObject => ({
  apiVersion: 'argoproj.io/v1alpha1',
  kind: 'Application',
  metadata: { name, namespace: 'argocd', labels, finalizers: [RESOURCES] },
  spec: {
    project: 'default',
    destination: { ...destination, namespace: 'default' },
    source: { repoURL: 'https://git.example.com/shop', path: 'web' },
  },
});
