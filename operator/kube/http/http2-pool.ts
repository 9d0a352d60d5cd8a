import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  connect as overSocket,
} from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { afterLoopTime } from '../clock.ts';
import type { Exchange, ResponseHead } from './exchange.ts';
import { passFenceToSend } from './fence.ts';

interface Http2PoolOptions {
  /** A TLS connection on which HTTP/2 was agreed. */
  dial: () => Promise<TLSSocket>;
  /** Scheme, host and port. */
  origin: string;
  /** Most connections; further requests wait for room. Absent: as many as the streams need. */
  connections?: number;
  /** Time between pings, which keep bytes moving on a live connection. */
  pingMs: number;
}

/** Assumed stream limit of a server that states none; Kubernetes allows 100. */
const STREAMS = 100;
const STREAM_WINDOW = 1 << 20;
const CONNECTION_WINDOW = 4 << 20;
const IDLE_MS = 60_000;
/** Most times that a request moves to another connection because its own ended before the server read it. */
const MOST_MOVES = 3;

/** Requests to one server over few HTTP/2 connections, on node:http2. */
export class Http2Pool {
  readonly #options: Http2PoolOptions;
  readonly #connections = new Set<Http2Connection>();
  readonly #waiting = new Set<{ go(connection: Http2Connection): void; fail(error: Error): void }>();
  #closed = false;

  constructor(options: Http2PoolOptions) {
    this.#options = options;
  }

  /**
   * Resolves with the head of the answer; its body streams. Rejects with the signal's reason, the connection's error,
   * or the error of `dial`.
   */
  async request(exchange: Exchange): Promise<ResponseHead> {
    for (let moves = 0; ; moves++) {
      const connection = await this.#withRoom(exchange.signal);
      try {
        return await connection.send(exchange);
      } catch (error) {
        if (!(error instanceof UnseenError)) throw error;
        if (moves === MOST_MOVES) throw error.cause;
      }
    }
  }

  /** Closes all connections; running requests fail. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const waiter of this.#waiting) waiter.fail(closedError());
    await Promise.all([...this.#connections].map((connection) => connection.close()));
  }

  /** A connection with one stream reserved, first come, first served. */
  #withRoom(signal: AbortSignal | undefined): Promise<Http2Connection> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason as Error);
      if (this.#closed) return reject(closedError());
      const onAbort = () => waiter.fail(signal!.reason as Error);
      const leave = () => {
        this.#waiting.delete(waiter);
        signal?.removeEventListener('abort', onAbort);
      };
      const waiter = {
        go(connection: Http2Connection) {
          leave();
          resolve(connection);
        },
        fail(error: Error) {
          leave();
          reject(error);
        },
      };
      signal?.addEventListener('abort', onAbort);
      this.#waiting.add(waiter);
      this.#serve();
    });
  }

  #serve(): void {
    if (this.#closed) return;
    for (const waiter of this.#waiting) {
      const connection = this.#take();
      if (!connection) return;
      waiter.go(connection);
    }
  }

  #take(): Http2Connection | undefined {
    const { connections: most = Number.POSITIVE_INFINITY } = this.#options;
    let usable = 0;
    for (const connection of this.#connections) {
      if (connection.take()) return connection;
      if (!connection.leaving) usable++;
    }
    if (usable >= most) return undefined;
    const opened = new Http2Connection(this.#options, () => {
      if (opened.ended) this.#connections.delete(opened);
      this.#serve();
    });
    this.#connections.add(opened);
    opened.take();
    return opened;
  }
}

/** The server has not read the request: sending again is safe for any method. */
class UnseenError extends Error {}

const closedError = () => Object.assign(new Error('the client was closed'), { code: 'ECLOSED' });
const silentFor = (ms: number) => Object.assign(new Error(`no answer within ${ms / 1000} s`), { code: 'ETIMEDOUT' });
const cutOff = () => Object.assign(new Error('the connection ended before the answer did'), { code: 'ECONNRESET' });

