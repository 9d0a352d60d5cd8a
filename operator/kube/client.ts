import { readFile } from 'node:fs/promises';
import { CoppiceError } from '../api/errors.ts';
import { FIELD_MANAGER } from '../api/group.ts';
import { ANSWER_LIMITS, type AnswerLimits, AnswerTooLargeError, inWords, TENANT_LIMITS } from './answer-limits.ts';
import { sizeOf } from './byte-budget.ts';
import { sleep } from './clock.ts';
import { KubeApiError, KubeUnreachableError, type Status } from './errors.ts';
import { type Answer, type Bound, type Exchange, readLines, textOf } from './exchange.ts';
import {
  type Connection,
  type Credentials,
  inClusterConnection,
  loadOwnKubeconfig,
  parseOwnKubeconfig,
  parseUntrustedKubeconfig,
} from './kubeconfig.ts';
import { type KubeObject, type Pod, pathOf, type Resource, resourceOf } from './resources.ts';
import { type Liveness, newTransport, type Transport } from './transport.ts';

export { isNotFound, isTransient, KubeApiError, KubeUnreachableError } from './errors.ts';
export type { Connection } from './kubeconfig.ts';
export type { KubeObject } from './resources.ts';

export interface KubeClientOptions extends Connection {
  userAgent?: string;
  /** Called once for each request that got an answer or failed (status 0); for metrics and for tests that count. */
  onRequest?: (request: RequestRecord) => void;
  liveness?: Liveness;
  /** How much is taken of its answers; default ANSWER_LIMITS. */
  limits?: AnswerLimits;
}

export interface RequestRecord {
  method: string;
  path: string;
  status: number;
  durationMs: number;
}

type Query = Record<string, string | number | boolean | undefined>;

export interface RequestOptions {
  query?: Query;
  /** Sent as JSON. */
  body?: unknown;
  /** Default application/json. */
  contentType?: string;
  signal?: AbortSignal | undefined;
  /** For the answer's first byte and between its bytes; default 30 s. The whole of it may take four times as long. */
  timeoutMs?: number;
  /** Bytes of the answer that are taken; default the client's limit for an object. */
  maxBytes?: number;
  /** How often to try again when the server says "later" (429 or 503 with Retry-After). Default 3. */
  retries?: number;
  /** Of a write that was sent: given up the moment the signal says so, whatever may come of it. Default false. */
  abandon?: boolean;
}

export interface ListOptions {
  /** Absent: all namespaces. */
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
}

/** A list as the server sends it; apiVersion and kind are put into every item. */
export interface KubeList<T> {
  metadata: { resourceVersion: string; continue?: string; remainingItemCount?: number };
  items: T[];
}

export interface WriteOptions {
  /** Needed for kinds that operator/kube/resources.ts does not list. */
  resource?: Resource;
  subresource?: 'status' | 'scale' | 'approval' | 'ephemeralcontainers' | 'resize' | (string & {});
  dryRun?: boolean;
  /** Who owns what is written; absent: FIELD_MANAGER. */
  fieldManager?: string;
  signal?: AbortSignal | undefined;
  /** As in RequestOptions, for create and update. */
  abandon?: boolean;
  /** What happens to fields that the schema does not know; default Strict: an error. */
  fieldValidation?: 'Strict' | 'Warn' | 'Ignore';
}

export interface ApplyOptions extends WriteOptions {
  /** Take over fields that another manager owns. Default true, as is right for a controller. */
  force?: boolean;
}

export interface DeleteOptions {
  gracePeriodSeconds?: number;
  propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
  preconditions?: { uid?: string; resourceVersion?: string };
  dryRun?: boolean;
  signal?: AbortSignal | undefined;
}

export interface WatchEvent<T extends KubeObject = KubeObject> {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  object: T;
}

export interface WatchOptions extends ListOptions {
  /** Events after this one. */
  resourceVersion?: string;
  /** Begin with all objects, then a bookmark with annotation k8s.io/initial-events-end (WatchList). */
  sendInitialEvents?: boolean;
  /** The server ends the watch after this time. */
  timeoutSeconds?: number;
  /** The server has agreed; events may follow. */
  onOpen?: () => void;
  signal?: AbortSignal | undefined;
}

