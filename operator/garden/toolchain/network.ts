import { lookup } from 'node:dns/promises';
import { Agent, fetch, type Response } from 'undici';
import { environmentConnector, environmentProxy } from '../../kube/http/http-proxy.ts';

const DNS_PATIENCE_MS = 900;
const CONNECT_PATIENCE_MS = 3_000;
const STALL_MS = 20_000;

/** Why a host is unreachable. */
export class OfflineError extends Error {
  override readonly name = 'OfflineError';
}

type Resolve = (host: string) => Promise<unknown>;

/**
 * HTTP client for release archives. An unreachable host fails quickly and is not tried again in this run: without
 * internet the whole toolchain loses less than a second.
 */
export class Network {
  readonly #agent = new Agent({
    allowH2: false,
    connect: environmentConnector({ timeout: CONNECT_PATIENCE_MS, allowH2: false }),
    headersTimeout: STALL_MS,
    bodyTimeout: STALL_MS,
  });
  readonly #hosts = new Map<string, Promise<string | undefined>>();
  readonly #resolve: Resolve;

  /** `resolve` replaces DNS in tests. */
  constructor(resolve: Resolve = lookup) {
    this.#resolve = resolve;
  }

  /** GET with redirects. Throws OfflineError when the host is unreachable, Error for a status other than 200. */
  async get(url: string, signal?: AbortSignal): Promise<Response> {
    const { host, hostname } = new URL(url);
    let known = this.#hosts.get(host);
    if (!known) {
      // A proxy resolves names itself.
      known = environmentProxy(url) ? Promise.resolve(undefined) : this.#unresolved(hostname);
      this.#hosts.set(host, known);
    }
    const unreachable = await known;
    if (unreachable) throw new OfflineError(unreachable);
    let response: Response;
    try {
      response = await fetch(url, { dispatcher: this.#agent, signal, headers: { 'user-agent': 'coppice' } });
    } catch (error) {
      if (signal?.aborted) throw error;
      const cause = (error as Error).cause;
      const reason = `${host} cannot be reached (${cause instanceof Error ? cause.message : (error as Error).message})`;
      this.#hosts.set(host, Promise.resolve(reason));
      throw new OfflineError(reason);
    }
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new Error(`${url} answers ${response.status}`);
    }
    return response;
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #unresolved(hostname: string): Promise<string | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<string>((resolve) => {
      timer = setTimeout(() => resolve(`${hostname} did not resolve within ${DNS_PATIENCE_MS} ms`), DNS_PATIENCE_MS);
    });
    const answer = this.#resolve(hostname).then(
      () => undefined,
      (error: NodeJS.ErrnoException) => `${hostname} cannot be resolved (${error.code ?? error.message})`,
    );
    try {
      return await Promise.race([answer, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}
