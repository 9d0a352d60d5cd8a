import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { buildConnector } from 'undici';
import { addressList, rangeOrAddress, rangeText } from '../../api/address-range.ts';
import { configurationProblem } from '../../api/errors.ts';
import { hostOf, isLoopback } from './address-guard.ts';

/** An HTTP proxy for CONNECT. */
export interface HttpProxy {
  /** Scheme, host and port, without user and password: safe to show. */
  readonly name: string;
  readonly isTLS: boolean;
  readonly host: string;
  readonly port: number;
  /** Header Proxy-Authorization. Secret. */
  readonly authorization?: string;
}

/** Target of a connection through a proxy. */
interface ProxyTarget {
  /** A name, which the proxy resolves, or an address. */
  readonly host: string;
  readonly port: number;
}

/** The proxy did not open the connection; the message names the proxy. */
export class ProxyError extends Error {
  readonly code: string;

  constructor(message: string, code: string) {
    super(message);
    this.code = code;
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

const CONNECT_MS = 10_000;
/** Environment variables that name the proxy for TLS servers, in order: HTTP's proxy is the fallback. */
const VARIABLES = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY'] as const;
/** Names that only the cluster's DNS resolves. */
const IN_CLUSTER = /^kubernetes(\.default)?$|\.(svc|cluster\.local)$/;

/**
 * Parses a proxy: `http://user:password@host:port`, or https. Without a scheme http is assumed, as in curl. Throws a
 * CoppiceError that names `where` but not the text, which may contain a password.
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

/** Whether the environment names any proxy. */
export const hasProxy = (env: Environment = process.env): boolean => VARIABLES.some((name) => env[name]?.trim());

/**
 * Proxy for a server outside of this cluster, from HTTPS_PROXY, else HTTP_PROXY; undefined: none. NO_PROXY lists,
 * separated by commas: hosts with all subdomains, `.suffix` for subdomains alone, addresses, ranges (10.0.0.0/8), each
 * also with a port, and `*`. Lower-case variables take precedence. This machine and cluster-internal names never use a
 * proxy. Throws a CoppiceError for an invalid proxy.
 * @param server a URL; plain http never uses a proxy
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
 * Proxy for a server; undefined: none. Throws a CoppiceError for an invalid variable.
 * @param named overrides the environment: a proxy, or false for none
 */
export const proxyTo = (server: string, named: HttpProxy | false | undefined): HttpProxy | undefined =>
  named === false ? undefined : (named ?? environmentProxy(server));

/** A connector for undici that uses the environment's proxy for each host. */
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

/** Whether an entry of NO_PROXY matches a server. */
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
 * Opens a connection to a target through a proxy. Resolves with a socket to the target. Rejects with one sentence that
 * names the proxy and its answer, after `withinMs` at the latest, or with the signal's reason.
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
    // Otherwise Node verifies the proxy's certificate against header Host, which names the target.
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