export type Eviction = { outcome: 'evicted' | 'gone' } | { outcome: 'blocked'; message: string };

const TOKEN_FILE_MS = 60_000;
/** Objects of a list that are asked for at once. */
const PAGE = 500;
const MOST_BEGINNINGS = 3;
const MOST_EMPTY_PAGES = 100;
/** A server that sends a byte now and then would never be silent. */
const WHOLE_ANSWER = 4;
/** How long a write that is to be given up may still take. */
const LINGER_MS = 2_000;
const APPLY = 'application/apply-patch+yaml';
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
  readonly stats = { requests: 0, writes: 0, bytes: 0 };
  readonly #origin: string;
  readonly #prefix: string;
  readonly #options: KubeClientOptions;
  readonly #limits: AnswerLimits;
  readonly #headers: Record<string, string | string[]>;
  #transport: Transport | undefined;
  #plugin: Promise<void> | undefined;
  #token: { header: string; readAt: number } | undefined;
  #closed = false;

  constructor(options: KubeClientOptions) {
    const url = new URL(options.server);
    this.server = options.server;
    this.ca = options.ca;
    this.#origin = url.origin;
    this.#prefix = url.pathname.replace(/\/+$/, '');
    this.#options = options;
    this.#limits = options.limits ?? ANSWER_LIMITS;
    this.#headers = { accept: 'application/json', 'user-agent': options.userAgent ?? FIELD_MANAGER };
    const { impersonate } = options;
    if (impersonate) {
      this.#headers['impersonate-user'] = impersonate.user;
      if (impersonate.groups?.length) this.#headers['impersonate-group'] = impersonate.groups;
    }
    if (options.token) this.#token = { header: `Bearer ${options.token}`, readAt: Number.POSITIVE_INFINITY };
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
    const {
      query,
      body,
      contentType = 'application/json',
      signal,
      timeoutMs = 30_000,
      retries = 3,
      abandon = false,
      maxBytes = this.#limits.objectBytes,
    } = options;
    const what = `${method} ${path}`;
    const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const target = this.#prefix + path + queryString(query);
    // A connection that the server just closed says nothing about the request; safe to send again where it is idempotent.
    const repeatable = method === 'GET' || contentType === APPLY;
    let fresh = false;

    for (let attempt = 0; ; attempt++) {
      const headers = { ...this.#headers };
      if (payload) headers['content-type'] = contentType;
      const authorization = await this.#authorization(what);
      if (authorization) headers.authorization = authorization;
      const started = performance.now();
      let response: Answer;
      let text: string;
      try {
        const limits = { signal, headersTimeoutMs: timeoutMs, bodyTimeoutMs: timeoutMs };
        const exchange = { method, path: target, headers, body: payload, ...limits };
        ({ response, text } = await this.#ask(exchange, abandon, this.#bound(what, maxBytes)));
      } catch (error) {
        if (signal?.aborted) throw signal.reason;
        this.#record(method, path, 0, started, query);
        if (repeatable && attempt === 0 && isStaleConnection(error)) continue;
        throw this.#unreachable(what, error);
      }
      this.stats.bytes += text.length;
      this.#record(method, path, response.statusCode, started, query);
      if (response.statusCode < 300) return parseBody(text, response) as T;

      if (response.statusCode === 401 && !fresh && this.#forgetCredentials()) {
        fresh = true;
        continue;
      }
      const retryAfter = Number(response.headers['retry-after']) || undefined;
      const later = response.statusCode === 429 || response.statusCode === 503;
      if (later && retryAfter && attempt < retries) {
        await sleep(retryAfter * 1000 * (0.75 + Math.random() / 2), signal);
        if (signal?.aborted) throw signal.reason;
        continue;
      }
      throw new KubeApiError(what, response.statusCode, parseBody(text, response) as Status | string, retryAfter);
    }
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
    options: ListOptions & { signal?: AbortSignal | undefined; pageSize?: number; transform?: (object: T) => T } = {},
  ): Promise<KubeList<T>> {
    const { transform = (object: T) => object } = options;
    const { keptBytes } = this.#limits;
    let items: T[] = [];
    let kept = 0;
    const metadata = await this.listPages<T>(resource, options, {
      begin: () => {
        items = [];
        kept = 0;
      },
      each: (object) => {
        const item = transform(object);
        if (keptBytes < Number.POSITIVE_INFINITY) kept += sizeOf(item);
        if (kept > keptBytes) throw this.#tooLarge(`GET ${pathOf(resource, options.namespace)}`, inWords(keptBytes));
        items.push(item);
      },
    });
    return { metadata, items };
  }

  /**
   * Hands out all objects of one consistent moment, of which never more than a page is held here. `begin` is called before the first, and
   * again where it begins anew because the server has forgotten that moment.
   */
  async listPages<T extends KubeObject = KubeObject>(
    resource: Resource,
    options: ListOptions & { signal?: AbortSignal | undefined; pageSize?: number },
    { begin, each }: { begin: () => void; each: (object: T) => void },
  ): Promise<KubeList<T>['metadata']> {
    const { namespace, labelSelector, fieldSelector, signal } = options;
    const path = pathOf(resource, namespace);
    let limit = options.pageSize ?? PAGE;
    let token: string | undefined;
    let beginnings = 1;
    let empty = 0;
    begin();
    for (;;) {
      let page: KubeList<T> & { apiVersion: string; kind: string };
      try {
        const query: Query = { labelSelector, fieldSelector, limit, continue: token };
        page = await this.request('GET', path, { query, signal, maxBytes: this.#limits.pageBytes });
      } catch (error) {
        if (error instanceof AnswerTooLargeError && limit > 1) {
          limit = Math.ceil(limit / 8);
          continue;
        }
        // The moment that the first page showed is compacted away.
        const isForgotten = token !== undefined && error instanceof KubeApiError && error.isGone;
        if (!isForgotten || beginnings++ === MOST_BEGINNINGS) throw error;
        token = undefined;
        begin();
        continue;
      }
      const items = page.items ?? [];
      for (const item of items) {
        item.apiVersion ??= page.apiVersion;
        item.kind ??= page.kind.replace(/List$/, '');
        each(item);
      }
      token = page.metadata.continue || undefined;
      if (!token) return page.metadata;
      empty = items.length > 0 ? 0 : empty + 1;
      if (empty > MOST_EMPTY_PAGES) throw this.#tooLarge(`GET ${path}`, `${MOST_EMPTY_PAGES} empty pages`);
    }
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
        body: deleteOptions(rest),
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
      body: deleteOptions(rest),
      signal,
    });
  }

  /** Asks for a pod to go in the way that respects PodDisruptionBudgets; does not wait for it to be gone. */
  async evict(
    pod: Pod | { metadata: { name: string; namespace?: string; uid?: string } },
    options: Omit<DeleteOptions, 'propagationPolicy'> = {},
  ): Promise<Eviction> {
    const { name, namespace, uid } = pod.metadata;
    const { signal, dryRun, preconditions = uid ? { uid } : undefined, gracePeriodSeconds } = options;
    const body = {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name, namespace },
      deleteOptions: { gracePeriodSeconds, preconditions },
    };
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace ?? '')}/pods/${encodeURIComponent(name)}/eviction`;
    try {
      await this.request('POST', path, { query: dryRun ? { dryRun: 'All' } : {}, body, signal, retries: 0 });
      return { outcome: 'evicted' };
    } catch (error) {
      if (!(error instanceof KubeApiError)) throw error;
      // A conflict is the uid precondition: another pod of this name took the place.
      if (error.isNotFound || error.isConflict) return { outcome: 'gone' };
      if (error.isTooManyRequests) {
        const causes = error.details?.causes?.map((cause) => cause.message).filter(Boolean) ?? [];
        return { outcome: 'blocked', message: causes.join('; ') || error.message };
      }
      throw error;
    }
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
    const {
      namespace,
      labelSelector,
      fieldSelector,
      resourceVersion,
      sendInitialEvents,
      timeoutSeconds,
      signal,
      onOpen,
    } = options;
    const path = pathOf(resource, namespace);
    const what = `WATCH ${path}`;
    const query: Query = {
      watch: true,
      allowWatchBookmarks: true,
      labelSelector,
      fieldSelector,
      resourceVersion,
      timeoutSeconds,
      ...(sendInitialEvents ? { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' } : {}),
    };
    let response: Answer | undefined;
    const started = performance.now();
    try {
      const authorization = await this.#authorization(what);
      response = await this.#connect().request(
        {
          method: 'GET',
          path: this.#prefix + path + queryString(query),
          headers: authorization ? { ...this.#headers, authorization } : this.#headers,
          signal,
          headersTimeoutMs: 60_000,
          bodyTimeoutMs: 0,
        },
        'stream',
      );
      this.#record('WATCH', path, response.statusCode, started);
      if (response.statusCode >= 300) {
        const text = await textOf(response, this.#bound(what, this.#limits.objectBytes));
        if (response.statusCode === 401) this.#forgetCredentials();
        const retryAfter = Number(response.headers['retry-after']) || undefined;
        throw new KubeApiError(what, response.statusCode, parseBody(text, response) as Status | string, retryAfter);
      }
      onOpen?.();
      await readLines(response, this.#bound(what, this.#limits.lineBytes), (line, bytes) => {
        this.stats.bytes += bytes;
        const event = JSON.parse(line) as WatchEvent<T> | { type: 'ERROR'; object: Status };
        if (event.type === 'ERROR') throw new KubeApiError(what, event.object.code ?? 500, event.object);
        onEvent(event);
      });
    } catch (error) {
      response?.drop();
      if (signal?.aborted) throw signal.reason;
      if (error instanceof KubeApiError) throw error;
      if (!response) this.#record('WATCH', path, 0, started);
      throw this.#unreachable(what, error);
    }
  }

  async serverVersion(): Promise<{ major: string; minor: string; gitVersion: string }> {
    return this.request('GET', '/version');
  }

  /** Whether the API server says it is ready to serve; never throws. */
  async ready(options: { timeoutMs?: number; signal?: AbortSignal | undefined } = {}): Promise<boolean> {
    const { timeoutMs = 2000, signal } = options;
    try {
      await this.request('GET', '/readyz', { timeoutMs, signal, retries: 0 });
      return true;
    } catch {
      return false;
    }
  }

  /** Drops all connections; running requests and watches fail with KubeUnreachableError. */
  async close(): Promise<void> {
    this.#closed = true;
    const transport = this.#transport;
    // What it holds of OpenSSL is large, and who keeps a closed client does not know that.
    this.#transport = undefined;
    await transport?.close();
  }

  /** One try: an answer with the whole of its body. */
  async #ask(exchange: Exchange, abandon: boolean, bound: Bound): Promise<{ response: Answer; text: string }> {
    exchange.signal?.throwIfAborted();
    const write = exchange.method === 'GET' || abandon ? undefined : lingering(exchange.signal);
    try {
      const response = await this.#connect().request(
        write ? { ...exchange, signal: write.signal } : exchange,
        'request',
      );
      return { response, text: await inTime(response, exchange.bodyTimeoutMs * WHOLE_ANSWER, bound) };
    } finally {
      write?.done();
    }
  }

  #bound(what: string, most: number): Bound {
    return { most, tooLarge: (limit) => this.#tooLarge(what, limit) };
  }

  #tooLarge(what: string, limit: string): AnswerTooLargeError {
    return new AnswerTooLargeError(`${what} at ${this.#origin}`, limit);
  }

  #connect(): Transport {
    if (this.#closed) throw Object.assign(new Error('the client is closed'), { code: 'ECLOSED' });
    this.#transport ??= this.#newTransport({});
    return this.#transport;
  }

  #newTransport(identity: Credentials): Transport {
    const { ca, cert, key, serverName, insecureSkipTlsVerify, liveness } = this.#options;
    const tls = { ca, cert, key, serverName, insecureSkipTlsVerify, ...identity };
    return newTransport({ origin: this.#origin, liveness, ...tls });
  }

  async #authorization(what: string): Promise<string | undefined> {
    const { credentials, tokenFile } = this.#options;
    if (credentials) {
      this.#plugin ??= this.#askPlugin(credentials);
      try {
        await this.#plugin;
      } catch (error) {
        this.#plugin = undefined;
        throw new KubeUnreachableError(`${what}: credentials`, error);
      }
    } else if (tokenFile && performance.now() - (this.#token?.readAt ?? Number.NEGATIVE_INFINITY) > TOKEN_FILE_MS) {
      const token = (await readFile(tokenFile, 'utf8')).trim();
      this.#token = { header: `Bearer ${token}`, readAt: performance.now() };
    }
    return this.#token?.header;
  }

  async #askPlugin(credentials: NonNullable<Connection['credentials']>): Promise<void> {
    const { token, cert, key } = await credentials();
    this.#token = token ? { header: `Bearer ${token}`, readAt: Number.POSITIVE_INFINITY } : undefined;
    if (cert && key) {
      const old = this.#transport;
      this.#transport = this.#newTransport({ cert, key });
      await old?.close();
    }
  }

  /** False when there are no other credentials to be had. */
  #forgetCredentials(): boolean {
    if (this.#options.credentials) {
      this.#plugin = undefined;
      return true;
    }
    if (this.#options.tokenFile) {
      this.#token = undefined;
      return true;
    }
    return false;
  }

  #unreachable(what: string, error: unknown): Error {
    if (error instanceof TypeError || error instanceof KubeUnreachableError || error instanceof CoppiceError)
      return error;
    return new KubeUnreachableError(`${what} at ${this.#origin}`, error);
  }

  #record(method: string, path: string, status: number, started: number, query?: Query): void {
    this.stats.requests++;
    if (method !== 'GET' && method !== 'WATCH' && !query?.dryRun) this.stats.writes++;
    this.#options.onRequest?.({ method, path, status, durationMs: performance.now() - started });
  }
}

