import { errorText } from '../../api/errors.ts';
import { LABELS } from '../../api/group.ts';
import type { Hub } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import { KUBECONFIG_KEY, kubeconfigSecretName } from '../../api/names.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { seedIdentityOf } from '../../clusters/seed-access.ts';
import { kindsWritten } from '../../hubs/index.ts';
import { KubeClient } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import { silent } from '../../kube/log.ts';
import {
  decodeSecret,
  HUBS,
  type KubeObject,
  keyOf,
  MEMBERSHIPS,
  type Resource,
  SECRETS,
  type Secret,
  WORKERCLUSTERS,
} from '../../kube/resources.ts';
import { HubConnections } from './hub-connections.ts';
import { type GardenObjects, type LabelledObject, type LeftOver, leftOvers } from './left-overs.ts';
import { receiptsIn } from './receipt.ts';

const ANSWER_MS = 15_000;
const AT_ONCE = 8;

/** An inspected API server. */
export interface LookedAt {
  readonly on: LabelledObject['on'];
  readonly where: string;
  readonly identity: string;
  readonly client: KubeClient;
}

/** Result of an audit. */
export interface Audit {
  readonly leftOvers: readonly LeftOver[];
  /** Places that could not be read, with reasons: sentences. */
  readonly gaps: readonly string[];
  readonly knows: GardenObjects;
  /** By `where`. */
  readonly lookedAt: ReadonlyMap<string, LookedAt>;
}

/** Finds leftovers of deleted memberships in the garden, all hubs and all clusters. Writes nothing. */
export class HubAudit {
  readonly #garden: KubeClient;
  readonly #namespace: string;
  readonly #connections: HubConnections;
  #clients: KubeClient[] = [];

  /** @param namespace the operator's, with kubeconfigs of hubs and receipts of memberships */
  constructor(garden: KubeClient, namespace: string) {
    this.#garden = garden;
    this.#namespace = namespace;
    this.#connections = new HubConnections(garden, namespace, silent, () => {});
  }

