import { Agent, type RequestOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import type { KubeConfig } from '@kubernetes/client-node';
import { connectThrough, type HttpProxy, proxyTo } from './http/http-proxy.ts';
import { parseAdministratorsKubeconfig, rewriteAdministratorsKubeconfig } from './kubeconfig.ts';

const PING_MS = 30_000;

/**
 * client-node's configuration for streams to pods through the API server of a kubeconfig, with the same proxy as
 * requests (parseAdministratorsKubeconfig). client-node takes 70 MiB once loaded.
 */
export async function streamsBy(kubeconfig: string): Promise<KubeConfig> {
  const connection = parseAdministratorsKubeconfig(kubeconfig);
  const proxy = proxyTo(connection.server, connection.proxy);
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  // client-node has its own YAML parser: give it the rewritten kubeconfig, which our parser has checked.
  config.loadFromString(rewriteAdministratorsKubeconfig(kubeconfig));
  if (!proxy) return config;
  // Replaces client-node's proxy agent, which waits for a proxy for ever and does not name it in errors.
  const agent = new ProxyAgent(proxy);
  const applied = config.applyToHTTPSOptions.bind(config);
  config.applyToHTTPSOptions = async (options) => {
    await applied(options);
    options.agent = agent;
  };
  return config;
}

/** The part of a WebSocket of client-node that keepAlive uses. */
interface Pinged {
  ping(): void;
  once(event: 'close', listener: () => void): unknown;
}

/** Pings a stream regularly: proxies (Squid after 15 minutes) and NATs end a quiet connection. */
export function keepAlive(socket: Pinged): void {
  const pings = setInterval(() => socket.ping(), PING_MS).unref();
  socket.once('close', () => clearInterval(pings));
}

/** An https agent that connects through a proxy. */
class ProxyAgent extends Agent {
  readonly #proxy: HttpProxy;

  constructor(proxy: HttpProxy) {
    super();
    this.#proxy = proxy;
  }

  override createConnection(
    options: RequestOptions,
    callback: (error: Error | null, socket: Duplex) => void = () => {},
  ): undefined {
    const target = { host: options.host ?? '', port: Number(options.port || 443) };
    connectThrough(this.#proxy, target).then(
      (socket) => callback(null, super.createConnection({ ...options, socket } as RequestOptions)!),
      (error: Error) => (callback as (error: Error) => void)(error),
    );
  }
}
