import type { BurstPolicy } from '../../operator/api/burstpolicy.ts';
import { ALPHA_API_VERSION } from '../../operator/api/group.ts';
import type { Membership } from '../../operator/api/membership.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import { CLUSTERPROFILES } from '../../operator/hubs/cluster-profile.ts';
import { type Informer, waitFor } from '../../operator/kube/informer.ts';
import { BURSTPOLICIES, HUBS, MEMBERSHIPS, NAMESPACES, WORKERCLUSTERS } from '../../operator/kube/resources.ts';
import { follow, gardenClient } from './garden.ts';

/** Name of the policy, with which names of its clusters begin. */
export const POLICY = 'peak';
/** Namespace of the work and of ClusterProfiles. */
export const fleetOf = (name: string): string => `${name}-fleet`;

interface Caches {
  readonly clusters: Informer<WorkerCluster>;
  readonly memberships: Informer<Membership>;
  readonly profiles: Informer;
  readonly policies: Informer<BurstPolicy>;
}

/** Makes in the shared garden, under one name, a Hub of type ClusterProfile and the namespace of its clusters; and the one of the work. */
export async function makeFleet(name: string): Promise<Caches> {
  const client = gardenClient();
  const fleet = fleetOf(name);
  for (const one of [fleet, name])
    await client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: one } });
  await client.create({
    apiVersion: ALPHA_API_VERSION,
    kind: 'Hub',
    metadata: { name },
    spec: {
      type: 'ClusterProfile',
      allowedNamespaces: [name],
      clusterProfile: { namespace: fleet, rights: 'Manage' },
    },
  });
  return {
    clusters: await follow<WorkerCluster>(client, WORKERCLUSTERS),
    memberships: await follow<Membership>(client, MEMBERSHIPS),
    profiles: await follow(client, CLUSTERPROFILES, { namespace: fleet }),
    policies: await follow<BurstPolicy>(client, BURSTPOLICIES, { namespace: name }),
  };
}

/** A policy for the Hub of makeFleet, and what becomes of its clusters. */
export class BurstInGarden {
  readonly name: string;
  readonly clusters: Informer<WorkerCluster>;
  readonly memberships: Informer<Membership>;
  readonly profiles: Informer;
  readonly policies: Informer<BurstPolicy>;
  readonly #patienceMs: number;
  readonly #more: readonly Informer[];

  /** @param more is watched as well while something is waited for */
  constructor(name: string, caches: Caches, patienceMs: number, more: readonly Informer[] = []) {
    this.name = name;
    this.clusters = caches.clusters;
    this.memberships = caches.memberships;
    this.profiles = caches.profiles;
    this.policies = caches.policies;
    this.#patienceMs = patienceMs;
    this.#more = more;
  }

  async makePolicy(spec: object): Promise<void> {
    const times = { scaleIn: { idleFor: '2s', minimumLife: '1s' }, cooldown: { scaleOut: '1s', scaleIn: '1s' } };
    await gardenClient().create({
      apiVersion: ALPHA_API_VERSION,
      kind: 'BurstPolicy',
      metadata: { name: POLICY, namespace: this.name },
      spec: { hub: this.name, ...times, ...spec },
    });
  }

  async until<R>(what: string, predicate: () => R | undefined | false): Promise<R> {
    const { policies, clusters, memberships, profiles } = this;
    return waitFor([policies, clusters, memberships, profiles, ...this.#more], predicate, {
      timeoutMs: this.#patienceMs,
      what: () => `${what}: ${JSON.stringify(this.shown(), undefined, 1)}`,
    });
  }

  /** What is printed when it was waited for in vain. */
  protected shown(): unknown[] {
    return [this.policies, this.clusters, this.memberships].flatMap((cache) => cache.list() as unknown[]);
  }

  of(candidate: string): WorkerCluster | undefined {
    return this.clusters.list().find(({ metadata: { name } }) => name.startsWith(`${POLICY}-${candidate}-`));
  }

  membership(candidate: string): Membership | undefined {
    return this.memberships.list().find(({ spec }) => spec.cluster.startsWith(`${POLICY}-${candidate}-`));
  }

  /** Takes all of it away: the policy gives its clusters back first. */
  async end(): Promise<void> {
    const client = gardenClient();
    await client.delete(BURSTPOLICIES, POLICY, this.name);
    const isLeft = () => this.clusters.list().some(({ metadata }) => metadata.namespace === this.name);
    await this.until(
      'the policy to go, and all to be given back',
      () => this.policies.size === 0 && this.profiles.size === 0 && !isLeft(),
    );
    await client.delete(HUBS, this.name);
    const names = [fleetOf(this.name), this.name];
    for (const one of names) await client.delete(NAMESPACES, one);
    const namespaces = await follow(client, NAMESPACES);
    await namespaces.waitFor(() => names.every((one) => !namespaces.get(one)), {
      timeoutMs: this.#patienceMs,
      what: 'namespaces to go',
    });
  }
}
