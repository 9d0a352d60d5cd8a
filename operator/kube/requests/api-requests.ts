import { CoppiceError } from '../../api/errors.ts';
import { FIELD_MANAGER } from '../../api/group.ts';
import { sleep } from '../clock.ts';
import { KubeApiError, KubeUnreachableError, type Status } from '../errors.ts';
import type { Admit } from '../http/address-guard.ts';
import { ANSWER_LIMITS, type AnswerLimits, AnswerTooLargeError } from '../http/answer-limits.ts';
import { bodyTextOf, type Exchange, type ResponseHead, readLines, type SizeLimit } from '../http/exchange.ts';
import { type HttpProxy, proxyTo } from '../http/http-proxy.ts';
import { type Liveness, newTransport, type Transport } from '../http/transport.ts';
import { tenantTurns } from '../http/turns.ts';
import { delayedAbort, inTime, parseBody } from '../http/whole-answer.ts';
import type { Connection, KubeCredentials } from '../kubeconfig.ts';
import { Authorization } from './authorization.ts';

export interface KubeClientOptions extends Connection {
  userAgent?: string;
  /**
   * Called once for each request that got an answer or failed (status 0); for metrics and for tests that count
   * requests.
   */
  onRequest?: (request: RequestSeen) => void;
  /** Called with the paths of fields that were left out of a write (ApplyOptions.leaveOutUndeclared). */
  onUndeclared?: (kind: string, fields: readonly string[]) => void;
  liveness?: Liveness;
  /** See TransportOptions. */
  reachMs?: number;
  /** Limits on answers; default ANSWER_LIMITS. */
  limits?: AnswerLimits;
  /** Checks each address before connecting; throws to refuse. Absent: all are allowed. */
  admit?: Admit;
}

export interface RequestSeen {
  method: string;
  path: string;
  status: number;
  durationMs: number;
}

/** Absent and empty values are not sent. */
export type Query = Record<string, string | number | boolean | undefined>;

export interface RequestOptions {
  query?: Query;
  /** Sent as JSON. */
  body?: unknown;
  /** Default application/json. */
  contentType?: string;
  signal?: AbortSignal | undefined;
  /**
   * Longest silence before the first byte and between bytes; default 30 s, 40 s for writes. The whole answer may take
   * four times as long.
   */
  timeoutMs?: number;
  /** Most bytes of the answer; default the client's limit for an object. */
  maxBytes?: number;
  /** Most retries when the server says "later" (429 or 503 with a Retry-After of at most 30 s). Default 3. */
  retries?: number;
  /** For a write: abort immediately, even if the server may carry it out. Default false. */
  abandon?: boolean;
  /**
   * A small answer, handled before those that wait for their turn: it tells whether the server is silent. Default
   * false.
   */
  first?: boolean;
}

/** Options of a streaming request. */
interface StreamOptions {
  query: Query;
  signal?: AbortSignal | undefined;
  /** The server accepted the request; lines may follow. */
  onOpen?: (() => void) | undefined;
}

/** Content type of server-side apply. */
export const APPLY = 'application/apply-patch+yaml';

/** Longest Retry-After that is waited for; a longer one is an error at once, and the caller decides when to retry. */
const LONGEST_PAUSE_S = 30;
const READ_MS = 30_000;
/**
 * An API server gives admission of a write 34 s, and one webhook 30 s: with a shorter timeout the error would not name
 * the dead webhook.
 */
const WRITE_MS = 40_000;
/** Multiple of the timeout for the whole answer: a server that sends a byte now and then is never silent. */
const WHOLE_ANSWER = 4;

/**
 * Requests to one API server: connections, authorization, retries and limits on answers. Errors are those of
 * KubeClient.
 */
export class ApiRequests {
  /** See KubeClient. */
  readonly stats = { requests: 0, writes: 0, bytes: 0 };
  readonly limits: AnswerLimits;
  readonly #origin: string;
  readonly #prefix: string;
  readonly #options: KubeClientOptions;
  readonly #headers: Record<string, string | string[]>;
  readonly #authorization: Authorization;
  /** All connections to the API server are made here, so none bypasses the proxy. */
  readonly #proxy: HttpProxy | undefined;
  #transport: Transport | undefined;
  #closed = false;