class Http2Connection {
  /** Takes no new streams: the connection ends, or the server sent GOAWAY. */
  leaving = false;
  ended = false;
  readonly #session: Promise<ClientHttp2Session>;
  /** Called when there may be room for a stream, here or on a replacement connection. */
  readonly #onChange: () => void;
  readonly #stop = new AbortController();
  #socket: TLSSocket | undefined;
  #mostStreams = () => STREAMS;
  /** Streams in use. */
  #taken = 0;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: Http2PoolOptions, onChange: () => void) {
    this.#onChange = onChange;
    this.#session = this.#connect(options);
    this.#session.catch(() => this.#end());
  }

  /** Reserves a stream; returns false when there is no room. `send` releases it. */
  take(): boolean {
    if (this.leaving || this.#taken >= this.#mostStreams()) return false;
    this.#taken++;
    clearTimeout(this.#idle);
    return true;
  }

  async send(exchange: Exchange): Promise<ResponseHead> {
    let stream: ClientHttp2Stream;
    try {
      const session = await this.#session;
      exchange.signal?.throwIfAborted();
      stream = this.#begin(session, exchange);
    } catch (error) {
      this.#giveBack();
      throw error;
    }
    stream.once('close', () => this.#giveBack());
    return answerOf(stream, exchange);
  }

  async close(): Promise<void> {
    this.#stop.abort(closedError());
    const session = await this.#session.catch(() => undefined);
    const socket = this.#socket;
    if (!session || !socket || socket.closed) return;
    const closed = new Promise((resolve) => socket.once('close', resolve));
    session.destroy(closedError());
    // A graceful close would wait for pending writes, and for a server that may be dead.
    socket.destroy();
    await closed;
  }

  #begin(session: ClientHttp2Session, { method, path, headers, body }: Exchange): ClientHttp2Stream {
    // The fence is checked here because the request may have waited for a connection.
    passFenceToSend(method, path);
    try {
      session.ref();
      return session.request({ ...headers, ':method': method, ':path': path }, { endStream: !body });
    } catch (error) {
      if (error instanceof TypeError) throw error;
      // The connection ended, or got GOAWAY, since it was chosen.
      this.#leave();
      throw new UnseenError('not sent', { cause: error });
    }
  }

  async #connect({ dial, origin, pingMs }: Http2PoolOptions): Promise<ClientHttp2Session> {
    const socket = await dial();
    this.#socket = socket;
    if (this.#stop.signal.aborted) {
      socket.destroy();
      throw this.#stop.signal.reason;
    }
    const session = overSocket(origin, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW },
    });
    this.#mostStreams = () => Math.min(STREAMS, session.remoteSettings?.maxConcurrentStreams ?? STREAMS);
    // Each stream reports its own error.
    session.on('error', () => {});
    session.once('connect', () => {
      // The session may be closed at this moment; a throwing listener would end the operator.
      if (!session.destroyed) session.setLocalWindowSize(CONNECTION_WINDOW);
    });
    session.once('goaway', () => this.#leave());
    const pings = setInterval(() => {
      if (!session.destroyed && !session.closed) session.ping(() => {});
    }, pingMs).unref();
    session.once('close', () => {
      clearInterval(pings);
      this.#end();
    });
    return session;
  }

  #leave(): void {
    this.leaving = true;
    clearTimeout(this.#idle);
    this.#onChange();
  }

  #end(): void {
    this.ended = true;
    this.#leave();
  }

  #giveBack(): void {
    this.#taken--;
    if (this.#taken === 0 && !this.ended) void this.#rest();
    this.#onChange();
  }

  /** An idle connection does not keep the process alive, and closes after a while. */
  async #rest(): Promise<void> {
    const session = await this.#session.catch(() => undefined);
    if (!session || session.destroyed || this.#taken > 0) return;
    session.unref();
    this.#idle = setTimeout(() => {
      this.#leave();
      session.close();
    }, IDLE_MS).unref();
  }
}

