import { isIP, type Socket } from 'node:net';
import { createSecureContext, type TLSSocket, connect as tlsConnect } from 'node:tls';
import { Agent, buildConnector } from 'undici';
import { afterLoopTime } from '../clock.ts';
import { type Admit, admittedAddress, guardedLookup } from './address-guard.ts';
import type { Exchange, ResponseHead } from './exchange.ts';
import { passFenceToSend } from './fence.ts';
import { connectThrough, type HttpProxy } from './http-proxy.ts';
import { Http2Pool } from './http2-pool.ts';

export interface TlsMaterial {
  /** PEM. Absent: the system's certificate authorities. */
  ca?: string | undefined;
  /** PEM. */
  cert?: string | undefined;
  key?: string | undefined;
  /** Expected name in the server's certificate. Absent: the URL's host. */
  serverName?: string | undefined;
  insecureSkipTlsVerify?: boolean | undefined;
}

interface TransportOptions extends TlsMaterial {
  /** Scheme, host and port. */
  origin: string;
  liveness?: Liveness | undefined;
  /** Checks each address before connecting. Absent: all are allowed. */
  admit?: Admit | undefined;
  /** Proxy to the server; TLS with the server runs through it. Absent: direct connections. */
  proxy?: HttpProxy | undefined;
  /** Time for one address to accept a connection before the next is tried, ms. Absent: the whole connect timeout. */
  reachMs?: number | undefined;
}

export interface Transport {
  /** `stream`: a long request, which does not share the few connections of short ones. */
  request(exchange: Exchange, kind: 'request' | 'stream'): Promise<ResponseHead>;
  /** Number of open sockets. */
  sockets(): number;
  /** Closes all connections; running requests fail. */
  close(): Promise<void>;
}

const CONNECT_MS = 10_000;
const PING_MS = 15_000;
/**
 * Two unanswered pings: a dead connection is noticed 45 s after its last answer, so people are told within a minute.
 */
const SILENCE_MS = 25_000;
/** A watch over HTTP/1.1 has no pings, but about one bookmark a minute. */
const SILENCE_WITHOUT_PINGS_MS = 150_000;

/** How long a quiet connection may last before it counts as dead; tests shorten it. */
export interface Liveness {
  pingMs: number;
  silenceMs: number;
}

/**
 * A transport to one server; does not connect yet. Uses HTTP/2 when the server offers it: API servers do, proxies
 * before them may not.
 */
export function newTransport(options: TransportOptions): Transport {
  const { origin, liveness = { pingMs: PING_MS, silenceMs: SILENCE_MS }, admit, reachMs, proxy, ...tls } = options;
  const { protocol, hostname, port } = new URL(origin);
  const sockets = watchSilence(liveness);
  // Parsed once for all connections.
  const secureContext = createSecureContext({ ca: tls.ca, cert: tls.cert, key: tls.key });
  const rejectUnauthorized = !tls.insecureSkipTlsVerify;
  const dialing = new Set<TLSSocket>();

  const host = hostname.replace(/^\[|\]$/g, '');
  const guard = admit && { lookup: guardedLookup(admit) };
  const target = { host, port: Number(port || 443) };
  const closing = new AbortController();
  /** A connection through a proxy. An IP address was admitted before. */
  const tunnel = async (by: HttpProxy): Promise<Socket> => {
    const at = admit && !isIP(host) ? await admittedAddress(host, admit) : host;
    return connectThrough(by, { ...target, host: at }, { withinMs: CONNECT_MS, signal: closing.signal });
  };
  const dial = async (): Promise<TLSSocket> => {
    // Addresses are not resolved: check them here.
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
    // HTTP/1.1: each watch needs a connection of its own; other requests are few.
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

async function overHttp1(agent: Agent, origin: string, exchange: Exchange): Promise<ResponseHead> {
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
 * A connection whose other end vanished (host gone, NAT entry lost) stays "open" for many minutes, and a watch on it
 * silently shows a stale state. HTTP/2 pings make bytes arrive on every live connection: no bytes means dead.
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
    // A busy or stopped process has read nothing: cap the time that counts as silence.
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
