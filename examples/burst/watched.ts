// Part of the example in scheduler.ts: the hub and its members, as they are watched.
import { KubeClient } from '../../operator/kube/client.ts';
import { Informer } from '../../operator/kube/informer.ts';
import * as kube from '../../operator/kube/resources.ts';

const ANSWER_MS = 10_000;

/** An API server, and what is watched there. */
export class Watched {
  readonly client: KubeClient;
  readonly #caches: Map<kube.Resource, Informer<any>>;

  constructor(client: KubeClient, kinds: readonly kube.Resource[], changed: () => void, namespace?: string) {
    this.client = client;
    this.#caches = new Map(kinds.map((kind) => [kind, new Informer(client, kind, { namespace })]));
    for (const cache of this.#caches.values()) {
      cache.onAnyChange(changed);
      cache.start();
    }
  }

  /** All of the kind that there are now; throws while the API server does not answer. */
  async list<T extends kube.KubeObject>(kind: kube.Resource): Promise<T[]> {
    const cache = this.#caches.get(kind)!;
    await cache.whenSynced(AbortSignal.timeout(ANSWER_MS)).catch((error) => {
      throw cache.lastError ?? error;
    });
    if (cache.lastError) throw cache.lastError;
    return cache.list();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#caches.values()].map((cache) => cache.stop()));
    await this.client.close();
  }
}

/** The members that are watched: those that are asked now. */
export class Members {
  readonly #watched = new Map<string, { readonly kubeconfig: string; readonly member: Watched }>();
  readonly #hub: KubeClient;
  readonly #changed: () => void;

  constructor(hub: KubeClient, changed: () => void) {
    this.#hub = hub;
    this.#changed = changed;
  }

  async of(profile: kube.KubeObject): Promise<Watched> {
    const { name } = profile.metadata;
    const kubeconfig = await kubeconfigOf(this.#hub, profile);
    const known = this.#watched.get(name);
    if (known?.kubeconfig === kubeconfig) return known.member;
    await known?.member.close();
    const kinds = [kube.NODES, kube.PODS, kube.DEPLOYMENTS];
    const member = new Watched(KubeClient.fromKubeconfig(kubeconfig), kinds, this.#changed);
    this.#watched.set(name, { kubeconfig, member });
    return member;
  }

  /** Of all others nothing is watched any more. */
  async keep(profiles: readonly kube.KubeObject[]): Promise<void> {
    for (const [name, { member }] of this.#watched) {
      if (profiles.some(({ metadata }) => metadata.name === name)) continue;
      this.#watched.delete(name);
      await member.close();
    }
  }
}

/** The kubeconfig of a member, by its access provider `kubeconfig-secretreader`, which names a Secret. */
async function kubeconfigOf(hub: KubeClient, { metadata, status }: kube.KubeObject): Promise<string> {
  const providers = (status?.accessProviders ?? []) as {
    name: string;
    cluster: { extensions: { extension: Record<string, string> }[] };
  }[];
  const config = providers.find(({ name }) => name === 'kubeconfig-secretreader')?.cluster.extensions[0]?.extension;
  if (!config) throw new Error(`ClusterProfile ${metadata.name} has no access provider kubeconfig-secretreader`);
  const secret = await hub.get<kube.Secret>(kube.SECRETS, config.name!, config.namespace);
  return Buffer.from(secret.data?.[config.key!] ?? '', 'base64').toString();
}
