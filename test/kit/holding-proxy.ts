import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2';
import { Agent, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { issue, type KeyPair } from '../../operator/pki/certificates.ts';
import type { ApiserverKeys } from './apiserver-access.ts';

const READS = new Set(['GET', 'HEAD']);
/** HTTP/2 has no such headers. */
const OF_HTTP1 = new Set(['connection', 'keep-alive', 'transfer-encoding']);

/** Writes that the proxy keeps. */
interface Held {
  /** Resolves to the first of them, for example `POST /api/v1/namespaces/shop/secrets/demo`. */
  readonly seen: Promise<string>;
  /** Sends them on, also where their client stands still. Resolves to the status of each answer. */
  release(): Promise<number[]>;
}

interface Hold {
  readonly matches: (write: string) => boolean;
  readonly seen: PromiseWithResolvers<string>;
  readonly over: PromiseWithResolvers<void>;
  readonly answers: Promise<number>[];
}

/**
 * An HTTP/2 proxy before an API server, in which a test holds writes on their way: the client has sent them, and the server has not heard of them.
 * All requests reach the server under one name. The proxy ends with the process.
 */
export class HoldingProxy {
  readonly url: string;
  /** Writes that have come, in turn. */
  readonly writes: string[] = [];
  readonly #target: URL;
  readonly #agent: Agent;
  readonly #holds = new Set<Hold>();

  private constructor(server: Http2SecureServer, target: URL, agent: Agent) {
    this.url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    this.#target = target;
    this.#agent = agent;
    server.on('request', (incoming, response) => void this.#pass(incoming, response));
    server.unref();
  }

  /** @param as whose certificate the server is shown */
  static async before({ url, ca }: Pick<ApiserverKeys, 'url' | 'ca'>, as: KeyPair): Promise<HoldingProxy> {
    const own = { commonName: 'proxy', ipAddresses: ['127.0.0.1'], usages: ['server' as const], days: 1 };
    const server = createSecureServer(await issue(ca, own));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new HoldingProxy(server, new URL(url), new Agent({ ...as, ca: ca.cert, keepAlive: true }));
  }

  /** Holds these writes from now on, until they are released. */
  hold(matches: (write: string) => boolean): Held {
    const hold: Hold = { matches, seen: Promise.withResolvers(), over: Promise.withResolvers(), answers: [] };
    this.#holds.add(hold);
    return {
      seen: hold.seen.promise,
      release: () => {
        this.#holds.delete(hold);
        hold.over.resolve();
        return Promise.all(hold.answers);
      },
    };
  }

  async #pass(incoming: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
    const { method, url: path, headers } = incoming;
    incoming.on('error', () => {});
    response.on('error', () => {});
    const body = READS.has(method) ? undefined : await buffer(incoming).catch(() => undefined);
    // What is only tried changes nothing.
    const write = body && !path.includes('dryRun=') ? writeOf(method, path, body) : undefined;
    if (write) this.writes.push(write);
    const hold = write && [...this.#holds].find(({ matches }) => matches(write));
    const answered = Promise.withResolvers<number>();
    if (hold) {
      hold.answers.push(answered.promise);
      hold.seen.resolve(write);
      await hold.over.promise;
    }
    const outgoing = request({
      agent: this.#agent,
      hostname: this.#target.hostname,
      port: this.#target.port,
      method,
      path,
      headers: without(headers, (name) => name.startsWith(':')),
    });
    outgoing.on('response', (answer) => {
      answered.resolve(answer.statusCode ?? 0);
      response.writeHead(
        answer.statusCode ?? 502,
        without(answer.headers, (name) => OF_HTTP1.has(name)),
      );
      answer.on('error', () => response.stream.destroy());
      answer.pipe(response);
    });
    outgoing.on('error', () => {
      answered.resolve(0);
      response.stream.destroy();
    });
    // Who has gone watches no more. A write that was held goes on all the same.
    if (!hold) response.once('close', () => outgoing.destroy());
    outgoing.end(body);
  }
}

const without = (headers: IncomingHttpHeaders, isLeftOut: (name: string) => boolean): IncomingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !isLeftOut(name)));

/** Method and path of a write, with the name of what it creates. */
function writeOf(method: string, path: string, body: Buffer): string {
  const [plain = ''] = path.split('?');
  if (method !== 'POST') return `${method} ${plain}`;
  try {
    const { metadata } = JSON.parse(body.toString()) as { metadata?: { name?: string } };
    return `${method} ${plain}/${metadata?.name ?? ''}`;
  } catch {
    return `${method} ${plain}`;
  }
}
