import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  createSecureServer,
  type Http2SecureServer,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { createServer as createHttp1Server } from 'node:https';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Exchange, ResponseHead } from '../../../operator/kube/http/exchange.ts';
import { newTransport, type Transport } from '../../../operator/kube/http/transport.ts';
import { createCA, issue, type KeyPair } from '../../../operator/pki/certificates.ts';
import { startFlakyProxy } from '../../kit/flaky-proxy.ts';

let ca: KeyPair;
let pair: KeyPair;
beforeAll(async () => {
  ca = await createCA({ commonName: 'test', days: 1 });
  pair = await issue(ca, { commonName: 'server', days: 1, usages: ['server'], ipAddresses: ['127.0.0.1'] });
});

const atEnd: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of atEnd.splice(0).reverse()) await undo();
});

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A server of HTTP/2, and what it saw. */
async function serve(onStream: (stream: ServerHttp2Stream, path: string) => void, maxConcurrentStreams = 100) {
  const server: Http2SecureServer = createSecureServer({
    key: pair.key,
    cert: pair.cert,
    settings: { maxConcurrentStreams },
  });
  const sessions: ServerHttp2Session[] = [];
  server.on('session', (session) => {
    sessions.push(session);
    session.on('error', () => {});
  });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    if (stream.destroyed) return;
    onStream(stream, headers[':path'] ?? '');
  });
  const origin = await listen(server as unknown as Server);
  atEnd.push(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { origin, sessions };
}

function transportTo(origin: string): Transport {
  const transport = newTransport({ origin, ca: ca.cert });
  atEnd.push(() => transport.close());
  return transport;
}

const ask = (path: string, more: Partial<Exchange> = {}): Exchange => ({
  method: 'GET',
  path,
  headers: {},
  headersTimeoutMs: 5000,
  bodyTimeoutMs: 5000,
  ...more,
});

async function textOf(answer: ResponseHead): Promise<string> {
  let text = '';
  await answer.read((chunk) => {
    text += chunk.toString();
  });
  return text;
}

