import type { Socket } from 'node:net';
import { createSecureContext } from 'node:tls';
import { Agent, buildConnector, type Dispatcher } from 'undici';

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
  liveness?: Liveness | undefined;
  /** Default true. */
  allowH2?: boolean | undefined;
}

export interface Transport {
  /** For requests that end by themselves. */
  requests: Dispatcher;
  /** For watches: no limit on silence, and as many connections as the streams need. */
  watches: Dispatcher;
  /** Sockets that are open now. */
  sockets(): number;
  close(): Promise<void>;
}

const PING_MS = 15_000;
/** Two pings unanswered. */
const SILENCE_MS = 40_000;
/** A watch over HTTP/1.1 has no pings, but a bookmark about each minute. */
const SILENCE_WITHOUT_PINGS_MS = 150_000;

/** How long a quiet connection may be before it counts as dead; tests shorten it. */
export interface Liveness {
  pingMs: number;
  silenceMs: number;
}

/** Opens no connection yet. */
export function newTransport(options: TransportOptions): Transport {
  const { liveness = { pingMs: PING_MS, silenceMs: SILENCE_MS }, allowH2 = true, ...tls } = options;
  const watched = new Map<Socket, { bytes: number; since: number }>();
  let timer: NodeJS.Timeout | undefined;

  // A connection whose other end vanished without a word (host gone, NAT entry lost) stays "open" for many minutes, and
  // a watch on it silently shows an old world. HTTP/2 pings make bytes come in on every live connection: no bytes, no life.
  const reap = () => {
    const now = Date.now();
    for (const [socket, seen] of watched) {
      if (socket.bytesRead !== seen.bytes) {
        seen.bytes = socket.bytesRead;
        seen.since = now;
        continue;
      }
      const h2 = (socket as { alpnProtocol?: string }).alpnProtocol === 'h2';
      if (now - seen.since > (h2 ? liveness.silenceMs : SILENCE_WITHOUT_PINGS_MS)) {
        socket.destroy(Object.assign(new Error('connection is silent: pings are not answered'), { code: 'ESILENT' }));
      }
    }
  };

  const connect = buildConnector({
    // Parsed once, not for each connection.
    secureContext: createSecureContext({ ca: tls.ca, cert: tls.cert, key: tls.key }),
    rejectUnauthorized: !tls.insecureSkipTlsVerify,
    ...(tls.serverName ? { servername: tls.serverName } : {}),
    allowH2,
    preferH2: allowH2,
    timeout: 10_000,
  } as buildConnector.BuildOptions);

  const tracked: buildConnector.connector = (options, callback) => {
    connect(options, (...result) => {
      const socket = result[1];
      if (socket) {
        watched.set(socket, { bytes: socket.bytesRead, since: Date.now() });
        socket.once('close', () => {
          watched.delete(socket);
          if (watched.size === 0) {
            clearInterval(timer);
            timer = undefined;
          }
        });
        timer ??= setInterval(reap, liveness.pingMs).unref();
      }
      callback(...result);
    });
  };

  const common = { connect: tracked, allowH2, keepAliveTimeout: 60_000, keepAliveMaxTimeout: 60_000 };
  const h2 = { pingInterval: liveness.pingMs, connectionWindowSize: 4 << 20 };
  const requests = new Agent({ ...common, connections: 2, h2Options: { ...h2, maxConcurrentStreams: 100 } });
  const watches = new Agent({ ...common, bodyTimeout: 0, h2Options: { ...h2, maxConcurrentStreams: 100 } });
  return {
    requests,
    watches,
    sockets: () => watched.size,
    async close() {
      await Promise.all([requests.destroy(), watches.destroy()]);
      clearInterval(timer);
    },
  };
}