/** Resolves with the head of the answer. */
function answerOf(stream: ClientHttp2Stream, exchange: Exchange): Promise<ResponseHead> {
  const { signal, body, headersTimeoutMs, bodyTimeoutMs } = exchange;
  return new Promise((resolve, reject) => {
    let failure: Error | undefined;
    let answered = false;
    const cancel = (reason: Error) => {
      failure ??= reason;
      reject(reason);
      drop(stream);
    };
    const onAbort = () => cancel(signal!.reason as Error);
    const forget = afterLoopTime(headersTimeoutMs, () => cancel(silentFor(headersTimeoutMs)));
    signal?.addEventListener('abort', onAbort);
    // Reading the body reports the error; without a listener it would end the process.
    stream.on('error', (error) => {
      failure ??= error;
    });
    stream.once('close', () => {
      forget();
      signal?.removeEventListener('abort', onAbort);
      // Building an unused error costs more than the rest of a small request: its stack.
      if (answered) return;
      if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM)
        reject(new UnseenError('refused', { cause: failure ?? cutOff() }));
      else reject(failure ?? cutOff());
    });
    stream.once('response', (headers) => {
      forget();
      answered = true;
      resolve(new Http2Answer(stream, headers, bodyTimeoutMs, () => failure));
    });
    if (body) stream.end(body);
  });
}

/**
 * Ends a stream that has no reader. Always with a code: `close()` without one followed by `destroy()`, while part of
 * the request's body is unsent, sends Node (seen in 24.21) into an endless loop of empty frames that uses up all
 * memory.
 */
function drop(stream: ClientHttp2Stream): void {
  if (!stream.closed) stream.close(constants.NGHTTP2_CANCEL);
  stream.destroy();
}

class Http2Answer implements ResponseHead {
  readonly statusCode: number;
  readonly headers: IncomingHttpHeaders;
  readonly #stream: ClientHttp2Stream;
  readonly #silenceMs: number;
  readonly #failure: () => Error | undefined;

  constructor(
    stream: ClientHttp2Stream,
    headers: IncomingHttpHeaders,
    silenceMs: number,
    failure: () => Error | undefined,
  ) {
    this.#silenceMs = silenceMs;
    this.statusCode = Number(headers[':status']);
    this.headers = headers;
    this.#stream = stream;
    this.#failure = failure;
  }

  read(onData: (chunk: Buffer) => void | Promise<void>): Promise<void> {
    const stream = this.#stream;
    const silenceMs = this.#silenceMs;
    return new Promise((resolve, reject) => {
      let whole = false;
      let handled: void | Promise<void>;
      const cut = () => reject(this.#failure() ?? cutOff());
      const fail = (error: Error) => {
        reject(error);
        drop(stream);
      };
      let forget = () => {};
      const listen = () => {
        forget();
        if (silenceMs > 0 && !stream.destroyed) forget = afterLoopTime(silenceMs, () => fail(silentFor(silenceMs)));
      };
      listen();
      stream.on('data', (chunk: Buffer) => {
        listen();
        try {
          handled = onData(chunk);
        } catch (error) {
          return fail(error as Error);
        }
        if (!handled) return;
        // Waiting for a turn here is not silence of the server.
        forget();
        stream.pause();
        const goOn = () => {
          listen();
          stream.resume();
        };
        handled.then(goOn, fail);
      });
      stream.once('end', () => {
        // Node ends the body of a cut-off stream as if it were complete.
        if (stream.rstCode) return cut();
        whole = true;
        // The stream may end while the last piece is still being handled.
        void Promise.resolve(handled).then(resolve, reject);
      });
      stream.once('close', () => {
        forget();
        if (!whole) cut();
      });
      if (stream.destroyed) cut();
    });
  }

  drop(): void {
    drop(this.#stream);
  }
}
