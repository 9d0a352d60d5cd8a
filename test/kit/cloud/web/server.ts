import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTLSServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { readFaults, takeRequest } from '../faults.ts';
import type { Account, CloudModel, Testbed } from '../model.ts';
import { lackedOf } from '../needs/index.ts';
import type { Store } from '../store.ts';
import { openTestbed } from '../testbed.ts';

/** A request to one of the clouds' own APIs. */
export interface Asked {
  method: string;
  url: URL;
  headers: IncomingHttpHeaders;
  body: string;
  /** The same, for what is no text. */
  bytes: Buffer;
}

export interface Said {
  status?: number;
  /** Text, bytes, or what becomes JSON. */
  body: unknown;
  headers?: Record<string, string>;
}

/** The cloud says no: status, and code and message in its own words. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** The same, by one of Azure's services that has code and message without an `error` around them. */
export class FlatRefusal extends Refused {}

/** How one cloud's APIs answer. */
export interface Web {
  model: CloudModel;
  /** Whom the request is from, and about what; undefined: nobody that the cloud knows. */
  caller(asked: Asked, accounts: readonly Account[]): Account | undefined;
  /** Region that the request is about, and the permission that it needs, in the cloud's name. */
  about(asked: Asked): { region: string; action: string };
  /** Permissions that the request needs, of those that Coppice's lists are about; buckets, DNS and questions about oneself are in none. */
  needs(asked: Asked): readonly string[];
  /** Requests that need no credentials (those for tokens); undefined: it is none of these. */
  open(asked: Asked, accounts: readonly Account[], store: Store): Said | undefined;
  answer(asked: Asked, testbed: Testbed, denied: readonly string[], store: Store): Said;
  /** What is refused for reasons that every request has. */
  refusals: Record<'unknown' | 'throttled' | 'denied' | 'closed', (action: string) => Refused>;
  refusal(refused: Refused, asked: Asked): Said;
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

async function decide(web: Web, store: Store, asked: Asked): Promise<Said> {
  const { model, refusals } = web;
  const faults = readFaults(store);
  const usable = store.accounts().filter((one) => one.cloud === model.name && !faults.revoked?.includes(one.key));
  const given = web.open(asked, usable, store);
  if (given) return given;
  const account = web.caller(asked, usable);
  const { region, action } = web.about(asked);
  const done = store.logRequest({
    cloud: model.name,
    account: account?.id ?? '',
    operation: 'invoke',
    type: action,
    name: asked.url.pathname,
    region,
  });
  try {
    if (!account) throw refusals.unknown(action);
    const limit = faults.throttle;
    if (limit && !(await takeRequest(store, account.id, limit.perSecond, Date.now()))) {
      const { retryAfter } = limit;
      const said = web.refusal(refusals.throttled(action), asked);
      done('throttled');
      return {
        ...said,
        headers: { ...said.headers, ...(retryAfter !== undefined && { 'retry-after': `${retryAfter}` }) },
      };
    }
    if (faults.closedRegions?.includes(region)) throw refusals.closed(action);
    if (faults.denied?.includes(action)) throw refusals.denied(action);
    const lacked = lackedOf(store, model.name, web.needs(asked));
    if (lacked) throw refusals.denied(`${lacked} [which no list of permissions has]`);
    const caller = { account: account.id, principal: account.principal, region, defaultTags: {} };
    const said = await store.transaction(() =>
      web.answer(asked, openTestbed(model, store, caller, region, Date.now()), faults.denied ?? [], store),
    );
    done('ok');
    return said;
  } catch (error) {
    done((error as Error).message);
    if (error instanceof Refused) return web.refusal(error, asked);
    throw error;
  }
}

/** Certificate and key of a server. */
export interface ServerTLS {
  cert: string;
  key: string;
}

/** Serves one cloud's APIs on loopback, over TLS where that is given. */
export async function startWeb(web: Web, store: Store, tls?: ServerTLS): Promise<{ url: string; server: Server }> {
  const scheme = tls ? 'https' : 'http';
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '/', `${scheme}://${request.headers.host}`);
    const bytes = await bytesOf(request);
    const asked = { method: request.method ?? 'GET', url, headers: request.headers, body: bytes.toString(), bytes };
    const {
      status = 200,
      body,
      headers,
    } = await decide(web, store, asked).catch(
      (error: Error): Said => ({ status: 500, body: `the fake cloud broke: ${error.stack}` }),
    );
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body));
  };
  const listener: RequestListener = (request, response) => void serve(request, response);
  const server = tls ? createTLSServer(tls, listener) : createServer(listener);
  // On a busy machine a request may meet the end of a connection that was idle for the usual 5 seconds.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

/** The form fields of a body. */
export const fieldsOf = ({ body }: Asked): Record<string, string> => Object.fromEntries(new URLSearchParams(body));
