import { configurationProblem } from '../api/errors.ts';
import { LABELS } from '../api/group.ts';
import { type Seed, seedKubeconfigRef } from '../api/seed.ts';
import { Applier, knownBy } from '../kube/applier.ts';
import { KubeClient } from '../kube/client.ts';
import { unlessAborted } from '../kube/clock.ts';
import { isTransient } from '../kube/errors.ts';
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
import { ensureControlPlanePriority } from './control-plane-priority.ts';
import type { Resolve } from './host-addresses.ts';
import { SeedAddresses } from './seed-addresses.ts';

/** The shoot (`namespace/name` in the garden) that an object in a seed belongs to, by its labels. */
function shootOf(object: KubeObject): string | undefined {
  const labels = object.metadata.labels;
  const name = labels?.[LABELS.shoot];
  const namespace = labels?.[LABELS.shootNamespace];
  return name && namespace ? `${namespace}/${name}` : undefined;
}

const namesAddresses = ({ spec }: NetworkPolicy): boolean =>
  spec.egress?.some(({ to }) => to?.some(({ ipBlock }) => ipBlock?.except !== undefined)) ?? false;

const BY_SHOOT = 'shoot';
/** A seed that has not shown what it holds by then counts as unreachable, and is tried again. */
const SYNC_TIMEOUT_MS = 60_000;

/** One seed as the controllers see it: a client, caches of what belongs to shoots there, and writes that skip no-ops. */
export class SeedAccess {
  readonly name: string;
  /** UID of its namespace kube-system: which cluster it is, whatever its address. */
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
  /** The way to pods of a seed that is another cluster. */
  readonly dialPod: PodDialer | undefined;
  /** Another cluster than the garden's: it, and what it exposes, may be reached by a proxy alone. */
  readonly isElsewhere: boolean;
  /** Whether it has the PriorityClass of control planes. */
  hasControlPlanePriority: boolean;
  readonly #log: Log;
  readonly #byKind: ReadonlyMap<string, Informer<any>>;
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
    }: {
      name: string;
      identity: string;
      client: KubeClient;
      dialPod?: PodDialer | undefined;
      isElsewhere?: boolean;
      hasControlPlanePriority?: boolean;
      /** Stands in for name servers in tests. */
      resolve?: Resolve;
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
    // Only what belongs to a shoot: a seed may run much else.
    const options = {
      labelSelector: LABELS.shoot,
      indexes: { [BY_SHOOT]: (o: KubeObject) => [shootOf(o) ?? ''] },
      log,
    };
    const failed = (error: unknown) => {
      // A watch whose resource version is too old is no outage.
      if (isTransient(error)) this.#awayAt = new Date();
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
      // Shoots whose policies name addresses: others have nothing to change.
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

  /** Resolves when all caches hold what the seed had when they were started. */
  async start(signal: AbortSignal): Promise<void> {
    const caches = [...this.#byKind.values()];
    for (const cache of caches) cache.start();
    await Promise.all([this.addresses.start(signal), ...caches.map((cache) => cache.whenSynced(signal))]);
  }

  /** When its API server was last known not to answer. Absent: not since it was opened. */
  get awayAt(): Date | undefined {
    return this.#awayAt;
  }

  /** Makes the PriorityClass of control planes again where somebody has deleted it: no pod that names it could start. */
  async keepControlPlanePriority(signal: AbortSignal): Promise<void> {
    this.hasControlPlanePriority = await ensureControlPlanePriority(this.client, this.#log, signal);
  }

  podsOf(shootKey: string): Pod[] {
    return this.pods.byIndex(BY_SHOOT, shootKey);
  }

  deploymentsOf(shootKey: string): Deployment[] {
    return this.deployments.byIndex(BY_SHOOT, shootKey);
  }

  /** Shoots that something here belongs to, whether or not the garden still knows them. */
  namespacesOf(shootKey: string): KubeObject[] {
    return this.namespaces.byIndex(BY_SHOOT, shootKey);
  }

  async stop(): Promise<void> {
    await Promise.all([this.addresses.stop(), ...[...this.#byKind.values()].map((cache) => cache.stop())]);
  }
}

/** UID of the namespace kube-system of a cluster, which lives as long as it does. Throws what the API server says against it. */
export async function identityOf(client: KubeClient, signal: AbortSignal): Promise<string> {
  const { metadata } = await client.get(NAMESPACES, 'kube-system', undefined, { signal });
  return metadata.uid ?? '';
}

/**
 * Throws where a cluster is not the one that the Seed was first seen to be: by a kubeconfig that was exchanged, control planes would be
 * made a second time there, and taken for gone here.
 */
export function refuseOther({ metadata, status }: Seed, identity: string): void {
  const pinned = status?.clusterIdentity;
  if (pinned === undefined || pinned === identity) return;
  throw configurationProblem(
    `the kubeconfig of Seed ${metadata.name} points to another cluster (UID of kube-system ${identity}, not ${pinned}): nothing is made or deleted there`,
    'Put back a kubeconfig of the right cluster; for another cluster, make another Seed.',
  );
}

/** A seed that is being opened, for as many as wait for it. */
interface Opening {
  readonly access: Promise<SeedAccess>;
  readonly abort: AbortController;
}

/** The seeds that are reachable, made from Seed objects; a Seed without kubeconfigRef is the garden itself. */
export class SeedRegistry {
  readonly #seeds = new Map<string, { access: SeedAccess; credentials: string }>();
  readonly #opening = new Map<string, Opening>();
  readonly #garden: KubeClient;
  readonly #dialInGarden: PodDialer | undefined;
  readonly #log: Log;
  readonly #listeners = new Set<(shootKey: string, object: KubeObject) => void>();

  /** @param dialInGarden the way to pods of a garden that is its own seed, where its Services cannot be reached */
  constructor(garden: KubeClient, log: Log, dialInGarden?: PodDialer) {
    this.#garden = garden;
    this.#dialInGarden = dialInGarden;
    this.#log = log;
  }

  /** The listener hears of every change of what belongs to a shoot, in any seed. */
  onChange(listener: (shootKey: string, object: KubeObject) => void): void {
    this.#listeners.add(listener);
  }

  /**
   * The access to the seed, made if needed, and made anew when its credentials changed. Rejects when it cannot be reached, and when it is
   * another cluster than the Seed was before.
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

  /** Many shoots ask at once after a start: the seed is opened for all of them, also when the first one has been changed meanwhile. */
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
      const identity = await identityOf(client, signal);
      // Before anything of it is looked at: what is missing in another cluster has not gone.
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