describe('newTransport', () => {
  it('shares few connections, and waits when the server allows few streams', async () => {
    let most = 0;
    let open = 0;
    const { origin, sessions } = await serve((stream, path) => {
      most = Math.max(most, ++open);
      stream.once('close', () => open--);
      setTimeout(() => {
        stream.respond({ ':status': 200 });
        stream.end(path);
      }, 5);
    }, 3);
    const transport = transportTo(origin);
    // The server's limit is known once it has said so.
    await textOf(await transport.request(ask('/first'), 'request'));
    const paths = Array.from({ length: 40 }, (_, index) => `/${index}`);
    const texts = await Promise.all(paths.map(async (path) => textOf(await transport.request(ask(path), 'request'))));
    expect(texts).toEqual(paths);
    expect(sessions.length).toBeLessThanOrEqual(2);
    expect(most).toBeLessThanOrEqual(6);
  });

  it('after GOAWAY finishes running requests and sends new ones on another connection', async () => {
    let lasting: ServerHttp2Stream | undefined;
    const { origin, sessions } = await serve((stream, path) => {
      stream.respond({ ':status': 200 });
      if (path === '/lasting') lasting = stream;
      else stream.end(path);
    });
    const transport = transportTo(origin);
    const answer = await transport.request(ask('/lasting'), 'request');
    sessions[0]!.goaway(0);
    expect(await textOf(await transport.request(ask('/new'), 'request'))).toBe('/new');
    lasting!.end('in peace');
    expect(await textOf(answer)).toBe('in peace');
  });

  it('retries a request that the server refused unread, with any method', async () => {
    const bodies: string[] = [];
    const { origin } = await serve((stream) => {
      let body = '';
      stream.on('data', (chunk) => {
        body += chunk;
      });
      stream.on('end', () => {
        bodies.push(body);
        if (bodies.length === 1) return stream.close(7);
        stream.respond({ ':status': 201 });
        stream.end();
      });
    });
    const answer = await transportTo(origin).request(ask('/', { method: 'POST', body: Buffer.from('x') }), 'request');
    expect(answer.statusCode).toBe(201);
    expect(bodies).toEqual(['x', 'x']);
  });

  it.each(['request', 'stream'] as const)(
    'a connection that breaks fails a %s, before its head and within its body',
    async (kind) => {
      const { origin, sessions } = await serve((stream, path) => {
        if (path === '/silent') return;
        stream.respond({ ':status': 200 });
        stream.write('half');
      });
      const transport = transportTo(origin);
      const half = await transport.request(ask('/half'), kind);
      const silent = transport.request(ask('/silent'), kind);
      const both = Promise.allSettled([textOf(half), silent]);
      sessions[0]!.socket.destroySoon?.();
      sessions[0]!.destroy();
      expect(await both).toMatchObject([
        { status: 'rejected', reason: { code: 'ECONNRESET' } },
        { status: 'rejected', reason: { code: 'ECONNRESET' } },
      ]);
    },
  );

  it('times out on silence before the head and within the body', async () => {
    const { origin } = await serve((stream, path) => {
      if (path === '/silent') return;
      stream.respond({ ':status': 200 });
      stream.write('half');
    });
    const transport = transportTo(origin);
    const short = { headersTimeoutMs: 200, bodyTimeoutMs: 200 };
    await expect(transport.request(ask('/silent', short), 'request')).rejects.toMatchObject({ code: 'ETIMEDOUT' });
    const half = await transport.request(ask('/half', short), 'request');
    await expect(textOf(half)).rejects.toMatchObject({ code: 'ETIMEDOUT' });
  });

  it('does not time out when its own process was busy and the server answered', async () => {
    const { origin } = await serve((stream, path) => {
      stream.respond({ ':status': 200 });
      if (path === '/half') stream.write('half');
      else stream.end('whole');
    });
    const transport = transportTo(origin);
    const short = { headersTimeoutMs: 200, bodyTimeoutMs: 200 };
    const beBusy = () => {
      for (const until = performance.now() + 600; performance.now() < until; );
    };
    // The connection is there: the answer to what follows comes in one turn.
    await textOf(await transport.request(ask('/first'), 'request'));
    const asked = transport.request(ask('/whole', short), 'request');
    await new Promise((resolve) => setImmediate(resolve));
    beBusy();
    const answer = await asked;
    expect(await textOf(answer)).toBe('whole');
  });

  it('does not time out while a piece waits for its turn', async () => {
    const { origin } = await serve((stream) => {
      stream.respond({ ':status': 200 });
      stream.end('whole');
    });
    const answer = await transportTo(origin).request(ask('/', { bodyTimeoutMs: 200 }), 'request');
    let text = '';
    await answer.read(async (piece) => {
      await new Promise((resolve) => setTimeout(resolve, 500));
      text += piece.toString();
    });
    expect(text).toBe('whole');
  });

  it('ends a request and a body on abort, with the reason', async () => {
    const { origin } = await serve((stream, path) => {
      if (path === '/silent') return;
      stream.respond({ ':status': 200 });
      stream.write('half');
    });
    const transport = transportTo(origin);
    const stop = new AbortController();
    const silent = transport.request(ask('/silent', { signal: stop.signal }), 'request');
    const half = textOf(await transport.request(ask('/half', { signal: stop.signal }), 'stream'));
    stop.abort(new Error('enough'));
    const ended = await Promise.allSettled([silent, half]);
    for (const one of ended) expect(one).toMatchObject({ status: 'rejected', reason: { message: 'enough' } });
  });

  it('close ends all connections, even of a server that ignores it', async () => {
    const { origin, sessions } = await serve((stream) => stream.pause());
    const proxy = await startFlakyProxy(origin);
    atEnd.push(() => proxy.close());
    const transport = transportTo(proxy.url);
    const body = Buffer.alloc(8 << 20);
    const running = transport.request(ask('/', { method: 'POST', body }), 'request');
    const failed = expect(running).rejects.toMatchObject({ code: 'ECLOSED' });
    await expect.poll(() => sessions.length).toBe(1);
    proxy.freeze();
    await transport.close();
    await failed;
    expect(transport.sockets()).toBe(0);
    await expect(transport.request(ask('/'), 'request')).rejects.toMatchObject({ code: 'ECLOSED' });
  });

  // In a process of its own: what goes wrong here keeps a process for ever, and takes all memory.
  it('does not send a write that was aborted while it waited', { timeout: 300_000 }, async () => {
    const { origin, sessions } = await serve((stream) => {
      stream.resume();
      stream.respond({ ':status': 200 });
      const words = setInterval(() => stream.write('x'.repeat(1000)), 2);
      stream.once('close', () => clearInterval(words));
    });
    const module = new URL('../../../operator/kube/http/transport.ts', import.meta.url).href;
    const program = `
      import { newTransport } from ${JSON.stringify(module)};
      const transport = newTransport({ origin: ${JSON.stringify(origin)}, insecureSkipTlsVerify: true });
      const body = Buffer.alloc(20_000);
      const open = new Set();
      async function write() {
        const stop = new AbortController();
        open.add(stop);
        const limits = { headersTimeoutMs: 0, bodyTimeoutMs: 0 };
        const asked = { method: 'POST', path: '/', headers: {}, body, signal: stop.signal, ...limits };
        try {
          const answer = await transport.request(asked, 'request');
          await answer.read(() => [...open][Math.floor(Math.random() * open.size)]?.abort());
        } catch {}
        open.delete(stop);
      }
      let sent = 0;
      const more = setInterval(() => {
        for (; open.size < 40 && sent < 3000; sent++) void write();
        if (sent < 3000) return;
        clearInterval(more);
        void transport.close().then(() => process.exit(7));
      }, 1);`;
    // An endless loop takes time of the processor. Time of the clock says nothing: a busy machine takes 20 s to start a program.
    const child = spawn('prlimit', ['--cpu=10', process.execPath, '--input-type=module', '-e', program], {
      stdio: 'ignore',
    });
    atEnd.push(() => child.kill('SIGKILL'));
    const [code] = await once(child, 'exit');
    expect(sessions.length).toBeGreaterThan(0);
    expect(code).toBe(7);
  });
});

