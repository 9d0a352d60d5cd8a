import { configurationProblem } from '../api/errors.ts';
import { LABELS } from '../api/group.ts';
import { type Seed, seedKubeconfigRef } from '../api/seed.ts';
import { Applier, knownBy } from '../kube/applier.ts';
import { KubeClient } from '../kube/client.ts';
import { type Clock, unlessAborted } from '../kube/clock.ts';
import { isTransient, KubeApiError } from '../kube/errors.ts';
import { Informer } from '../kube/informer.ts';
import type { Log } from '../kube/log.ts';
import type { NetworkPolicy } from '../kube/network-policy.ts';
import { type PodDialer, podDialer } from '../kube/pod-tunnel.ts';
import {
  CONFIGMAPS,
  DEPLOYMENTS,
  type Deployment,
  type KubeObject,
  NAMESPACES,
  NETWORKPOLICIES,
  PODS,
  type Pod,
  SECRETS,
  SERVICES,
  type Secret,
  type Service,
  STATEFULSETS,
  type StatefulSet,
} from '../kube/resources.ts';
import { ConnectionHealth } from './connection-health.ts';
import { ensureControlPlanePriority } from './control-plane-priority.ts';
import type { Resolve } from './host-addresses.ts';
import { SeedAddresses } from './seed-addresses.ts';

/** The shoot (`namespace/name` in the garden) that an object in a seed belongs to, by labels. */
function shootOf(object: KubeObject): string | undefined {
  const labels = object.metadata.labels;
  const name = labels?.[LABELS.shoot];
  const namespace = labels?.[LABELS.shootNamespace];
  return name && namespace ? `${namespace}/${name}` : undefined;
}

const namesAddresses = ({ spec }: NetworkPolicy): boolean =>
  spec.egress?.some(({ to }) => to?.some(({ ipBlock }) => ipBlock?.except !== undefined)) ?? false;

const BY_SHOOT = 'shoot';
/** A seed whose caches are not synced after this time counts as unreachable and is retried. */
const SYNC_TIMEOUT_MS = 60_000;
/** Time for the API server of a seed to answer one question. */
const ASK_MS = 3_000;

/** A seed's client, caches of objects that belong to shoots, and writes that skip no-ops. */
export class SeedAccess {
  readonly name: string;
  /** UID of the namespace kube-system: identifies the cluster, whatever its address. */
  readonly identity: string;
  readonly client: KubeClient;
  readonly applier: Applier;
  readonly pods: Informer<Pod>;
  readonly deployments: Informer<Deployment>;
  readonly statefulSets: Informer<StatefulSet>;
  readonly services: Informer<Service>;
  readonly secrets: Informer<Secret>;
  readonly configMaps: Informer<KubeObject>;
  readonly namespaces: Informer<KubeObject>;
  readonly networkPolicies: Informer<NetworkPolicy>;
  readonly addresses: SeedAddresses;
  /** Dials pods of a seed in another cluster. */
  readonly dialPod: PodDialer | undefined;
  /**
   * Whether the seed is another cluster than the garden: it and its exposed Services may be reachable through a proxy
   * only.
   */
  readonly isElsewhere: boolean;
  /** Whether the seed has the PriorityClass of control planes. */
  hasControlPlanePriority: boolean;
  readonly #log: Log;
  readonly #byKind: ReadonlyMap<string, Informer<any>>;
  readonly #health: ConnectionHealth;
  /** Start or end of the last outage. */
  #awayAt: Date | undefined;