  constructor(options: KubeClientOptions) {
    const url = new URL(options.server);
    this.#origin = url.origin;
    this.#prefix = url.pathname.replace(/\/+$/, '');
    this.#options = options;
    this.#proxy = proxyTo(options.server, options.proxy);
    this.limits = options.limits ?? ANSWER_LIMITS;
    this.#headers = { accept: 'application/json', 'user-agent': options.userAgent ?? FIELD_MANAGER };
    const { impersonate } = options;
    if (impersonate) {
      this.#headers['impersonate-user'] = impersonate.user;
      if (impersonate.uid) this.#headers['impersonate-uid'] = impersonate.uid;
      if (impersonate.groups?.length) this.#headers['impersonate-group'] = impersonate.groups;
      // As in client-go: characters that are illegal in a header name are percent-encoded; the API server decodes them.
      for (const [key, values] of Object.entries(impersonate.extra ?? {}))
        this.#headers[`impersonate-extra-${encodeURIComponent(key).replace(/[()]/g, escape).toLowerCase()}`] = values;
    }
    this.#authorization = new Authorization(options, async (identity) => {
      const old = this.#transport;
      this.#transport = this.#newTransport(identity);
      await old?.close();
    });
  }

  /** See KubeClient. */
  async request<T = any>(method: string, path: string, options: RequestOptions = {}): Promise<T> {
    const {
      query,
      body,
      contentType = 'application/json',
      signal,
      timeoutMs = method === 'GET' ? READ_MS : WRITE_MS,
      retries = 3,
      abandon = false,
      first = false,
      maxBytes = this.limits.objectBytes,
    } = options;
    const what = `${method} ${path}`;
    const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const target = this.#prefix + path + queryString(query);
    // The server closed an idle connection: retry idempotent requests.
    const repeatable = method === 'GET' || contentType === APPLY;
    let fresh = false;

    for (let attempt = 0; ; attempt++) {
      const headers = { ...this.#headers };
      if (payload) headers['content-type'] = contentType;
      const authorization = await this.#authorization.header(what);
      if (authorization) headers.authorization = authorization;
      const started = performance.now();
      let response: ResponseHead;
      let text: string;
      try {
        const limits = { signal, headersTimeoutMs: timeoutMs, bodyTimeoutMs: timeoutMs };
        const exchange = { method, path: target, headers, body: payload, ...limits };
        ({ response, text } = await this.#ask(exchange, abandon, this.#bound(what, maxBytes, first)));
      } catch (error) {
        if (signal?.aborted) throw signal.reason;
        this.#report(method, path, 0, started, query);
        if (repeatable && attempt === 0 && isStaleConnection(error)) continue;
        throw this.#unreachable(what, error);
      }
      this.stats.bytes += text.length;
      this.#report(method, path, response.statusCode, started, query);
      if (response.statusCode < 300) return parseBody(text, response) as T;

      if (response.statusCode === 401 && !fresh && this.#authorization.forget()) {
        fresh = true;
        continue;
      }
      const retryAfter = Number(response.headers['retry-after']) || undefined;
      const later = response.statusCode === 429 || response.statusCode === 503;
      if (later && retryAfter && retryAfter <= LONGEST_PAUSE_S && attempt < retries) {
        await sleep(retryAfter * 1000 * (0.75 + Math.random() / 2), signal);
        if (signal?.aborted) throw signal.reason;
        continue;
      }
      throw new KubeApiError(what, response.statusCode, parseBody(text, response) as Status | string, retryAfter);
    }
  }

  /**
   * A streaming GET: `onLine` gets each line of the answer and must not block; an exception from it ends the stream.
   * Resolves when the server ends the stream. Counted, and named in errors, as WATCH.
   */
  async stream(path: string, { query, signal, onOpen }: StreamOptions, onLine: (line: string) => void): Promise<void> {
    const what = `WATCH ${path}`;
    let response: ResponseHead | undefined;
    const started = performance.now();
    try {
      const authorization = await this.#authorization.header(what);
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
      this.#report('WATCH', path, response.statusCode, started);
      if (response.statusCode >= 300) {
        const text = await bodyTextOf(response, this.#bound(what, this.limits.objectBytes));
        if (response.statusCode === 401) this.#authorization.forget();
        const retryAfter = Number(response.headers['retry-after']) || undefined;
        throw new KubeApiError(what, response.statusCode, parseBody(text, response) as Status | string, retryAfter);
      }
      onOpen?.();
      await readLines(response, this.#bound(what, this.limits.lineBytes), (line, bytes) => {
        this.stats.bytes += bytes;
        onLine(line);
      });
    } catch (error) {
      response?.drop();
      if (signal?.aborted) throw signal.reason;
      if (error instanceof KubeApiError) throw error;
      if (!response) this.#report('WATCH', path, 0, started);
      throw this.#unreachable(what, error);
    }
  }

  /** Closes all connections; running requests and watches fail with KubeUnreachableError. */
  async close(): Promise<void> {
    this.#closed = true;
    const transport = this.#transport;
    // Free its OpenSSL memory even if the caller keeps the closed client.
    this.#transport = undefined;
    await transport?.close();
  }

  /** Error of an answer beyond the limits. @param limit as text */
  tooLarge(what: string, limit: string): AnswerTooLargeError {
    return new AnswerTooLargeError(`${what} at ${this.#origin}`, limit);
  }

  /** One attempt: an answer with its whole body. */
  async #ask(
    exchange: Exchange,
    abandon: boolean,
    bound: SizeLimit,
  ): Promise<{ response: ResponseHead; text: string }> {
    exchange.signal?.throwIfAborted();
    const write = exchange.method === 'GET' || abandon ? undefined : delayedAbort(exchange.signal);
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

  #bound(what: string, most: number, first = false): SizeLimit {
    return {
      most,
      tooLarge: (limit) => this.tooLarge(what, limit),
      ...(this.limits.inTurns && !first && { turns: tenantTurns }),
    };
  }

  #connect(): Transport {
    if (this.#closed) throw Object.assign(new Error('the client is closed'), { code: 'ECLOSED' });
    this.#transport ??= this.#newTransport({});
    return this.#transport;
  }

  #newTransport(identity: KubeCredentials): Transport {
    const { ca, cert, key, serverName, insecureSkipTlsVerify, liveness, admit, reachMs } = this.#options;
    const tls = { ca, cert, key, serverName, insecureSkipTlsVerify, ...identity };
    return newTransport({ origin: this.#origin, liveness, admit, reachMs, proxy: this.#proxy, ...tls });
  }

  #unreachable(what: string, error: unknown): Error {
    if (error instanceof TypeError || error instanceof KubeUnreachableError || error instanceof CoppiceError)
      return error;
    return new KubeUnreachableError(`${what} at ${this.#origin}`, error);
  }

  #report(method: string, path: string, status: number, started: number, query?: Query): void {
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

const STALE = new Set(['ECONNRESET', 'EPIPE', 'ERR_HTTP2_SESSION_ERROR', 'ERR_HTTP2_STREAM_CANCEL', 'UND_ERR_SOCKET']);

const isStaleConnection = (error: unknown): boolean => STALE.has((error as { code?: string }).code ?? '');