  async look(signal: AbortSignal): Promise<Audit> {
    const gaps: string[] = [];
    const [hubs, clusters] = await Promise.all([
      this.#garden.list<Hub>(HUBS, { signal }),
      this.#garden.list<WorkerCluster>(WORKERCLUSTERS, { signal }),
    ]);
    const garden = await seedIdentityOf(this.#garden, signal);
    const lookedAt = [
      ...(await this.#hubs(garden, hubs.items, gaps, signal)),
      ...(await this.#members(clusters.items, gaps, signal)),
    ];
    const sightings: LabelledObject[] = [];
    await each(lookedAt, async (side) => {
      sightings.push(...(await this.#sightings(side, gaps, signal)));
    });
    const knows = await this.#knows(garden, signal);
    return {
      leftOvers: leftOvers(sightings, knows),
      gaps,
      knows,
      lookedAt: new Map(lookedAt.map((side) => [side.where, side])),
    };
  }

  async close(): Promise<void> {
    await this.#connections.closeAll();
    await Promise.all(this.#clients.splice(0).map((client) => client.close()));
  }

  /** The garden is always included: leftovers of a deleted Hub may be there. */
  async #hubs(garden: string, hubs: readonly Hub[], gaps: string[], signal: AbortSignal): Promise<LookedAt[]> {
    const found = new Map<string, LookedAt & { readonly names: string[] }>();
    const add = (identity: string, client: KubeClient, name?: string) => {
      const known = found.get(identity) ?? { on: 'hub', where: '', identity, client, names: [] };
      if (name) known.names.push(name);
      found.set(identity, known);
    };
    for (const { metadata, spec, status } of hubs) {
      try {
        const within = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
        const { identity, client } = await this.#connections.open(metadata.name, spec, status?.clusterIdentity, within);
        add(identity, client, metadata.name);
      } catch (error) {
        signal.throwIfAborted();
        gaps.push(`Hub ${metadata.name}: ${errorText(error)}`);
      }
    }
    if (!found.has(garden)) add(garden, this.#garden);
    return [...found.values()].map(({ names, ...side }) => ({
      ...side,
      where: names.length > 0 ? `Hub ${names.join(', ')}` : 'the garden',
    }));
  }

  async #members(clusters: readonly WorkerCluster[], gaps: string[], signal: AbortSignal): Promise<LookedAt[]> {
    const found: LookedAt[] = [];
    await each(clusters, async (cluster) => {
      const where = `cluster ${keyOf(cluster)}`;
      try {
        const client = await this.#open(cluster, where, signal);
        // A cluster that nobody ever reached has no leftovers.
        if (!client) return;
        const identity = await seedIdentityOf(client, AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]));
        const pinned = cluster.status?.clusterIdentity;
        if (pinned && pinned !== identity)
          throw new Error(`its kubeconfig points to another cluster (UID of kube-system ${identity}, not ${pinned})`);
        found.push({ on: 'member', where, identity, client });
      } catch (error) {
        signal.throwIfAborted();
        gaps.push(`${where}: ${errorText(error)}`);
      }
    });
    return found;
  }

  async #open(
    { metadata, status }: WorkerCluster,
    where: string,
    signal: AbortSignal,
  ): Promise<KubeClient | undefined> {
    const { name = kubeconfigSecretName(metadata.name), key = KUBECONFIG_KEY } = status?.kubeconfigRef ?? {};
    const secret = await this.#garden.getOrUndefined<Secret>(SECRETS, name, metadata.namespace, { signal });
    const text = decodeSecret(secret?.data)[key];
    if (!text) return undefined;
    const client = KubeClient.fromKubeconfig(text, undefined, { source: `the kubeconfig of ${where}` });
    this.#clients.push(client);
    // Tenants write the kubeconfig: connect from an administrator's machine only where the operator has connected.
    if (status?.mode === 'Attached' && status.endpoint !== client.server)
      throw new Error(`its kubeconfig points to ${client.server}, to which the operator has not connected yet`);
    return client;
  }

  async #sightings(side: LookedAt, gaps: string[], signal: AbortSignal): Promise<LabelledObject[]> {
    const { client, ...rest } = side;
    const found: LabelledObject[] = [];
    // The garden may be a hub's member too.
    const kinds = new Set([...kindsWritten(side.on), ...(side.on === 'hub' ? kindsWritten('member') : [])]);
    for (const resource of kinds) {
      try {
        const objects = await bearing(client, resource, AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]));
        found.push(...objects.map((object) => ({ ...rest, resource, object })));
      } catch (error) {
        signal.throwIfAborted();
        gaps.push(`${resource.plural} of ${side.where}: ${errorText(error)}`);
      }
    }
    return found;
  }

  async #knows(garden: string, signal: AbortSignal): Promise<GardenObjects> {
    const [hubs, memberships, clusters, receipts] = await Promise.all([
      this.#garden.list<Hub>(HUBS, { signal }),
      this.#garden.list<Membership>(MEMBERSHIPS, { signal }),
      this.#garden.list<WorkerCluster>(WORKERCLUSTERS, { signal }),
      receiptsIn(this.#garden, this.#namespace, signal),
    ]);
    return { garden, hubs: hubs.items, memberships: memberships.items, clusters: clusters.items, receipts };
  }
}

async function bearing(client: KubeClient, resource: Resource, signal: AbortSignal): Promise<KubeObject[]> {
  try {
    const { items } = await client.list(resource, {
      labelSelector: LABELS.membership,
      transform: onlyMetadata,
      signal,
    });
    return items;
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}

/** Drops content: Secrets contain members' tokens. */
const onlyMetadata = ({ apiVersion, kind, metadata }: KubeObject): KubeObject => ({ apiVersion, kind, metadata });

async function each<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += AT_ONCE) await Promise.all(items.slice(at, at + AT_ONCE).map(run));
}
