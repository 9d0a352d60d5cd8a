import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  connect as overSocket,
} from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { afterLoopTime } from '../clock.ts';
import type { Answer, Exchange } from './exchange.ts';
import { passFenceToSend } from './fence.ts';

export interface Http2PoolOptions {
  /** A TLS connection on which HTTP/2 was agreed. */
  dial: () => Promise<TLSSocket>;
  /** Scheme, host and port. */
  origin: string;
  /** Connections at most; what finds no room on them waits. Absent: as many as the streams need. */
  connections?: number;
  /** Time between pings, which keep a connection that is alive from being silent. */
  pingMs: number;
}

/** Of a server that does not say how many it allows; Kubernetes' allows 100. */
const STREAMS = 100;
const STREAM_WINDOW = 1 << 20;
const CONNECTION_WINDOW = 4 << 20;
const IDLE_MS = 60_000;
/** How often a request goes to another connection because its own ended before the server looked at it. */
const MOST_MOVES = 3;

/** Requests to one server over few connections, on node:http2. */
export class Http2Pool {
  readonly #options: Http2PoolOptions;
  readonly #connections = new Set<Http2Connection>();
  readonly #waiting = new Set<{ go(connection: Http2Connection): void; fail(error: Error): void }>();
  #closed = false;

  constructor(options: Http2PoolOptions) {
    this.#options = options;
  }

  /**
   * Resolves with the answer's head; its body streams. Rejects with the signal's reason, with what the connection ended with, or
   * with what `dial` rejects with.
   */
  async request(exchange: Exchange): Promise<Answer> {
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

  /** Drops all connections; requests that are running fail. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const waiter of this.#waiting) waiter.fail(closedError());
    await Promise.all([...this.#connections].map((connection) => connection.close()));
  }

  /** A connection with one stream of it taken, in the order of asking. */
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

/** The server has not looked at the request: it may be sent again, whatever it is. */
class UnseenError extends Error {}

const closedError = () => Object.assign(new Error('the client was closed'), { code: 'ECLOSED' });
const silentFor = (ms: number) => Object.assign(new Error(`no answer within ${ms / 1000} s`), { code: 'ETIMEDOUT' });
const cutOff = () => Object.assign(new Error('the connection ended before the answer did'), { code: 'ECONNRESET' });

class Http2Connection {
  /** No new streams: it ends, or the server has asked for that. */
  leaving = false;
  ended = false;
  readonly #session: Promise<ClientHttp2Session>;
  /** There may be room for a stream, here or on a connection that takes the place of this one. */
  readonly #onChange: () => void;
  readonly #stop = new AbortController();
  #socket: TLSSocket | undefined;
  #mostStreams = () => STREAMS;
  /** Streams taken. */
  #taken = 0;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: Http2PoolOptions, onChange: () => void) {
    this.#onChange = onChange;
    this.#session = this.#connect(options);
    this.#session.catch(() => this.#end());
  }

  /** Whether there was room for one more stream, which is taken then; `send` gives it back. */
  take(): boolean {
    if (this.leaving || this.#taken >= this.#mostStreams()) return false;
    this.#taken++;
    clearTimeout(this.#idle);
    return true;
  }

  async send(exchange: Exchange): Promise<Answer> {
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
    // It would wait for what is being written, and for a server that does not listen any more.
    socket.destroy();
    await closed;
  }

  #begin(session: ClientHttp2Session, { method, path, headers, body }: Exchange): ClientHttp2Stream {
    // It may have waited for a connection, or for room on one.
    passFenceToSend(method, path);
    try {
      session.ref();
      return session.request({ ...headers, ':method': method, ':path': path }, { endStream: !body });
    } catch (error) {
      if (error instanceof TypeError) throw error;
      // It has ended, or was asked to end, since it was chosen.
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
    // Each stream says itself what has happened.
    session.on('error', () => {});
    session.once('connect', () => {
      // Closed in this very moment: what a listener throws would end the operator.
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

  /** A connection that nobody uses keeps no process from ending, and does not stay for long. */
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

/** Resolves when the head of the answer has come. */
function answerOf(stream: ClientHttp2Stream, exchange: Exchange): Promise<Answer> {
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
    // Reported where the body is read; without a listener it would end the process.
    stream.on('error', (error) => {
      failure ??= error;
    });
    stream.once('close', () => {
      forget();
      signal?.removeEventListener('abort', onAbort);
      // An error that nobody hears costs more than all else of a small request: its stack.
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
 * Ends a stream that nobody listens to any more. Always with a code: `close()` without one and then `destroy()`, while a part of the
 * request's body is unsent, keeps Node (seen in 24.21) in an endless loop of empty frames, until all memory is gone.
 */
function drop(stream: ClientHttp2Stream): void {
  if (!stream.closed) stream.close(constants.NGHTTP2_CANCEL);
  stream.destroy();
}

class Http2Answer implements Answer {
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
        // What waits here for its turn is no silence of the server.
        forget();
        stream.pause();
        const goOn = () => {
          listen();
          stream.resume();
        };
        handled.then(goOn, fail);
      });
      stream.once('end', () => {
        // Node ends the body of a stream that was cut off as if it were whole.
        if (stream.rstCode) return cut();
        whole = true;
        // It may end while the last piece still waits.
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
