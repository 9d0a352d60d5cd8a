import { FIELD_MANAGER } from '../api/group.ts';
import { KubeApiError } from './errors.ts';
import { TENANT_LIMITS } from './http/answer-limits.ts';
import {
  type Connection,
  inClusterConnection,
  loadOwnKubeconfig,
  parseAdministratorsKubeconfig,
  parseOwnKubeconfig,
  parseUntrustedKubeconfig,
} from './kubeconfig.ts';
import { APPLY, ApiRequests, type KubeClientOptions, type RequestOptions } from './requests/api-requests.ts';
import { type Evictable, type Eviction, type EvictOptions, evict } from './requests/evict.ts';
import {
  type KubeList,
  type Lister,
  type ListOptions,
  listAll,
  listPages,
  type PagesOptions,
} from './requests/list-pages.ts';
import { undeclaredFields, withoutFields } from './requests/undeclared-fields.ts';
import { type WatchEvent, type WatchOptions, watch } from './requests/watch.ts';
import {
  type ApplyOptions,
  type DeleteOptions,
  deleteBody,
  type WriteOptions,
  writeQuery,
} from './requests/write-options.ts';
import { type KubeObject, pathOf, type Resource, resourceOf } from './resources.ts';

const MERGE_PATCH = 'application/merge-patch+json';
const JSON_PATCH = 'application/json-patch+json';
/** Most times that a write is sent again with fewer fields (ApplyOptions.leaveOutUndeclared). */
const MOST_ROUNDS = 20;

/**
 * A client of one API server. Requests share at most two HTTP/2 connections; watches have their own. Objects are plain
 * JSON, so fields that this code does not know are kept. Every method throws KubeApiError when the server refuses, and
 * KubeUnreachableError when there is no usable answer. An aborted method throws the signal's reason; a write that was
 * already sent gets two seconds to finish, and its outcome counts instead. An answer beyond the client's size limits
 * throws AnswerTooLargeError.
 */
export class KubeClient {
  readonly server: string;
  /** PEM of the server's certificate authority. Absent: the system's authorities. */
  readonly ca: string | undefined;
  /** Counts since the start: requests (including watches), writes (without dry runs), bytes of answers. */
  readonly stats: ApiRequests['stats'];
  readonly #onUndeclared: KubeClientOptions['onUndeclared'];
  readonly #requests: ApiRequests;
  readonly #lister: Lister;