  constructor(
    {
      name,
      identity,
      client,
      dialPod,
      isElsewhere = false,
      hasControlPlanePriority = false,
      resolve,
      clock,
    }: {
      name: string;
      identity: string;
      client: KubeClient;
      dialPod?: PodDialer | undefined;
      isElsewhere?: boolean;
      hasControlPlanePriority?: boolean;
      /** Stands in for name servers in tests. */
      resolve?: Resolve;
      /** Replaced in tests. */
      clock?: Clock;
    },
    log: Log,
    onChange: (shootKey: string, object: KubeObject) => void,
  ) {
    this.name = name;
    this.identity = identity;
    this.client = client;
    this.dialPod = dialPod;
    this.isElsewhere = isElsewhere;
    this.hasControlPlanePriority = hasControlPlanePriority;
    this.#log = log;
    // Only objects that belong to a shoot: a seed may run other workloads.
    const options = {
      labelSelector: LABELS.shoot,
      indexes: { [BY_SHOOT]: (o: KubeObject) => [shootOf(o) ?? ''] },
      log,
    };
    this.#health = new ConnectionHealth({
      ask: () => answers(client),
      told: () => {
        this.#awayAt = new Date();
      },
      ...(clock && { clock }),
    });
    const failed = (error: unknown) => {
      // An expired resource version is no outage, and one closed watch may be due to a proxy.
      if (isTransient(error)) this.#health.doubt();
    };
    this.pods = new Informer<Pod>(client, PODS, { ...options, failed });
    this.deployments = new Informer<Deployment>(client, DEPLOYMENTS, options);
    this.statefulSets = new Informer<StatefulSet>(client, STATEFULSETS, options);
    this.services = new Informer<Service>(client, SERVICES, options);
    this.secrets = new Informer<Secret>(client, SECRETS, options);
    this.configMaps = new Informer(client, CONFIGMAPS, options);
    this.namespaces = new Informer(client, NAMESPACES, options);
    this.networkPolicies = new Informer<NetworkPolicy>(client, NETWORKPOLICIES, options);
    this.#byKind = new Map<string, Informer<any>>([
      ['Pod', this.pods],
      ['Deployment', this.deployments],
      ['StatefulSet', this.statefulSets],
      ['Service', this.services],
      ['Secret', this.secrets],
      ['ConfigMap', this.configMaps],
      ['Namespace', this.namespaces],
      ['NetworkPolicy', this.networkPolicies],
    ]);
    const addressesChanged = () => {
      // Only shoots whose policies name addresses are affected.
      for (const policy of this.networkPolicies.list())
        if (namesAddresses(policy)) onChange(shootOf(policy) ?? '', policy);
    };
    this.addresses = new SeedAddresses(client, log, addressesChanged, resolve);
    this.applier = new Applier(client, (object) => knownBy(this.#byKind.get(object.kind), object));
    for (const informer of this.#byKind.values()) {
      informer.onChange((event) => {
        const shoot = shootOf(event.object);
        if (shoot) onChange(shoot, event.object);
      });
    }
  }

  /** Resolves when all caches are synced. */
  async start(signal: AbortSignal): Promise<void> {
    const caches = [...this.#byKind.values()];
    for (const cache of caches) cache.start();
    await Promise.all([this.addresses.start(signal), ...caches.map((cache) => cache.whenSynced(signal))]);
  }

  /** Last time when its API server did not answer for seconds. Absent: not since it was opened. */
  get awayAt(): Date | undefined {
    return this.#health.answers ? this.#awayAt : new Date();
  }

  /** Recreates the PriorityClass of control planes after a deletion: no pod that names it could be created. */
  async keepControlPlanePriority(signal: AbortSignal): Promise<void> {
    this.hasControlPlanePriority = await ensureControlPlanePriority(this.client, this.#log, signal);
  }

  podsOf(shootKey: string): Pod[] {
    return this.pods.byIndex(BY_SHOOT, shootKey);
  }

  deploymentsOf(shootKey: string): Deployment[] {
    return this.deployments.byIndex(BY_SHOOT, shootKey);
  }

  /** Namespaces of a shoot in this seed, whether or not the garden still has the shoot. */
  namespacesOf(shootKey: string): KubeObject[] {
    return this.namespaces.byIndex(BY_SHOOT, shootKey);
  }

  async stop(): Promise<void> {
    this.#health.stop();
    await Promise.all([this.addresses.stop(), ...[...this.#byKind.values()].map((cache) => cache.stop())]);
  }
}

/** UID of a cluster's namespace kube-system, which lives as long as the cluster. Throws the API server's error. */
export async function seedIdentityOf(client: KubeClient, signal: AbortSignal): Promise<string> {
  const { metadata } = await client.get(NAMESPACES, 'kube-system', undefined, { signal });
  return metadata.uid ?? '';
}

/** Whether an API server answers now. A refusal is an answer: the seed's credentials may not read /readyz. */
async function answers(client: KubeClient): Promise<boolean> {
  try {
    await seedIdentityOf(client, AbortSignal.timeout(ASK_MS));
    return true;
  } catch (error) {
    return error instanceof KubeApiError && !isTransient(error);
  }
}

/**
 * Throws when the cluster is not the one the Seed was first opened to: with an exchanged kubeconfig, control planes
 * would be created a second time there and counted as gone here.
 */
export function refuseOther({ metadata, status }: Seed, identity: string): void {
  const pinned = status?.clusterIdentity;
  if (pinned === undefined || pinned === identity) return;
  throw configurationProblem(
    `the kubeconfig of Seed ${metadata.name} points to another cluster (UID of kube-system ${identity}, not ${pinned}): nothing is made or deleted there`,
    'Put back a kubeconfig of the right cluster; for another cluster, make another Seed.',
  );
}

/** A seed that is being opened, shared by all waiting callers. */
interface Opening {
  readonly access: Promise<SeedAccess>;
  readonly abort: AbortController;
}

/** The open seeds, from Seed objects; a Seed without kubeconfigRef is the garden itself. */
export class SeedRegistry {
  readonly #seeds = new Map<string, { access: SeedAccess; credentials: string }>();
  readonly #opening = new Map<string, Opening>();
  readonly #garden: KubeClient;
  readonly #dialInGarden: PodDialer | undefined;
  readonly #log: Log;
  readonly #listeners = new Set<(shootKey: string, object: KubeObject) => void>();

  /** @param dialInGarden dials pods when the garden is its own seed and its Services are unreachable */
  constructor(garden: KubeClient, log: Log, dialInGarden?: PodDialer) {
    this.#garden = garden;
    this.#dialInGarden = dialInGarden;
    this.#log = log;
  }

  /** Calls the listener for each change of an object that belongs to a shoot, in any seed. */
  onChange(listener: (shootKey: string, object: KubeObject) => void): void {
    this.#listeners.add(listener);
  }

  /**
   * The access to the seed, opened if needed and reopened after a change of its credentials. Rejects when the seed is
   * unreachable, or is another cluster than before.
   */
  async open(seed: Seed, signal: AbortSignal): Promise<SeedAccess> {
    const name = seed.metadata.name;
    const credentials = await this.#credentials(seed);
    const known = this.#seeds.get(name);
    const access =
      known?.credentials === credentials
        ? known.access
        : await unlessAborted((this.#opening.get(name) ?? this.#begin(seed, credentials)).access, signal);
    refuseOther(seed, access.identity);
    return access;
  }

  /**
   * Many shoots ask at once after a start: the seed is opened once for all, also when the first shoot changed
   * meanwhile.
   */
  #begin(seed: Seed, credentials: string): Opening {
    const { name } = seed.metadata;
    const abort = new AbortController();
    const opening: Opening = {
      abort,
      access: this.#open(seed, credentials, abort.signal).finally(() => {
        if (this.#opening.get(name) === opening) this.#opening.delete(name);
      }),
    };
    this.#opening.set(name, opening);
    return opening;
  }

  async #open(seed: Seed, credentials: string, stopped: AbortSignal): Promise<SeedAccess> {
    const { name } = seed.metadata;
    await this.#closeOpen(name);
    const signal = AbortSignal.any([stopped, AbortSignal.timeout(SYNC_TIMEOUT_MS)]);
    const client =
      credentials === ''
        ? this.#garden
        : KubeClient.fromAdministratorsKubeconfig(credentials, `the kubeconfig of seed ${name}`);
    const dialPod = credentials === '' ? this.#dialInGarden : podDialer(credentials);
    let access: SeedAccess | undefined;
    try {
      const identity = await seedIdentityOf(client, signal);
      // Checked before anything is read: objects missing from another cluster are not gone.
      refuseOther(seed, identity);
      const hasControlPlanePriority = await ensureControlPlanePriority(client, this.#log, signal);
      access = new SeedAccess(
        { name, identity, client, dialPod, isElsewhere: credentials !== '', hasControlPlanePriority },
        this.#log,
        (shootKey, object) => {
          for (const listener of this.#listeners) listener(shootKey, object);
        },
      );
      await access.start(signal);
    } catch (error) {
      await access?.stop();
      if (credentials !== '') await client.close();
      throw error;
    }
    this.#seeds.set(name, { access, credentials });
    return access;
  }

  get(name: string | undefined): SeedAccess | undefined {
    return name === undefined ? undefined : this.#seeds.get(name)?.access;
  }

  all(): SeedAccess[] {
    return [...this.#seeds.values()].map(({ access }) => access);
  }

  async close(name: string): Promise<void> {
    const opening = this.#opening.get(name);
    this.#opening.delete(name);
    opening?.abort.abort(new Error(`seed ${name} is not wanted any more`));
    await opening?.access.catch(() => {});
    await this.#closeOpen(name);
  }

  async #closeOpen(name: string): Promise<void> {
    const known = this.#seeds.get(name);
    if (!known) return;
    this.#seeds.delete(name);
    await known.access.stop();
    if (known.credentials !== '') await known.access.client.close();
  }

  async closeAll(): Promise<void> {
    for (const name of [...this.#opening.keys(), ...this.#seeds.keys()]) await this.close(name);
  }

  async #credentials(seed: Seed): Promise<string> {
    const ref = seedKubeconfigRef(seed);
    if (!ref) return '';
    const secret = await this.#garden.get<Secret>(SECRETS, ref.name, ref.namespace);
    const kubeconfig = secret.data?.kubeconfig ?? secret.data?.value;
    if (!kubeconfig) throw new Error(`Secret ${ref.namespace}/${ref.name} has no key kubeconfig`);
    return Buffer.from(kubeconfig, 'base64').toString();
  }
}
