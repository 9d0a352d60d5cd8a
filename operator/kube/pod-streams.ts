import { Agent, type RequestOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import type { KubeConfig } from '@kubernetes/client-node';
import { connectThrough, type HttpProxy, proxyTo } from './http/http-proxy.ts';
import { parseAdministratorsKubeconfig, rewriteAdministratorsKubeconfig } from './kubeconfig.ts';

const PING_MS = 30_000;

/**
 * What client-node opens streams to pods with: through the API server of a kubeconfig, which is reached as it is for requests
 * (parseAdministratorsKubeconfig). client-node takes 70 MiB once it is loaded.
 */
export async function streamsBy(kubeconfig: string): Promise<KubeConfig> {
  const connection = parseAdministratorsKubeconfig(kubeconfig);
  const proxy = proxyTo(connection.server, connection.proxy);
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  // Its parser is not the one that has checked the text.
  config.loadFromString(rewriteAdministratorsKubeconfig(kubeconfig));
  if (!proxy) return config;
  // In place of its own, which waits for a proxy for ever, and does not say which one failed.
  const agent = new ProxyAgent(proxy);
  const applied = config.applyToHTTPSOptions.bind(config);
  config.applyToHTTPSOptions = async (options) => {
    await applied(options);
    options.agent = agent;
  };
  return config;
}

/** Part of a WebSocket, as client-node opens them. */
interface Pinged {
  ping(): void;
  once(event: 'close', listener: () => void): unknown;
}

/** Has something move on a stream all the time: a proxy ends one that is quiet for long (Squid after 15 minutes), and so does a NAT. */
export function keepAlive(socket: Pinged): void {
  const pings = setInterval(() => socket.ping(), PING_MS).unref();
  socket.once('close', () => clearInterval(pings));
}

/** Opens what node:https asks for by way of a proxy. */
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