function queryString(query: Query | undefined): string {
  let text = '';
  for (const name in query) {
    const value = query[name];
    if (value === undefined || value === '') continue;
    text += `${text ? '&' : '?'}${name}=${encodeURIComponent(value)}`;
  }
  return text;
}

function writeQuery(options: WriteOptions): Query {
  return { fieldValidation: options.fieldValidation ?? 'Strict', dryRun: options.dryRun ? 'All' : undefined };
}

/**
 * The signal of a write, later: what is under way may be carried out though nobody listens, and who stopped it would then act on a world
 * that changes behind their back (a namespace that was made after its deletion had looked for it).
 */
function lingering(signal: AbortSignal | undefined): { signal: AbortSignal; done(): void } {
  const late = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = () => {
    timer = setTimeout(() => late.abort(signal?.reason), LINGER_MS);
  };
  signal?.addEventListener('abort', onAbort);
  return {
    signal: late.signal,
    done() {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    },
  };
}

/** The body of an answer that may be slow, but not for ever. */
async function inTime(response: Answer, ms: number, bound: Bound): Promise<string> {
  let late: Error | undefined;
  const timer = setTimeout(() => {
    late = Object.assign(new Error(`no whole answer within ${ms / 1000} s`), { code: 'ETIMEDOUT' });
    response.drop();
  }, ms);
  try {
    return await textOf(response, bound);
  } catch (error) {
    throw late ?? error;
  } finally {
    clearTimeout(timer);
  }
}

function deleteOptions(options: Omit<DeleteOptions, 'signal' | 'dryRun'>): object | undefined {
  if (Object.values(options).every((value) => value === undefined)) return undefined;
  return { apiVersion: 'v1', kind: 'DeleteOptions', ...options };
}

function parseBody(text: string, response: Answer): unknown {
  if (!String(response.headers['content-type'] ?? '').startsWith('application/json')) return text;
  return text === '' ? {} : JSON.parse(text);
}

const STALE = new Set(['ECONNRESET', 'EPIPE', 'ERR_HTTP2_SESSION_ERROR', 'ERR_HTTP2_STREAM_CANCEL', 'UND_ERR_SOCKET']);

const isStaleConnection = (error: unknown): boolean => STALE.has((error as { code?: string }).code ?? '');
