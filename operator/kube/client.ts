import { FIELD_MANAGER } from '../api/group.ts';
import { TENANT_LIMITS } from './answer-limits.ts';
import { APPLY, ApiRequests, type KubeClientOptions, type RequestOptions } from './api-requests.ts';
import { KubeApiError } from './errors.ts';
import { type Evictable, type Eviction, type EvictOptions, evict } from './evict.ts';
import {
  type Connection,
  inClusterConnection,
  loadOwnKubeconfig,
  parseOwnKubeconfig,
  parseUntrustedKubeconfig,
} from './kubeconfig.ts';
import { type KubeList, type Lister, type ListOptions, listAll, listPages, type PagesOptions } from './list-pages.ts';
import { type KubeObject, pathOf, type Resource, resourceOf } from './resources.ts';
import { type WatchEvent, type WatchOptions, watch } from './watch.ts';
import { type ApplyOptions, type DeleteOptions, deleteBody, type WriteOptions, writeQuery } from './write-options.ts';

const MERGE_PATCH = 'application/merge-patch+json';
const JSON_PATCH = 'application/json-patch+json';

/**
 * One API server. All requests share two HTTP/2 connections at most, watches have their own. Objects travel as plain JSON:
 * nothing that this code does not know is lost on the way.
 * Every method throws KubeApiError when the server refuses, KubeUnreachableError when there is no usable answer, and
 * the signal's reason when aborted; a write that was sent is waited for first, for two seconds at most, and what came of it counts.
 * An answer that is larger than the client's limits is cut off: AnswerTooLargeError.
 */
export class KubeClient {
  readonly server: string;
  /** PEM of who vouches for the server; undefined: whom everybody trusts. */
  readonly ca: string | undefined;
  /** Counted since the start: requests (watches too), writes (dry runs not), bytes of answers. */
  readonly stats: ApiRequests['stats'];
  readonly #requests: ApiRequests;
  readonly #lister: Lister;

