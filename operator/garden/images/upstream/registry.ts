import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { Agent, type Dispatcher, request } from 'undici';
import { guardedLookup } from '../../../kube/http/address-guard.ts';
import { environmentConnector, hasProxy } from '../../../kube/http/http-proxy.ts';
import { admitLiteral, judgeAddress, lookupHere, ProxiedNames } from './admission.ts';
import { offlineError, PullError } from './errors.ts';

/** Credentials at a registry. */
export interface Access {
  /** Separates content pulled with different credentials. */
  key: string;
  /** `USER:PASSWORD` in base64. Absent: anonymous. */
  basic?: string;
}

/** A request to a registry. */
export interface RegistryRequest {
  /** As in image names: `docker.io`, `localhost:5001`. */
  registry: string;
  repository: string;
  access: Access;
}

/** An answer with status 200 or 206. The body must be read or destroyed. */
type Answer = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers' | 'body'>;

const CONNECT_MS = 10_000;
const STALL_MS = 60_000;
const REDIRECTS = 5;
const TOKEN_BYTES = 256 * 1024;
const TOKEN_SECONDS = 60;
const TOKENS_KEPT = 1000;
const HOSTS: Record<string, string> = { 'docker.io': 'registry-1.docker.io' };

/** Client of the OCI distribution protocol, with the machine's network, proxy and certificates. */
export class Registries {
  readonly #guarded: Dispatcher;
  readonly #trusting: Dispatcher;
  readonly #admit: (address: string) => void;
  readonly #proxied: ProxiedNames | undefined;
  readonly #isTrusted: (host: string) => 'http' | 'any' | undefined;
  readonly #tokens = new Map<string, { header: string; until: number }>();
  readonly #plain = new Set<string>();

  /**
   * @param own ranges of the garden, to which no connection is made
   * @param trusted present entries of settings.ts
   * @param lookup resolves names that a proxy is to connect to
   */
  constructor(own: readonly string[], trusted: () => readonly string[], lookup = lookupHere) {
    this.#admit = judgeAddress(own);
    this.#proxied = hasProxy() ? new ProxiedNames(this.#admit, lookup) : undefined;
    trustMachine();
    const more = { headersTimeout: STALL_MS, bodyTimeout: STALL_MS };
    const connect = { timeout: CONNECT_MS };
    const guarded = { ...connect, lookup: guardedLookup(this.#admit) };
    this.#guarded = new Agent({ ...more, connect: environmentConnector(guarded) });
    this.#trusting = new Agent({ ...more, connect: environmentConnector(connect) });
    this.#isTrusted = (host) => {
      const words = trusted();
      if (words.includes(`http://${host}`)) return 'http';
      return words.includes(host) || words.includes(`https://${host}`) ? 'any' : undefined;
    };
  }

  /**
   * Requests a path of a repository (`manifests/v1`), with a token where the registry requires one, and follows
   * redirects. Throws PullError, with the registry's status where it refuses.
   */
  async ask(
    wanted: RegistryRequest,
    path: string,
    options: { method?: 'GET' | 'HEAD'; headers?: Record<string, string>; signal?: AbortSignal } = {},
  ): Promise<Answer> {
    const { registry, repository } = wanted;
    const host = HOSTS[registry] ?? registry;
    const scheme = this.#isTrusted(host) === 'http' || this.#plain.has(host) ? 'http' : 'https';
    const ask = (base: string) => this.#authorized(wanted, new URL(`${base}/v2/${repository}/${path}`), options);
    try {
      return await ask(`${scheme}://${host}`);
    } catch (error) {
      if (scheme === 'http' || !this.#isTrusted(host) || !speaksPlainly(error)) throw error;
      this.#plain.add(host);
      return ask(`http://${host}`);
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#guarded.destroy(), this.#trusting.destroy()]);
  }

  async #authorized(
    wanted: RegistryRequest,
    url: URL,
    {
      method = 'GET',
      headers = {},
      signal,
    }: { method?: 'GET' | 'HEAD'; headers?: Record<string, string>; signal?: AbortSignal },
  ): Promise<Answer> {
    const { registry, repository, access } = wanted;
    const id = `${registry} ${repository} ${access.key}`;
    const send = (authorization: string | undefined) =>
      this.#follow(url, { method, headers: { ...headers, ...(authorization && { authorization }) }, signal });
    const known = this.#tokens.get(id);
    let answer = await send(known && known.until > Date.now() ? known.header : undefined);
    if (answer.statusCode === 401) {
      const challenge = String(answer.headers['www-authenticate'] ?? '');
      discard(answer);
      const token = await this.#authorization(wanted, challenge, url, signal);
      if (!token) throw refused(wanted, 401);
      if (this.#tokens.size >= TOKENS_KEPT) this.#tokens.clear();
      this.#tokens.set(id, token);
      answer = await send(token.header);
    }
    if (answer.statusCode === 200 || answer.statusCode === 206) return answer;
    discard(answer);
    if (answer.statusCode === 401) this.#tokens.delete(id);
    throw refused(wanted, answer.statusCode);
  }

  /** Authorization header for the registry's challenge. Undefined when none is available. */
  async #authorization(
    { registry, repository, access }: RegistryRequest,
    challenge: string,
    asked: URL,
    signal: AbortSignal | undefined,
  ): Promise<{ header: string; until: number } | undefined> {
    if (/^basic\b/i.test(challenge)) {
      return access.basic ? { header: `Basic ${access.basic}`, until: Number.POSITIVE_INFINITY } : undefined;
    }
    const realm = parameter(challenge, 'realm');
    if (!/^bearer\b/i.test(challenge) || !realm || !URL.canParse(realm)) return undefined;
    const url = new URL(realm);
    // The request may contain a password.
    if (url.protocol !== 'https:' && !(url.protocol === 'http:' && asked.protocol === 'http:')) return undefined;
    const service = parameter(challenge, 'service');
    if (service) url.searchParams.set('service', service);
    url.searchParams.set('scope', parameter(challenge, 'scope') ?? `repository:${repository}:pull`);
    const headers: Record<string, string> = access.basic ? { authorization: `Basic ${access.basic}` } : {};
    const answer = await this.#follow(url, { method: 'GET', headers, signal });
    if (answer.statusCode !== 200) {
      discard(answer);
      throw refused({ registry, repository, access }, answer.statusCode);
    }
    const said = parseToken(String(await readBounded(answer.body, TOKEN_BYTES, `the token of ${registry}`)));
    if (!said.token) return undefined;
    const seconds = Math.max(said.seconds ?? TOKEN_SECONDS, TOKEN_SECONDS);
    return { header: `Bearer ${said.token}`, until: Date.now() + (seconds - 10) * 1000 };
  }

  /**
   * One request with its redirects. Registries redirect blob requests to external storage, which must not receive the
   * token.
   */
  async #follow(
    from: URL,
    options: { method: 'GET' | 'HEAD'; headers: Record<string, string>; signal: AbortSignal | undefined },
  ): Promise<Answer> {
    let url = from;
    let headers = options.headers;
    for (let hops = 0; ; hops++) {
      const answer = await this.#send(url, { ...options, headers });
      const { location } = answer.headers;
      if (answer.statusCode < 300 || answer.statusCode > 399 || !location) return answer;
      discard(answer);
      if (hops === REDIRECTS) throw new PullError(502, `${from.host} redirects too many times`);
      const next = URL.canParse(String(location), url.href) ? new URL(String(location), url) : undefined;
      const isWorse = next?.protocol === 'http:' && url.protocol === 'https:';
      if (!next || !/^https?:$/.test(next.protocol) || isWorse)
        throw new PullError(502, `${from.host} redirects to an address without TLS, which is not followed`);
      if (next.origin !== url.origin) headers = withoutAuthorization(headers);
      url = next;
    }
  }

  async #send(
    url: URL,
    options: { method: 'GET' | 'HEAD'; headers: Record<string, string>; signal: AbortSignal | undefined },
  ): Promise<Answer> {
    const isTrusted = this.#isTrusted(url.host) !== undefined;
    if (!isTrusted) {
      admitLiteral(url, this.#admit);
      await this.#proxied?.judge(url);
    }
    const { method, signal } = options;
    const headers = { 'user-agent': 'coppice', ...options.headers };
    try {
      const dispatcher = isTrusted ? this.#trusting : this.#guarded;
      return await request(url, { method, headers, dispatcher, ...(signal && { signal }) });
    } catch (error) {
      throw offlineError(url.host, error, hasProxy());
    }
  }
}

/**
 * Makes this process trust Node's certificates, those added by the person, and the system's. Not as a connection
 * option, which would reread all of them each time.
 */
const trustMachine = (): void =>
  setDefaultCACertificates([...new Set([...getCACertificates('default'), ...getCACertificates('system')])]);

/** Whether the server does not support TLS. */
function speaksPlainly(error: unknown): boolean {
  const { cause } = error as { cause?: { code?: string } };
  return /^(?:EPROTO|ERR_SSL_|ECONNRESET|UND_ERR_SOCKET)/.test(cause?.code ?? '');
}

const withoutAuthorization = (headers: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name !== 'authorization'));

