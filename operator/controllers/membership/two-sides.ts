import { isDeepStrictEqual } from 'node:util';
import { setCondition } from '../../api/conditions.ts';
import { notYetConfigured } from '../../api/errors.ts';
import { FIELD_MANAGER } from '../../api/group.ts';
import type { Condition } from '../../api/meta.ts';
import type { Place, Reader, Side, Touch, Trace, WantedObject } from '../../hubs/contract.ts';
import { Applier, includesFields } from '../../kube/applier.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isNotFound, KubeApiError } from '../../kube/errors.ts';
import { type KubeObject, keyOf, type Resource } from '../../kube/resources.ts';
import { isMadeFor, isMadeForEarlier, labelledOwnerOf, type MadeFor, ownerLabels } from './ownership.ts';

/** Read access to a cluster for a hub's code. */
export function readerOf(client: KubeClient, signal: AbortSignal): Reader {
  return {
    get: (resource, name, namespace) => client.getOrUndefined(resource, name, namespace, { signal }),
    async list(resource, options = {}) {
      try {
        return (await client.list(resource, { ...options, signal })).items;
      } catch (error) {
        if (isNotFound(error)) return [];
        throw error;
      }
    },
    serves: (resource) => serves(client, resource, signal),
  };
}

async function serves(client: KubeClient, { group, version, plural }: Resource, signal: AbortSignal): Promise<boolean> {
  const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  try {
    const { resources = [] } = await client.request<{ resources?: { name: string }[] }>('GET', path, { signal });
    return resources.some(({ name }) => name === plural);
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

/** API servers of a membership. `member` absent: it does not answer. */
type Clients = { readonly hub: KubeClient; readonly member?: KubeClient | undefined };

/** Writes and deletes a membership's objects in hub and cluster: only labelled ones, and only differences. */
export class TwoSides {
  readonly #clients: Clients;
  readonly #owner: MadeFor;
  readonly #now: () => Date;
  readonly #takesBack: boolean;
  readonly #uids = new Map<string, string>();

  /** @param takesBack whether `apply` takes over objects of an earlier membership. Absent: no */
  constructor(clients: Clients, owner: MadeFor, now: () => Date, takesBack = false) {
    this.#clients = clients;
    this.#takesBack = takesBack;
    this.#owner = owner;
    this.#now = now;
  }

  has(side: Side): boolean {
    return this.#clients[side] !== undefined;
  }

  client(side: Side): KubeClient {
    const client = this.#clients[side];
    if (!client) throw new Error(`the ${side} does not answer`);
    return client;
  }

  /** UID of the applied object; undefined: not applied yet. */
  uidOf(place: Place): string | undefined {
    return this.#uids.get(textOf(place));
  }

  /** Like apply for shared or existing own objects: a missing or terminating one is not recreated. */
  async change(wanted: WantedObject, signal: AbortSignal): Promise<boolean> {
    if (wanted.shared) return this.apply(wanted, signal);
    const { name, namespace } = wanted.object.metadata;
    const live = await this.client(wanted.on).getOrUndefined(wanted.resource, name, namespace, { signal });
    return live && !live.metadata.deletionTimestamp && this.isOurs(live) ? this.apply(wanted, signal) : false;
  }

  /**
   * @returns whether something was written, or must be checked again. Throws when an object of that name belongs to
   * somebody else.
   */
  async apply(wanted: WantedObject, signal: AbortSignal): Promise<boolean> {
    const { on, resource, object, status, shared, subresource, basedOn } = wanted;
    const client = this.client(on);
    const { name, namespace } = object.metadata;
    const live = await client.getOrUndefined(resource, name, namespace, { signal });
    if (subresource) {
      if (!live || includesFields(live, { ...object, metadata: {} })) return false;
      await client.apply(object, { resource, subresource, fieldManager: FIELD_MANAGER, signal });
      return true;
    }
    if (shared) return this.#applyShared(client, wanted, live, signal);
    const isTakenBack = live !== undefined && this.#takesBack && isMadeForEarlier(live, this.#owner);
    if (live && !isTakenBack && !this.isOurs(live)) {
      throw notYetConfigured(
        `${object.kind} ${keyOf(object)} ${on === 'hub' ? 'of the hub' : 'of the cluster'} was not made for this membership`,
        'Find out whose it is. Delete it or rename it, and the cluster joins.',
      );
    }
    // A finalizer may block its deletion for ever: writing to it would repeat. It is recreated once gone.
    if (live?.metadata.deletionTimestamp) return false;
    if (basedOn !== undefined && live && live.metadata.resourceVersion !== basedOn) return true;
    const labels = { ...object.metadata.labels, ...ownerLabels(this.#owner) };
    const labelled = { ...object, metadata: { ...object.metadata, labels } };
    const applier = new Applier(client, () => ({ live }));
    const { object: written, changed } = await applier.apply(labelled, signal, resource);
    this.#uids.set(textOf({ on, resource, name, ...(namespace && { namespace }) }), written.metadata.uid ?? '');
    if (!status) return changed;
    return (await this.#applyStatus(client, { ...wanted, object: written }, status, signal)) || changed;
  }

  async #applyShared(
    client: KubeClient,
    { object, resource }: WantedObject,
    live: KubeObject | undefined,
    signal: AbortSignal,
  ) {
    const { resourceVersion } = object.metadata;
    if (live && !resourceVersion) return false;
    if (resourceVersion) {
      // No mark on foreign objects: only the wanted fields are written.
      const written = await client.apply(object, { resource, force: true, fieldManager: FIELD_MANAGER, signal });
      return written.metadata.resourceVersion !== resourceVersion;
    }
    const applier = new Applier(client, () => ({ live }));
    return (await applier.apply(object, signal, resource)).changed;
  }

  async #applyStatus(
    client: KubeClient,
    { object, resource }: WantedObject,
    status: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const live = (object.status ?? {}) as Record<string, unknown>;
    const before = (live.conditions ?? []) as Condition[];
    let conditions: Condition[] = [];
    for (const condition of (status.conditions ?? []) as Condition[]) {
      const old = before.find(({ type }) => type === condition.type);
      conditions = [...conditions, ...setCondition(old ? [old] : [], condition, this.#now())];
    }
    const wanted = { ...status, ...(conditions.length > 0 && { conditions }) };
    const isSaid = Object.entries(wanted).every(([field, value]) =>
      isDeepStrictEqual(sorted(live[field]), sorted(value)),
    );
    if (isSaid) return false;
    const { apiVersion, kind } = object;
    const { name, namespace } = object.metadata;
    await client.apply(
      { apiVersion, kind, metadata: { name, ...(namespace && { namespace }) }, status: wanted },
      { resource, subresource: 'status', fieldManager: FIELD_MANAGER, signal },
    );
    return true;
  }

  /** Changes one field of a foreign object if it still exists. */
  async touch({ on, resource, namespace, name, uid, patch }: Touch, signal: AbortSignal): Promise<void> {
    const whole = { ...patch, metadata: { ...(patch.metadata as object | undefined), uid } };
    await this.client(on).mergePatch(resource, name, namespace, whole, { signal }).catch(ignoreGone);
  }

  /** Labels a foreign object as ours, if it has this UID and no membership. */
  async takeOver(place: Place, uid: string, signal: AbortSignal): Promise<void> {
    const { on, resource, namespace, name } = place;
    const client = this.client(on);
    const live = await client.getOrUndefined(resource, name, namespace, { signal });
    if (live?.metadata.uid !== uid || labelledOwnerOf(live) !== undefined) return;
    const { resourceVersion } = live.metadata;
    const metadata = { uid, resourceVersion, labels: ownerLabels(this.#owner) };
    await client.mergePatch(resource, name, namespace, { metadata }, { signal });
  }

  /** Deletes an object of ours, or a trace of the hub. @returns what blocks that; undefined: it is gone */
  async remove(
    place: Place & Partial<Pick<Trace, 'labels'>>,
    force: boolean,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { on, resource, namespace, name } = place;
    const live = await this.client(on).getOrUndefined(resource, name, namespace, { signal });
    return live && this.#isToGo(live, place) ? this.#end(on, resource, live, force, signal) : undefined;
  }

  /**
   * Deletes all objects of a kind in a terminating namespace including finalizers, because their controllers are gone.
   * Does nothing for another state or owner.
   */
  async empty(
    namespace: Place & Partial<Pick<Trace, 'labels'>>,
    resource: Resource,
    signal: AbortSignal,
  ): Promise<void> {
    const { on, name } = namespace;
    const live = await this.client(on).getOrUndefined(namespace.resource, name, undefined, { signal });
    if (!live?.metadata.deletionTimestamp || !this.#isToGo(live, namespace)) return;
    const left = await readerOf(this.client(on), signal).list(resource, { namespace: name });
    for (const object of left) await this.#end(on, resource, object, true, signal);
  }

  async #end(
    on: Side,
    resource: Resource,
    live: KubeObject,
    force: boolean,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const client = this.client(on);
    const { name, namespace, uid, deletionTimestamp } = live.metadata;
    if (!deletionTimestamp) {
      const preconditions = { ...(uid && { uid }) };
      await client
        .delete(resource, name, namespace, { signal, preconditions, propagationPolicy: 'Background' })
        .catch(ignoreGone);
    }
    const left = await client.getOrUndefined(resource, name, namespace, { signal });
    if (left?.metadata.uid !== uid || !left) return undefined;
    const finalizers = left.metadata.finalizers ?? [];
    if (force && finalizers.length > 0) {
      const patch = { metadata: { finalizers: null, uid } };
      await client.mergePatch(resource, name, namespace, patch, { signal }).catch(ignoreGone);
      return undefined;
    }
    const by = finalizers.length > 0 ? `: finalizer ${finalizers.join(', ')}` : '';
    return `${left.kind ?? resource.kind} ${keyOf(left)} ${on === 'hub' ? 'of the hub' : 'of the cluster'} is being deleted${by}`;
  }

  isOurs(object: KubeObject): boolean {
    return isMadeFor(object, this.#owner.membership);
  }

  /** A foreign object of the same name stays. */
  #isToGo(live: KubeObject, { labels }: Partial<Pick<Trace, 'labels'>>): boolean {
    if (!labels) return this.isOurs(live);
    const entries = Object.entries(labels);
    return entries.length > 0 && entries.every(([key, value]) => live.metadata.labels?.[key] === value);
  }
}

const textOf = ({ on, resource: { group, plural }, namespace = '', name }: Place): string =>
  [on, group, plural, namespace, name].join('/');

const ignoreGone = (error: unknown): void => {
  // Gone, or replaced by another object: nothing to delete.
  if (!(error instanceof KubeApiError && (error.isNotFound || error.isConflict))) throw error;
};

/** Servers may reorder keyed lists. */
const sorted = (value: unknown): unknown =>
  Array.isArray(value) ? [...value].sort((a, b) => (keyIn(a) < keyIn(b) ? -1 : 1)) : value;

const keyIn = (item: { type?: unknown; name?: unknown } | undefined): string =>
  String(item?.type ?? item?.name ?? item);