// As to a Service that the seed knew nothing of yet: whatever is sent to it again on that connection is lost, too.
it('gives up a connection that loses its packets, and uses another one', async () => {
  const child = spawn(process.execPath, ['-e', SILENT_SERVER], { stdio: ['ignore', 'pipe', 'ignore'] });
  atEnd.push(() => child.kill('SIGKILL'));
  const [told] = await once(child.stdout, 'data');
  const port = Number(String(told));
  child.kill('SIGSTOP');
  // The kernel takes so many for it, and then drops what asks for more.
  const taken = Array.from({ length: 3 }, () => connect(port, '127.0.0.1').on('error', () => {}));
  atEnd.push(() => taken.forEach((socket) => void socket.destroy()));
  await Promise.all(taken.slice(0, 2).map((socket) => once(socket, 'connect')));
  const transport = newTransport({ origin: `https://127.0.0.1:${port}`, ca: ca.cert, reachMs: 50 });
  atEnd.push(() => transport.close());
  for (const path of ['/', '/again'])
    await expect(transport.request(ask(path), 'request')).rejects.toThrow('no connection within 0.05 s');
  // Whoever took the connection may take its time for the rest.
  const slow = createServer((socket) => setTimeout(() => socket.destroy(), 300)).listen(0, '127.0.0.1');
  atEnd.push(() => slow.close());
  await once(slow, 'listening');
  const origin = `https://127.0.0.1:${(slow.address() as AddressInfo).port}`;
  const patient = newTransport({ origin, ca: ca.cert, reachMs: 50 });
  atEnd.push(() => patient.close());
  await expect(patient.request(ask('/'), 'request')).rejects.toMatchObject({ code: 'ECONNRESET' });
});

/** Listens for one connection at a time, and says at which port. */
const SILENT_SERVER = `
  const server = require('node:net').createServer(() => {});
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => console.log(server.address().port));`;

it('uses HTTP/1.1 with repeated headers for a server without HTTP/2', async () => {
  const server = createHttp1Server({ key: pair.key, cert: pair.cert }, (request, response) => {
    response.end(JSON.stringify([request.httpVersion, request.headersDistinct['impersonate-group']]));
  });
  const transport = transportTo(await listen(server));
  atEnd.push(() => server.close());
  const headers = { 'impersonate-group': ['a', 'b'] };
  for (const kind of ['request', 'stream'] as const) {
    const answer = await transport.request(ask('/', { headers }), kind);
    expect(JSON.parse(await textOf(answer))).toEqual(['1.1', ['a', 'b']]);
  }
});