  constructor(options: KubeClientOptions) {
    this.server = options.server;
    this.ca = options.ca;
    this.#onUndeclared = options.onUndeclared;
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
   * A client for a kubeconfig from a Secret or from this program. The kubeconfig must be self-contained: one that names
   * files or plugins is refused (parseUntrustedKubeconfig). Limits on the size of answers are low. Does not connect
   * yet.
   * @param more `proxy: false` when the server is in the network of this process
   */
  static fromKubeconfig(
    yaml: string,
    context?: string,
    more: Omit<Partial<KubeClientOptions>, keyof Connection> & { source?: string; proxy?: false } = {},
  ): KubeClient {
    const { source, ...options } = more;
    return new KubeClient({ ...parseUntrustedKubeconfig(yaml, source, context), limits: TENANT_LIMITS, ...options });
  }

  /**
   * A client for a kubeconfig that an administrator or this program wrote, for a remote cluster: the kubeconfig may
   * name a proxy (parseAdministratorsKubeconfig).
   */
  static fromAdministratorsKubeconfig(
    yaml: string,
    source: string,
    more: Omit<Partial<KubeClientOptions>, keyof Connection> = {},
  ): KubeClient {
    return new KubeClient({ ...parseAdministratorsKubeconfig(yaml, source), limits: TENANT_LIMITS, ...more });
  }

  /** A client for the kubeconfig of the person who runs this program (parseOwnKubeconfig). Does not connect yet. */
  static fromOwnKubeconfig(
    yaml: string,
    options: { context?: string | undefined; directory?: string },
    more: Omit<Partial<KubeClientOptions>, keyof Connection> = {},
  ): KubeClient {
    return new KubeClient({ ...parseOwnKubeconfig(yaml, options), ...more });
  }

  /** A client of the cluster that this pod runs in, else of the user's kubeconfig (KUBECONFIG, ~/.kube/config). */
  static fromEnvironment(context?: string, more: Omit<Partial<KubeClientOptions>, keyof Connection> = {}): KubeClient {
    const connection = (context ? undefined : inClusterConnection()) ?? loadOwnKubeconfig(context);
    return new KubeClient({ ...connection, ...more });
  }

  /** Sends any request. Returns the parsed answer when it is JSON, else its text. `path` is relative to the server's URL. */
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

  /** Returns undefined when the object does not exist. */
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
   * All objects at one resource version, read in pages of 500. `transform` shrinks each object as it arrives. Throws
   * AnswerTooLargeError when the shrunk objects together exceed this client's limit.
   */
  async list<T extends KubeObject = KubeObject>(
    resource: Resource,
    options: PagesOptions & { transform?: (object: T) => T } = {},
  ): Promise<KubeList<T>> {
    return listAll(this.#lister, resource, options);
  }

  /**
   * Passes all objects at one resource version to `each`, with at most one page in memory. `begin` is called before the
   * first object, and again when the list restarts because that version has expired on the server.
   */
  async listPages<T extends KubeObject = KubeObject>(
    resource: Resource,
    options: PagesOptions,
    take: { begin: () => void; each: (object: T) => void },
  ): Promise<KubeList<T>['metadata']> {
    return listPages(this.#lister, resource, options, take);
  }

  /** Creates the object; unknown fields are an error. */
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
   * Server-side apply: creates or changes the object so that it has these fields. Removes fields that an earlier apply of this
   * field manager set and this one lacks. Unknown fields are an error, except with `leaveOutUndeclared`.
   */
  async apply<T extends KubeObject>(object: T, options: ApplyOptions = {}): Promise<T> {
    if (!options.leaveOutUndeclared) return this.#apply(object, options);
    const leftOut: string[] = [];
    let rest = object;
    // A server may name one undeclared field per answer.
    for (let round = 0; ; round++) {
      try {
        const written = await this.#apply(rest, options);
        if (leftOut.length > 0) this.#onUndeclared?.(object.kind, leftOut);
        return written;
      } catch (error) {
        const fields = undeclaredFields(error).filter((field) => !leftOut.includes(field));
        if (fields.length === 0 || round === MOST_ROUNDS) throw error;
        leftOut.push(...fields);
        rest = withoutFields(rest, fields);
      }
    }
  }

  async #apply<T extends KubeObject>(object: T, options: ApplyOptions): Promise<T> {
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

  /** JSON patch (RFC 6902): applies all operations or none. Error 422 when one is not possible, or a `test` fails. */
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

  /**
   * Returns false when the object did not exist, true when the deletion began; finalizers may still hold the object.
   */
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

  /** Deletes the objects that the selectors match in one namespace (or, for cluster-scoped kinds, everywhere). */
  async deleteCollection(resource: Resource, options: ListOptions & DeleteOptions = {}): Promise<void> {
    const { namespace, labelSelector, fieldSelector, signal, dryRun, ...rest } = options;
    if (resource.namespaced && !namespace) throw new Error(`deleting ${resource.plural} needs a namespace`);
    await this.request('DELETE', pathOf(resource, namespace), {
      query: { labelSelector, fieldSelector, dryRun: dryRun ? 'All' : undefined },
      body: deleteBody(rest),
      signal,
    });
  }

  /**
   * Evicts a pod, which respects PodDisruptionBudgets. Does not wait until the pod is gone. Throws when the API server
   * does not answer about this pod.
   */
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

  /**
   * Whether the API server reports that it is ready, ignoring the checks in `apartFrom`. `timeoutMs` is loop time (see
   * afterLoopTime). Never throws.
   */
  async ready(
    options: { timeoutMs?: number; signal?: AbortSignal | undefined; apartFrom?: readonly string[] } = {},
  ): Promise<boolean> {
    const { timeoutMs = 2000, signal, apartFrom = [] } = options;
    const excluded = apartFrom.map((check) => `exclude=${check}`).join('&');
    try {
      await this.request('GET', excluded ? `/readyz?${excluded}` : '/readyz', {
        ...{ timeoutMs, signal, retries: 0 },
        // A server that is not ready answers with a list of its checks.
        ...{ first: true, maxBytes: 64 * 1024 },
      });
      return true;
    } catch {
      return false;
    }
  }

  /** Closes all connections; running requests and watches fail with KubeUnreachableError. */
  async close(): Promise<void> {
    await this.#requests.close();
  }
}