  constructor(options: KubeClientOptions) {
    this.server = options.server;
    this.ca = options.ca;
    const requests = new ApiRequests(options);
    this.#requests = requests;
    this.stats = requests.stats;
    this.#lister = {
      limits: requests.limits,
      request: (method, path, more) => this.request(method, path, more),
      tooLarge: (what, limit) => requests.tooLarge(what, limit),
    };
  }

  /**
   * For a kubeconfig out of a Secret or made by this program: everything is in it, and what reads files or runs programs is refused
   * (parseUntrustedKubeconfig), and little is kept of what its server answers. Connects to nothing yet.
   */
  static fromKubeconfig(
    yaml: string,
    context?: string,
    more: Omit<Partial<KubeClientOptions>, keyof Connection> & { source?: string } = {},
  ): KubeClient {
    const { source, ...options } = more;
    return new KubeClient({ ...parseUntrustedKubeconfig(yaml, source, context), limits: TENANT_LIMITS, ...options });
  }

  /** For a kubeconfig that belongs to the person who runs this program (parseOwnKubeconfig). Connects to nothing yet. */
  static fromOwnKubeconfig(
    yaml: string,
    options: { context?: string | undefined; directory?: string },
    more: Omit<Partial<KubeClientOptions>, keyof Connection> = {},
  ): KubeClient {
    return new KubeClient({ ...parseOwnKubeconfig(yaml, options), ...more });
  }

  /** The cluster this pod runs in, else the person's kubeconfig (KUBECONFIG, ~/.kube/config). */
  static fromEnvironment(context?: string, more: Omit<Partial<KubeClientOptions>, keyof Connection> = {}): KubeClient {
    const connection = (context ? undefined : inClusterConnection()) ?? loadOwnKubeconfig(context);
    return new KubeClient({ ...connection, ...more });
  }

  /** Any request; the answer parsed when it is JSON, else as text. `path` is below the server's URL. */
  async request<T = any>(method: string, path: string, options: RequestOptions = {}): Promise<T> {
    return this.#requests.request(method, path, options);
  }

  async get<T extends KubeObject = KubeObject>(
    resource: Resource,
    name: string,
    namespace?: string,
    options: { subresource?: string; signal?: AbortSignal | undefined } = {},
  ): Promise<T> {
    return this.request('GET', pathOf(resource, namespace, name, options.subresource), { signal: options.signal });
  }

  /** undefined when there is none. */
  async getOrUndefined<T extends KubeObject = KubeObject>(
    resource: Resource,
    name: string,
    namespace?: string,
    options: { signal?: AbortSignal | undefined } = {},
  ): Promise<T | undefined> {
    try {
      return await this.get<T>(resource, name, namespace, options);
    } catch (error) {
      if (error instanceof KubeApiError && error.isNotFound) return undefined;
      throw error;
    }
  }

  /**
   * All objects, asked for in pages of 500 of one consistent moment. `transform` makes each smaller as it comes; throws
   * AnswerTooLargeError where what is left of all is more than this client keeps.
   */
  async list<T extends KubeObject = KubeObject>(
    resource: Resource,
    options: PagesOptions & { transform?: (object: T) => T } = {},
  ): Promise<KubeList<T>> {
    return listAll(this.#lister, resource, options);
  }

  /**
   * Hands out all objects of one consistent moment, of which never more than a page is held here. `begin` is called before the first, and
   * again where it begins anew because the server has forgotten that moment.
   */
  async listPages<T extends KubeObject = KubeObject>(
    resource: Resource,
    options: PagesOptions,
    take: { begin: () => void; each: (object: T) => void },
  ): Promise<KubeList<T>['metadata']> {
    return listPages(this.#lister, resource, options, take);
  }

  /** Makes the object; unknown fields are an error. */
  async create<T extends KubeObject>(object: T, options: WriteOptions = {}): Promise<T> {
    const resource = options.resource ?? resourceOf(object);
    const { subresource } = options;
    const path = pathOf(
      resource,
      object.metadata.namespace,
      subresource ? object.metadata.name : undefined,
      subresource,
    );
    return this.request('POST', path, {
      query: { fieldManager: FIELD_MANAGER, ...writeQuery(options) },
      body: object,
      signal: options.signal,
      abandon: options.abandon ?? false,
    });
  }

  /**
   * Server-side apply: makes or changes the object so that it has these fields, and removes fields that an earlier
   * apply of ours had and this one has not. Unknown fields are an error.
   */
  async apply<T extends KubeObject>(object: T, options: ApplyOptions = {}): Promise<T> {
    const resource = options.resource ?? resourceOf(object);
    const { force = true, fieldManager = FIELD_MANAGER, subresource } = options;
    let body: KubeObject = object;
    if (object.metadata.managedFields) {
      const { managedFields: _, ...metadata } = object.metadata;
      body = { ...object, metadata };
    }
    return this.request('PATCH', pathOf(resource, object.metadata.namespace, object.metadata.name, subresource), {
      query: { fieldManager, force, ...writeQuery(options) },
      body,
      contentType: APPLY,
      signal: options.signal,
    });
  }

  /** JSON merge patch (RFC 7386): null removes a field, lists are replaced. */
  async mergePatch<T extends KubeObject = KubeObject>(
    resource: Resource,
    name: string,
    namespace: string | undefined,
    patch: object,
    options: WriteOptions = {},
  ): Promise<T> {
    return this.#patch(MERGE_PATCH, pathOf(resource, namespace, name, options.subresource), patch, options);
  }

  /** Does all of the operations (RFC 6902) or none: 422 when one cannot be done, or when a `test` fails. */
  async jsonPatch<T extends KubeObject = KubeObject>(
    resource: Resource,
    name: string,
    namespace: string | undefined,
    operations: readonly { op: 'test' | 'add' | 'replace' | 'remove'; path: string; value?: unknown }[],
    options: WriteOptions = {},
  ): Promise<T> {
    return this.#patch(JSON_PATCH, pathOf(resource, namespace, name, options.subresource), operations, options);
  }

  async #patch<T>(contentType: string, path: string, body: unknown, options: WriteOptions): Promise<T> {
    const query = { fieldManager: options.fieldManager ?? FIELD_MANAGER, ...writeQuery(options) };
    return this.request('PATCH', path, { query, body, contentType, signal: options.signal });
  }

  /** Replaces the object; throws a conflict when metadata.resourceVersion is set and no longer current. */
  async update<T extends KubeObject>(object: T, options: WriteOptions = {}): Promise<T> {
    const resource = options.resource ?? resourceOf(object);
    const path = pathOf(resource, object.metadata.namespace, object.metadata.name, options.subresource);
    return this.request('PUT', path, {
      query: { fieldManager: FIELD_MANAGER, ...writeQuery(options) },
      body: object,
      signal: options.signal,
      abandon: options.abandon ?? false,
    });
  }

  /** False when it was gone already. True says the deletion began: finalizers may hold the object. */
  async delete(resource: Resource, name: string, namespace?: string, options: DeleteOptions = {}): Promise<boolean> {
    const { signal, dryRun, ...rest } = options;
    try {
      await this.request('DELETE', pathOf(resource, namespace, name), {
        query: dryRun ? { dryRun: 'All' } : {},
        body: deleteBody(rest),
        signal,
      });
      return true;
    } catch (error) {
      if (error instanceof KubeApiError && error.isNotFound) return false;
      throw error;
    }
  }

  /** Deletes what the selectors match in one namespace (or, for cluster-scoped kinds, everywhere). */
  async deleteCollection(resource: Resource, options: ListOptions & DeleteOptions = {}): Promise<void> {
    const { namespace, labelSelector, fieldSelector, signal, dryRun, ...rest } = options;
    if (resource.namespaced && !namespace) throw new Error(`deleting ${resource.plural} needs a namespace`);
    await this.request('DELETE', pathOf(resource, namespace), {
      query: { labelSelector, fieldSelector, dryRun: dryRun ? 'All' : undefined },
      body: deleteBody(rest),
      signal,
    });
  }

  /** Asks for a pod to go in the way that respects PodDisruptionBudgets; does not wait for it to be gone. */
  async evict(pod: Evictable, options: EvictOptions = {}): Promise<Eviction> {
    return evict(this, pod, options);
  }

  /**
   * Streams changes to `onEvent`, which must not block or throw. Resolves when the server ends the stream (as it does
   * after timeoutSeconds). Throws KubeApiError with isGone when the resource version is too old.
   */
  async watch<T extends KubeObject = KubeObject>(
    resource: Resource,
    options: WatchOptions,
    onEvent: (event: WatchEvent<T>) => void,
  ): Promise<void> {
    return watch(this.#requests, resource, options, onEvent);
  }

  async serverVersion(): Promise<{ major: string; minor: string; gitVersion: string }> {
    return this.request('GET', '/version');
  }

  /** Whether the API server says it is ready to serve, whatever it says of the checks `apartFrom`; never throws. */
  async ready(
    options: { timeoutMs?: number; signal?: AbortSignal | undefined; apartFrom?: readonly string[] } = {},
  ): Promise<boolean> {
    const { timeoutMs = 2000, signal, apartFrom = [] } = options;
    const excluded = apartFrom.map((check) => `exclude=${check}`).join('&');
    try {
      await this.request('GET', excluded ? `/readyz?${excluded}` : '/readyz', { timeoutMs, signal, retries: 0 });
      return true;
    } catch {
      return false;
    }
  }

  /** Drops all connections; running requests and watches fail with KubeUnreachableError. */
  async close(): Promise<void> {
    await this.#requests.close();
  }
}
