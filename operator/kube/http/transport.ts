import { isIP, type Socket } from 'node:net';
import { createSecureContext, type TLSSocket, connect as tlsConnect } from 'node:tls';
import { Agent, buildConnector } from 'undici';
import { afterLoopTime } from '../clock.ts';
import { type Admit, admittedAddress, guardedLookup } from './address-guard.ts';
import type { Answer, Exchange } from './exchange.ts';
import { passFenceToSend } from './fence.ts';
import { connectThrough, type HttpProxy } from './http-proxy.ts';
import { Http2Pool } from './http2-pool.ts';

export interface TlsMaterial {
  /** PEM. Absent: the system's certificate authorities. */
  ca?: string | undefined;
  /** PEM. */
  cert?: string | undefined;
  key?: string | undefined;
  /** Name to expect in the server's certificate, where it differs from the URL's host. */
  serverName?: string | undefined;
  insecureSkipTlsVerify?: boolean | undefined;
}

export interface TransportOptions extends TlsMaterial {
  /** Scheme, host and port. */
  origin: string;
  liveness?: Liveness | undefined;
  /** Asked about each address before it is connected to. Absent: all will do. */
  admit?: Admit | undefined;
  /** Opens the connections to the server, with which TLS is spoken through it. Absent: they are opened directly. */
  proxy?: HttpProxy | undefined;
  /** How long the host may take to take a connection, in ms, before another is tried; absent: as long as the whole of it. */
  reachMs?: number | undefined;
}

export interface Transport {
  /** `stream`: it lasts, so it does not share the few connections of those that end by themselves. */
  request(exchange: Exchange, kind: 'request' | 'stream'): Promise<Answer>;
  /** Sockets that are open now. */
  sockets(): number;
  /** Drops all connections; requests that are running fail. */
  close(): Promise<void>;
}

const CONNECT_MS = 10_000;
const PING_MS = 15_000;
/** Two pings unanswered; noticed 45 s after the last answer at the latest, so that a minute is enough to tell people. */
const SILENCE_MS = 25_000;
/** A watch over HTTP/1.1 has no pings, but a bookmark about each minute. */
const SILENCE_WITHOUT_PINGS_MS = 150_000;

/** How long a quiet connection may be before it counts as dead; tests shorten it. */
export interface Liveness {
  pingMs: number;
  silenceMs: number;
}

/** Opens no connection yet. HTTP/2 where the server can, which every API server does; what stands before one may not. */
export function newTransport(options: TransportOptions): Transport {
  const { origin, liveness = { pingMs: PING_MS, silenceMs: SILENCE_MS }, admit, reachMs, proxy, ...tls } = options;
  const { protocol, hostname, port } = new URL(origin);
  const sockets = watchSilence(liveness);
  // Parsed once, not for each connection.
  const secureContext = createSecureContext({ ca: tls.ca, cert: tls.cert, key: tls.key });
  const rejectUnauthorized = !tls.insecureSkipTlsVerify;
  const dialing = new Set<TLSSocket>();

  const host = hostname.replace(/^\[|\]$/g, '');
  const guard = admit && { lookup: guardedLookup(admit) };
  const target = { host, port: Number(port || 443) };
  const closing = new AbortController();
  /** A connection to the server that a proxy opens. An address was admitted before. */
  const tunnel = async (by: HttpProxy): Promise<Socket> => {
    const at = admit && !isIP(host) ? await admittedAddress(host, admit) : host;
    return connectThrough(by, { ...target, host: at }, { withinMs: CONNECT_MS, signal: closing.signal });
  };
  const dial = async (): Promise<TLSSocket> => {
    // An address is not looked up.
    if (isIP(host)) admit?.(host);
    const socket = tlsConnect({
      ...guard,
      ...target,
      ...(proxy && { socket: await tunnel(proxy) }),
      servername: tls.serverName ?? (isIP(host) ? '' : host),
      secureContext,
      rejectUnauthorized,
      ALPNProtocols: ['h2', 'http/1.1'],
    });
    dialing.add(socket);
    try {
      await connected(socket, reachMs);
    } finally {
      dialing.delete(socket);
    }
    sockets.add(socket);
    if (socket.alpnProtocol === 'h2') return socket;
    socket.destroy();
    throw new OnlyHttp1Error();
  };

  const pool = { dial, origin, pingMs: liveness.pingMs };
  const http2 = { request: new Http2Pool({ ...pool, connections: 2 }), stream: new Http2Pool(pool) };
  let http1: Agent | undefined = protocol === 'http:' ? newHttp1() : undefined;

  function newHttp1(): Agent {
    const connect = buildConnector({
      ...guard,
      secureContext,
      rejectUnauthorized,
      ...(tls.serverName ? { servername: tls.serverName } : {}),
      allowH2: false,
      timeout: CONNECT_MS,
    } as buildConnector.BuildOptions);
    const tracked: buildConnector.connector = (wanted, callback) => {
      const open = (through?: Socket) =>
        connect({ ...wanted, ...(through && { httpSocket: through }) }, (...result) => {
          if (result[1]) sockets.add(result[1]);
          callback(...result);
        });
      if (proxy) void tunnel(proxy).then(open, (error: Error) => callback(error, null));
      else open();
    };
    // Writes and reads are few beside the watches, each of which needs a connection.
    return new Agent({ connect: tracked, allowH2: false, keepAliveTimeout: 60_000, keepAliveMaxTimeout: 60_000 });
  }

  return {
    async request(exchange, kind) {
      if (!http1) {
        try {
          return await http2[kind].request(exchange);
        } catch (error) {
          if (!(error instanceof OnlyHttp1Error)) throw error;
          http1 ??= newHttp1();
        }
      }
      if (isIP(host)) admit?.(host);
      return overHttp1(http1, origin, exchange);
    },
    sockets: () => sockets.size(),
    async close() {
      closing.abort(Object.assign(new Error('the client was closed'), { code: 'ECLOSED' }));
      for (const socket of dialing) socket.destroy();
      await Promise.all([http2.request.close(), http2.stream.close(), http1?.destroy()]);
      sockets.stop();
    },
  };
}

