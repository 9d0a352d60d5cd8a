import { KubeApiError } from '../../operator/kube/errors.ts';
import type { KubeList } from '../../operator/kube/requests/list-pages.ts';
import { type KubeObject, type Resource, resourceOf } from '../../operator/kube/resources.ts';
import { matchesSelector } from '../../operator/kube/selector.ts';

const at = ({ plural }: Resource, namespace: string | undefined, name: string) =>
  `${plural}/${namespace ?? ''}/${name}`;

/** An API server in memory, as far as single objects go: UIDs, immutable types of Secrets, preconditions; no admission. */
export class MemoryObjects {
  readonly objects = new Map<string, KubeObject>();
  /** One line for each write, for example `delete secrets shop/one`. */
  readonly writes: string[] = [];
  /** The same for each object that was asked for by its name. */
  readonly reads: string[] = [];
  #serial = 0;

  constructor(...objects: KubeObject[]) {
    for (const object of objects) this.put(object);
  }

  /** Somebody else writes. */
  put<T extends KubeObject>(object: T): T {
    const { name, namespace } = object.metadata;
    const key = at(resourceOf(object), namespace, name);
    const uid = object.metadata.uid ?? this.objects.get(key)?.metadata.uid ?? `uid-${++this.#serial}`;
    const stored = { ...object, metadata: { ...object.metadata, uid, resourceVersion: String(++this.#serial) } };
    this.objects.set(key, stored);
    return stored;
  }

  find<T extends KubeObject = KubeObject>(resource: Resource, name: string, namespace?: string): T | undefined {
    return this.objects.get(at(resource, namespace, name)) as T | undefined;
  }

  async getOrUndefined<T extends KubeObject = KubeObject>(resource: Resource, name: string, namespace?: string) {
    this.reads.push(`get ${resource.plural} ${namespace === undefined ? name : `${namespace}/${name}`}`);
    return this.find<T>(resource, name, namespace);
  }

  async list<T extends KubeObject = KubeObject>(
    resource: Resource,
    { namespace, labelSelector }: { namespace?: string; labelSelector?: string } = {},
  ): Promise<KubeList<T>> {
    const items = [...this.objects]
      .filter(([key]) => key.startsWith(`${resource.plural}/${namespace === undefined ? '' : `${namespace}/`}`))
      .map(([, object]) => object as T)
      .filter(({ metadata }) => labelSelector === undefined || matchesSelector(labelSelector, metadata.labels));
    return { items, metadata: { resourceVersion: String(this.#serial) } };
  }

  async create<T extends KubeObject>(object: T): Promise<T> {
    const { name, namespace } = object.metadata;
    const resource = resourceOf(object);
    if (this.find(resource, name, namespace)) throw new KubeApiError('POST', 409, { reason: 'AlreadyExists' });
    this.#wrote('create', resource, namespace, name);
    return this.put(object);
  }

  async apply<T extends KubeObject>(object: T): Promise<T> {
    const { name, namespace } = object.metadata;
    const resource = resourceOf(object);
    const known = this.find(resource, name, namespace);
    if (known?.type !== undefined && known.type !== object.type)
      throw new KubeApiError('PATCH', 422, { reason: 'Invalid', message: 'type: field is immutable' });
    const { metadata } = object;
    if (metadata.resourceVersion !== undefined && metadata.resourceVersion !== known?.metadata.resourceVersion)
      throw new KubeApiError('PATCH', 409, { reason: 'Conflict' });
    this.#wrote('apply', resource, namespace, name);
    const labels = { ...known?.metadata.labels, ...metadata.labels };
    const annotations = { ...known?.metadata.annotations, ...metadata.annotations };
    return this.put({ ...known, ...object, metadata: { ...known?.metadata, ...metadata, labels, annotations } });
  }

  async mergePatch<T extends KubeObject = KubeObject>(
    resource: Resource,
    name: string,
    namespace: string | undefined,
    patch: { metadata?: { finalizers?: string[] | null } },
  ): Promise<T> {
    const known = this.find<T>(resource, name, namespace);
    if (!known) throw new KubeApiError('PATCH', 404, { reason: 'NotFound' });
    this.#wrote('patch', resource, namespace, name);
    const { finalizers, ...rest } = known.metadata;
    const left = patch.metadata?.finalizers === null ? undefined : finalizers;
    if (!left && rest.deletionTimestamp) {
      this.objects.delete(at(resource, namespace, name));
      return known;
    }
    return this.put({ ...known, metadata: { ...rest, ...(left && { finalizers: left }) } }) as T;
  }

  async delete(
    resource: Resource,
    name: string,
    namespace?: string,
    { preconditions = {} }: { preconditions?: { uid?: string } } = {},
  ): Promise<boolean> {
    const known = this.find(resource, name, namespace);
    if (!known) return false;
    if (preconditions.uid !== undefined && preconditions.uid !== known.metadata.uid)
      throw new KubeApiError('DELETE', 409, { reason: 'Conflict' });
    this.#wrote('delete', resource, namespace, name);
    if (known.metadata.finalizers?.length) {
      this.put({ ...known, metadata: { ...known.metadata, deletionTimestamp: '2026-11-22T00:00:00Z' } });
      return true;
    }
    return this.objects.delete(at(resource, namespace, name));
  }

  #wrote(what: string, { plural }: Resource, namespace: string | undefined, name: string): void {
    this.writes.push(`${what} ${plural} ${namespace === undefined ? name : `${namespace}/${name}`}`);
  }
}