/** Discards an unread answer. */
export const discard = ({ body }: Pick<Answer, 'body'>): void => {
  body.on('error', () => {});
  body.destroy();
};

const parameter = (challenge: string, name: string): string | undefined =>
  new RegExp(`[\\s,]${name}="([^"]*)"`, 'i').exec(challenge)?.[1];

function parseToken(text: string): { token?: string; seconds?: number } {
  try {
    const said = JSON.parse(text) as Record<string, unknown>;
    const token = said.token ?? said.access_token;
    return {
      ...(typeof token === 'string' && /^[\x21-\x7e]+$/.test(token) && { token }),
      ...(typeof said.expires_in === 'number' && { seconds: said.expires_in }),
    };
  } catch {
    return {};
  }
}

/** A whole body. Throws PullError when it exceeds `limit` bytes or is cut off. */
export async function readBounded(body: Answer['body'], limit: number, what: string): Promise<Buffer> {
  const parts: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > limit) throw new PullError(502, `${what} is longer than ${limit} bytes, and was refused`);
      parts.push(chunk);
    }
  } catch (error) {
    body.destroy();
    throw error instanceof PullError ? error : offlineError(what, error, hasProxy());
  }
  return Buffer.concat(parts);
}

function refused({ registry, repository, access }: RegistryRequest, status: number): PullError {
  const name = `${registry}/${repository}`;
  if (status === 401 || status === 403) {
    if (access.basic)
      return new PullError(403, `${registry} rejects the credentials for ${repository}: check them and the name`);
    const login = `"coppice up --registry-login ${registry}" uses this machine's login, an imagePullSecret that of the pod`;
    return new PullError(401, `${name} does not exist, or needs a login: check the name; ${login}`);
  }
  if (status === 404) return new PullError(410, `there is no such image at ${name}: check its name and tag`);
  if (status === 429) {
    const text = `${registry} limits how much may be pulled: try again later, or log in with "coppice up --registry-login ${registry}"`;
    return new PullError(503, text, { isOffline: true });
  }
  const text = `${registry} answers ${status} for ${repository}: try again later`;
  return new PullError(502, text, { isOffline: status >= 500 });
}