class OnlyHttp1Error extends Error {}

function connected(socket: TLSSocket, reachMs?: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = (ms: number) =>
      socket.destroy(Object.assign(new Error(`no connection within ${ms / 1000} s`), { code: 'ETIMEDOUT' }));
    const late = afterLoopTime(CONNECT_MS, () => giveUp(CONNECT_MS));
    const unreached =
      reachMs === undefined ? undefined : afterLoopTime(reachMs, () => socket.connecting && giveUp(reachMs));
    const settled = () => {
      late();
      unreached?.();
    };
    let failure: Error | undefined;
    socket.once('secureConnect', () => {
      settled();
      resolve();
    });
    socket.on('error', (error) => {
      failure ??= error;
    });
    socket.once('close', () => {
      settled();
      reject(failure ?? Object.assign(new Error('the server hung up'), { code: 'ECONNRESET' }));
    });
  });
}

async function overHttp1(agent: Agent, origin: string, exchange: Exchange): Promise<Answer> {
  const { method, path, headers, signal, headersTimeoutMs, bodyTimeoutMs } = exchange;
  passFenceToSend(method, path);
  const {
    statusCode,
    headers: answered,
    body,
  } = await agent.request({
    origin,
    path,
    method,
    headers,
    body: exchange.body ?? null,
    signal: signal ?? null,
    headersTimeout: headersTimeoutMs,
    bodyTimeout: bodyTimeoutMs,
  });
  return {
    statusCode,
    headers: answered,
    async read(onData) {
      for await (const chunk of body) await onData(chunk as Buffer);
    },
    drop: () => void body.on('error', () => {}).destroy(),
  };
}

/**
 * A connection whose other end vanished without a word (host gone, NAT entry lost) stays "open" for many minutes, and a watch on it
 * silently shows an old world. HTTP/2 pings make bytes come in on every live connection: no bytes, no life.
 */
function watchSilence({ pingMs, silenceMs }: Liveness) {
  const watched = new Map<Socket, { bytes: number; silentMs: number }>();
  let timer: NodeJS.Timeout | undefined;
  const stop = () => {
    clearInterval(timer);
    timer = undefined;
  };
  let looked = performance.now();
  const reap = () => {
    const now = performance.now();
    // Who was busy or stopped itself has heard nobody: what came in meanwhile is read only after this.
    const passed = Math.min(now - looked, pingMs);
    looked = now;
    for (const [socket, seen] of watched) {
      if (socket.bytesRead !== seen.bytes) {
        seen.bytes = socket.bytesRead;
        seen.silentMs = 0;
        continue;
      }
      seen.silentMs += passed;
      const h2 = (socket as { alpnProtocol?: string }).alpnProtocol === 'h2';
      if (seen.silentMs > (h2 ? silenceMs : SILENCE_WITHOUT_PINGS_MS)) {
        socket.destroy(Object.assign(new Error('connection is silent: pings are not answered'), { code: 'ESILENT' }));
      }
    }
  };
  return {
    add(socket: Socket) {
      watched.set(socket, { bytes: socket.bytesRead, silentMs: 0 });
      socket.once('close', () => {
        watched.delete(socket);
        if (watched.size === 0) stop();
      });
      if (timer) return;
      looked = performance.now();
      timer = setInterval(reap, pingMs).unref();
    },
    size: () => watched.size,
    stop,
  };
}
