import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { silent } from '../../../../operator/kube/log.ts';
import type { Endpoints } from '../../../../providers/azure/arm.ts';
import type { CloudContext } from '../../../../providers/cloud.ts';
import { client, owner, subscription, tenant } from './fixtures.ts';

/** A request as it came in. */
export interface Asked {
  method: string;
  /** With query. */
  path: string;
  authorization: string | undefined;
  body: string;
}

export interface Answer {
  status?: number;
  /** Written as JSON, unless it is text. */
  body: unknown;
  headers?: Record<string, string>;
}

/** The token that Entra ID gives here. */
export const TOKEN = 'header.claims.signature';
export const GIVEN: Answer = { body: { token_type: 'Bearer', expires_in: 3599, access_token: TOKEN } };

let fakes = 0;

/** Entra ID and Azure Resource Manager on loopback, as far as a test says what they answer. */
export class FakeAzure implements AsyncDisposable {
  readonly asked: Asked[] = [];
  readonly endpoints: Endpoints;
  readonly #server;

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    // Tokens are kept by where they came from, and the system gives ports out again.
    this.endpoints = { login: `${url}/~${++fakes}/login`, management: url };
  }

  /** `answer` is asked for everything but tokens, which are given; undefined is 404. */
  static async start(
    answer: (asked: Asked) => Answer | undefined,
    token: (asked: Asked) => Answer = () => GIVEN,
  ): Promise<FakeAzure> {
    const server = createServer((request, response) => {
      void (async () => {
        const { method = '', headers } = request;
        const path = (request.url ?? '').replace(/^\/~\d+/, '');
        const asked: Asked = { method, path, authorization: headers.authorization, body: await textOf(request) };
        azure.asked.push(asked);
        const said = path.startsWith('/login/') ? token(asked) : answer(asked);
        const nothing: Answer = { status: 404, body: { error: { code: 'ResourceNotFound' } } };
        const { status = 200, body, headers: more } = said ?? nothing;
        response.writeHead(status, { 'content-type': 'application/json', ...more });
        response.end(typeof body === 'string' ? body : JSON.stringify(body));
      })();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const azure = new FakeAzure(server);
    return azure;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text;
}

export const secret = { clientID: client, clientSecret: 'hush', tenantID: tenant, subscriptionID: subscription };

export const context = (credentials: Record<string, string> = secret): CloudContext => ({
  owner,
  account: { id: 'azure', credentials },
  region: 'germanywestcentral',
  profile: {} as CloudContext['profile'],
  state: { url: 'file:///nowhere', env: {} },
  log: silent,
  signal: new AbortController().signal,
  now: () => new Date('2026-11-20T10:00:00Z'),
});
