import { KubeApiError } from '../../operator/kube/errors.ts';
import type { Informer } from '../../operator/kube/informer.ts';
import type { KubeList } from '../../operator/kube/requests/list-pages.ts';
import type { DeleteOptions, WriteOptions } from '../../operator/kube/requests/write-options.ts';
import { type KubeObject, type Resource, resourceOf } from '../../operator/kube/resources.ts';
import { matchesSelector } from '../../operator/kube/selector.ts';
import type { ChangeEvent, Indexes } from '../../operator/kube/store.ts';
import { partOf } from './builders/partial.ts';

const keyIn = ({ plural }: Resource, namespace: string | undefined, name: string) =>
  `${plural}/${namespace ?? ''}/${name}`;
const refused = (method: string, code: number, reason: string, message?: string) =>
  new KubeApiError(method, code, { reason, ...(message && { message }) });

/** JSON merge patch (RFC 7396): null removes a field, lists are replaced. */
function merged(known: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const result = { ...(known as Record<string, unknown> | undefined) };
  for (const [field, value] of Object.entries(patch))
    if (value === null) delete result[field];
    else result[field] = merged(result[field], value);
  return result;
}

/**
 * An API server in memory: UIDs, resource versions, preconditions, finalizers, subresource status, merge patches, and caches
 * that are never behind. It has neither admission nor owners of fields: an apply removes no field.
 */
export class MemoryApiServer {
  readonly objects = new Map<string, KubeObject>();
  /** One line for each write, for example `delete secrets shop/one`. */
  readonly writes: string[] = [];
  /** The same for each object that was asked for by its name. */
  readonly reads: string[] = [];
  /** Surrounds each write. It may throw before or after the write, as when the operator is killed there. */
  around: <T>(write: () => T) => T | Promise<T> = (write) => write();
  /** Admission: throws what it refuses. @param object as it is to be; as it is, where it is deleted or patched */
  admit: (verb: 'create' | 'apply' | 'patch' | 'delete', object: KubeObject) => void = () => {};
  readonly #listeners = new Map<string, ((event: ChangeEvent<any>) => void)[]>();
  #serial = 0;

  constructor(...objects: KubeObject[]) {
    for (const object of objects) this.put(object);
  }

  /** Somebody else writes. */
  put<T extends KubeObject>(object: T): T {
    const { name, namespace } = object.metadata;
    const resource = resourceOf(object);
    const key = keyIn(resource, namespace, name);
    const old = this.objects.get(key);
    const uid = object.metadata.uid ?? old?.metadata.uid ?? `uid-${++this.#serial}`;
    const stored = { ...object, metadata: { ...object.metadata, uid, resourceVersion: String(++this.#serial) } };
    this.objects.set(key, stored);
    this.#tell(resource, old ? { type: 'updated', old, object: stored } : { type: 'added', object: stored });
    return stored;
  }

  /** Somebody else deletes, whatever finalizers say. @returns whether the object was there */
  remove(resource: Resource, name: string, namespace?: string): boolean {
    const object = this.find(resource, name, namespace);
    if (!object) return false;
    this.objects.delete(keyIn(resource, namespace, name));
    this.#tell(resource, { type: 'deleted', object });
    return true;
  }

  find<T extends KubeObject = KubeObject>(resource: Resource, name: string, namespace?: string): T | undefined {
    return this.objects.get(keyIn(resource, namespace, name)) as T | undefined;
  }

  /** @param listener called for each change of an object of this kind */
  onChange<T extends KubeObject>(resource: Resource, listener: (event: ChangeEvent<T>) => void): void {
    this.#listeners.set(resource.plural, [...(this.#listeners.get(resource.plural) ?? []), listener]);
  }

  /**
   * An informer's cache of one kind, which shows each write at once.
   * @param indexes those of the informer. Index `namespace` is always there
   * @param shown what the cache shows. Absent: the objects as they are
   */
  cache<T extends KubeObject>(resource: Resource, indexes: Indexes<T> = {}, shown = () => this.objects): Informer<T> {
    const { plural } = resource;
    const all: Indexes<T> = { namespace: ({ metadata }) => [metadata.namespace ?? ''], ...indexes };
    const list = () => {
      const found: T[] = [];
      for (const [key, object] of shown()) if (key.startsWith(`${plural}/`)) found.push(object as T);
      return found;
    };
    const waitFor = async <R>(seen: () => R | undefined | false): Promise<R> => {
      const result = seen();
      if (!result) throw new Error(`the cache of ${plural} does not show it`);
      return result;
    };
    return partOf<Informer<KubeObject>>({
      synced: true,
      get: (key: string) => shown().get(`${plural}/${key.includes('/') ? key : `/${key}`}`),
      list,
      byIndex(index: string, value: string) {
        const of = all[index];
        if (!of) throw new Error(`the cache of ${plural} has no index "${index}"`);
        return list().filter((object) => of(object).includes(value));
      },
      absorb: () => {},
      waitFor,
    } as object) as Informer<any>;
  }

  async get<T extends KubeObject = KubeObject>(resource: Resource, name: string, namespace?: string): Promise<T> {
    const found = await this.getOrUndefined<T>(resource, name, namespace);
    if (!found) throw refused('GET', 404, 'NotFound');
    return found;
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

  async create<T extends KubeObject>(object: T, { dryRun }: WriteOptions = {}): Promise<T> {
    const { name, namespace } = object.metadata;
    const resource = resourceOf(object);
    const check = () => {
      this.admit('create', object);
      if (this.find(resource, name, namespace)) throw refused('POST', 409, 'AlreadyExists');
      return () => this.put(object);
    };
    if (!dryRun) return this.#write('create', resource, namespace, name, check);
    check();
    return object;
  }

  apply<T extends KubeObject>(object: T, { subresource }: WriteOptions = {}): Promise<T> {
    const { name, namespace } = object.metadata;
    const resource = resourceOf(object);
    return this.#write('apply', resource, namespace, name, () => {
      this.admit('apply', object);
      const known = this.find<T>(resource, name, namespace);
      if (known?.type !== undefined && known.type !== object.type)
        throw refused('PATCH', 422, 'Invalid', 'type: field is immutable');
      const { metadata } = object;
      if (metadata.resourceVersion !== undefined && metadata.resourceVersion !== known?.metadata.resourceVersion)
        throw refused('PATCH', 409, 'Conflict');
      if (subresource && !known) throw refused('PATCH', 404, 'NotFound');
      if (subresource) return (): T => this.put({ ...known!, status: object.status });
      const labels = { ...known?.metadata.labels, ...metadata.labels };
      const annotations = { ...known?.metadata.annotations, ...metadata.annotations };
      return () =>
        this.put({ ...known, ...object, metadata: { ...known?.metadata, ...metadata, labels, annotations } });
    });
  }

  mergePatch<T extends KubeObject = KubeObject>(
    resource: Resource,
    name: string,
    namespace: string | undefined,
    patch: object,
    { subresource }: WriteOptions = {},
  ): Promise<T> {
    return this.#write('patch', resource, namespace, name, () => {
      const known = this.find<T>(resource, name, namespace);
      if (!known) throw refused('PATCH', 404, 'NotFound');
      this.admit('patch', known);
      const { metadata } = patch as Partial<KubeObject>;
      for (const field of ['uid', 'resourceVersion'] as const)
        if (metadata?.[field] !== undefined && metadata[field] !== known.metadata[field])
          throw refused('PATCH', 409, 'Conflict');
      const whole = merged(known, patch) as T;
      return () => this.#putUnlessOver(subresource ? { ...known, status: whole.status } : whole);
    });
  }

