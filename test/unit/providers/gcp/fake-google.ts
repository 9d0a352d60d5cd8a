import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Endpoints } from '../../../../providers/gcp/google-api.ts';

/** A request as it came. */
export interface Asked {
  method: string;
  /** Path without the query. */
  path: string;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  body: string;
}

/** An answer: a body as JSON, with status 200 unless it says otherwise. */
export type Answer = { status?: number; body: unknown };

let fakes = 0;

/** Google on loopback: `respond` says what it answers, to a token's request as well unless it leaves that to the fake. */
export class FakeGoogle implements AsyncDisposable {
  readonly asked: Asked[] = [];
  readonly endpoints: Endpoints;
  readonly #server;

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    // Tokens are kept by where they came from, and the system gives ports out again.
    this.endpoints = {
      oauth: `${url}/~${++fakes}`,
      sts: `${url}/~${fakes}`,
      iamCredentials: url,
      metadata: url,
      resourceManager: url,
      cloudAsset: url,
      compute: url,
      container: url,
      dns: url,
      kms: url,
      iam: url,
      storage: url,
    };
  }

  static async start(respond: (asked: Asked) => Answer | undefined = () => undefined): Promise<FakeGoogle> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const url = new URL(request.url!.replace(/^\/~\d+/, ''), 'http://google');
        const asked: Asked = {
          method: request.method!,
          path: url.pathname,
          query: url.searchParams,
          headers: request.headers,
          body: Buffer.concat(chunks).toString(),
        };
        fake.asked.push(asked);
        const { status = 200, body } = respond(asked) ?? usual(asked);
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(typeof body === 'string' ? body : JSON.stringify(body));
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const fake = new FakeGoogle(server);
    return fake;
  }

  /** What was asked, without the requests for tokens. */
  get calls(): string[] {
    return this.asked.filter(({ path }) => path !== '/token').map(({ method, path }) => `${method} ${path}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

const usual = ({ path }: Asked): Answer =>
  path === '/token'
    ? { body: { access_token: 'ya29.token', expires_in: 3599, token_type: 'Bearer' } }
    : { status: 404, body: { error: { code: 404, message: 'Not found', status: 'NOT_FOUND' } } };
