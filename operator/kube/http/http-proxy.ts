import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { buildConnector } from 'undici';
import { addressList, rangeOrAddress, rangeText } from '../../api/address-range.ts';
import { configurationProblem } from '../../api/errors.ts';
import { hostOf, isLoopback } from './address-guard.ts';

/** A proxy that opens connections to others when it is asked to (CONNECT). */
export interface HttpProxy {
  /** Scheme, host and port, without user and password: for people. */
  readonly name: string;
  readonly isTLS: boolean;
  readonly host: string;
  readonly port: number;
  /** Header Proxy-Authorization. Never for people. */
  readonly authorization?: string;
}

/** What a connection is to be opened to. */
export interface ProxyTarget {
  /** A name, which the proxy looks up, or an address. */
  readonly host: string;
  readonly port: number;
}

/** A proxy did not open a connection; the message names it. */
export class ProxyError extends Error {
  readonly code: string;

  constructor(message: string, code: string) {
    super(message);
    this.code = code;
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

const CONNECT_MS = 10_000;
/** Where the environment says which proxy leads to servers with TLS, first come first: without one for HTTPS, that for HTTP counts. */
const VARIABLES = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY'] as const;
/** Names that only the network of a cluster knows. */
const IN_CLUSTER = /^kubernetes(\.default)?$|\.(svc|cluster\.local)$/;

/**
 * Reads where a proxy is: `http://user:password@host:port`, or https. A text without a scheme means http, as it does for curl.
 * Throws a CoppiceError that names `where`, and nothing of the text, which may have a password.
 */
export function parseProxy(text: string, where: string): HttpProxy {
  const whole = text.includes('://') ? text : `http://${text}`;
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.hostname === '')
    throw configurationProblem(
      `${where} names no proxy that can be used`,
      'Write http://HOST:PORT or https://HOST:PORT.',
    );
  const isTLS = url.protocol === 'https:';
  const { username, password } = url;
  const login = Buffer.from(`${decoded(username)}:${decoded(password)}`).toString('base64');
  return {
    name: `${url.protocol}//${url.host}`,
    isTLS,
    host: hostOf(url),
    port: Number(url.port || (isTLS ? 443 : 80)),
    ...((username || password) && { authorization: `Basic ${login}` }),
  };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Whether the environment names a proxy, wherever it leads. */
export const hasProxy = (env: Environment = process.env): boolean => VARIABLES.some((name) => env[name]?.trim());

/**
 * The proxy by which HTTPS_PROXY, or else HTTP_PROXY, has a server reached that is outside of this cluster; undefined: directly. NO_PROXY lists,
 * separated by commas: hosts with all below them, `.suffix` for those below alone, addresses, ranges (10.0.0.0/8), each also with a port,
 * and `*`. Names in small letters go before those in capitals. This machine and names of a cluster's own network never go by a proxy.
 * Throws a CoppiceError where the variable names none.
 * @param server a URL; without TLS it is reached directly
 */
export function environmentProxy(server: string, env: Environment = process.env): HttpProxy | undefined {
  const variable = VARIABLES.find((name) => env[name]?.trim());
  const url = new URL(server);
  if (!variable || url.protocol !== 'https:') return undefined;
  const host = hostOf(url).replace(/\.$/, '');
  if (isLoopback(host) || IN_CLUSTER.test(host) || host === env.KUBERNETES_SERVICE_HOST) return undefined;
  const excepted = (env.no_proxy || env.NO_PROXY || '').split(',').map((entry) => entry.trim().toLowerCase());
  if (excepted.some((entry) => isMeant(entry, host, url.port || '443'))) return undefined;
  return parseProxy(env[variable]!.trim(), `environment variable ${variable}`);
}

/**
 * The proxy by which a server is reached; undefined: it is reached directly. Throws a CoppiceError where the variable names none.
 * @param named what counts more than the environment: a proxy, or false where none leads there
 */
export const proxyTo = (server: string, named: HttpProxy | false | undefined): HttpProxy | undefined =>
  named === false ? undefined : (named ?? environmentProxy(server));

/** Opens undici's connections by the proxy that the environment has for their host, else directly. */
export function environmentConnector(options: buildConnector.BuildOptions): buildConnector.connector {
  const connect = buildConnector(options);
  return (wanted, callback) => {
    const { protocol, host, hostname, port } = wanted;
    const open = async () => {
      const proxy = environmentProxy(`${protocol}//${host ?? hostname}`);
      return proxy && connectThrough(proxy, { host: hostname, port: Number(port || 443) });
    };
    void open().then(
      (through) => connect({ ...wanted, ...(through && { httpSocket: through }) }, callback),
      (error: Error) => callback(error, null),
    );
  };
}

/** Whether an entry of NO_PROXY means a server. */
function isMeant(entry: string, host: string, port: string): boolean {
  if (entry === '') return false;
  if (entry === '*') return true;
  const [, name = '', itsPort] = isIP(entry) ? [entry, entry] : (/^(.*?)(?::(\d+))?$/.exec(entry) ?? []);
  if (itsPort !== undefined && itsPort !== port) return false;
  const range = rangeOrAddress(name.replace(/^\[|\]$/g, ''));
  if (range) return addressList([rangeText(range)]).has(host);
  const suffix = name.replace(/^\*/, '');
  return suffix.startsWith('.') ? host.endsWith(suffix) : host === suffix || host.endsWith(`.${suffix}`);
}

/**
 * Has a proxy open a connection to a target. Resolves to the socket, which is as one to the target.
 * Rejects with one sentence that names the proxy and what it said, after `withinMs` at the latest, or with the signal's reason.
 */
export function connectThrough(
  proxy: HttpProxy,
  { host, port }: ProxyTarget,
  { withinMs = CONNECT_MS, signal }: { withinMs?: number; signal?: AbortSignal } = {},
): Promise<Socket> {
  const { name, isTLS, authorization } = proxy;
  const target = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const refuse = (what: string, code: string) => reject(new ProxyError(`proxy ${name} ${what}`, code));
  const asked = (isTLS ? httpsRequest : httpRequest)({
    host: proxy.host,
    port: proxy.port,
    // Else its certificate would have to be the target's, which is in header Host.
    servername: isIP(proxy.host) ? '' : proxy.host,
    method: 'CONNECT',
    path: target,
    headers: { host: target, connection: 'keep-alive', ...(authorization && { 'proxy-authorization': authorization }) },
    agent: false,
    signal,
  });
  const late = setTimeout(() => {
    refuse(`did not open a connection to ${target} within ${withinMs / 1000} s`, 'ETIMEDOUT');
    asked.destroy();
  }, withinMs);
  asked.once('connect', ({ statusCode = 0, statusMessage = '' }, socket, head) => {
    if (statusCode >= 200 && statusCode < 300) {
      if (head.length > 0) socket.unshift(head);
      return resolve(socket as Socket);
    }
    socket.destroy();
    const said = `${statusCode} ${statusMessage.slice(0, 100)}`.trim();
    if (statusCode === 407) return refuse(`asks for another user and password: ${said}`, 'EPROXY');
    refuse(`did not open a connection to ${target}: ${said}`, 'EPROXY');
  });
  asked.on('error', (error: NodeJS.ErrnoException) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    refuse(`cannot be used: ${error.message || error.code}`, error.code ?? 'EPROXY');
  });
  asked.once('close', () => {
    clearTimeout(late);
    refuse('ended without an answer', 'EPROXY');
  });
  asked.end();
  return promise;
}