  /** As JSON patches of the operator are: a test of the UID, and finalizers that go. */
  jsonPatch<T extends KubeObject = KubeObject>(
    resource: Resource,
    name: string,
    namespace: string | undefined,
    operations: readonly { op: string; path: string; value?: unknown }[] = [],
  ): Promise<T> {
    return this.#write('patch', resource, namespace, name, () => {
      const known = this.find<T>(resource, name, namespace);
      if (!known) throw refused('PATCH', 404, 'NotFound');
      this.admit('patch', known);
      const whole = structuredClone(known);
      for (const { op, path, value } of operations) {
        const steps = path.split('/').slice(1);
        const last = steps.pop()!.replaceAll('~1', '/').replaceAll('~0', '~');
        const within = steps.reduce<any>((at, step) => at?.[step], whole);
        if (op === 'test' ? within?.[last] !== value : op === 'remove' && within?.[last] === undefined)
          throw refused('PATCH', 422, 'Invalid');
        if (op === 'remove' && Array.isArray(within)) within.splice(Number(last), 1);
        else if (op === 'remove') delete within[last];
        else if (op !== 'test') within[last] = value;
      }
      return () => this.#putUnlessOver(whole);
    });
  }

  delete(resource: Resource, name: string, namespace?: string, options: DeleteOptions = {}): Promise<boolean> {
    const known = this.find(resource, name, namespace);
    if (!known) return Promise.resolve(false);
    return this.#write('delete', resource, namespace, name, () => {
      this.admit('delete', known);
      const uid = options.preconditions?.uid;
      if (uid !== undefined && uid !== known.metadata.uid) throw refused('DELETE', 409, 'Conflict');
      return () => {
        if (!known.metadata.finalizers?.length) return this.remove(resource, name, namespace);
        const deletionTimestamp = known.metadata.deletionTimestamp ?? '2026-11-22T00:00:00Z';
        this.put({ ...known, metadata: { ...known.metadata, deletionTimestamp } });
        return true;
      };
    });
  }

  /** What is being deleted goes with its last finalizer. */
  #putUnlessOver<T extends KubeObject>(object: T): T {
    if (!object.metadata.deletionTimestamp || object.metadata.finalizers?.length) return this.put(object);
    const { name, namespace } = object.metadata;
    this.remove(resourceOf(object), name, namespace);
    return object;
  }

  /** @param check throws what the server refuses; returns the change */
  async #write<R>(
    verb: string,
    { plural }: Resource,
    namespace: string | undefined,
    name: string,
    check: () => () => R,
  ): Promise<R> {
    return this.around(() => {
      const change = check();
      this.writes.push(`${verb} ${plural} ${namespace === undefined ? name : `${namespace}/${name}`}`);
      return change();
    });
  }

  #tell(resource: Resource, event: ChangeEvent<KubeObject>): void {
    for (const tell of this.#listeners.get(resource.plural) ?? []) tell(event);
  }
}
