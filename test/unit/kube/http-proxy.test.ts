import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import { createServer as createHttp1Server } from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { addressList } from '../../../operator/api/address-range.ts';
import { outsideOnly } from '../../../operator/kube/http/address-guard.ts';
import type { Exchange } from '../../../operator/kube/http/exchange.ts';
import { bodyTextOf } from '../../../operator/kube/http/exchange.ts';
import { connectThrough, environmentProxy, parseProxy } from '../../../operator/kube/http/http-proxy.ts';
import { newTransport } from '../../../operator/kube/http/transport.ts';
import { createCA, issue, type KeyPair } from '../../../operator/pki/certificates.ts';
import { type ConnectProxy, ELSEWHERE, startProxy } from '../../kit/connect-proxy.ts';

type TransportOptions = Parameters<typeof newTransport>[0];

describe('environmentProxy', () => {
  const proxy = (server: string, noProxy = '', more: Record<string, string> = {}) =>
    environmentProxy(server, { HTTPS_PROXY: 'http://proxy.example:3128', NO_PROXY: noProxy, ...more })?.name;

  it.each([
    ['https://api.example.com', ''],
    ['https://10.1.2.3:6443', '10.2.0.0/16,192.0.2.1'],
    ['https://api.example.com:6443', 'api.example.com:443,other.com,ample.com'],
    ['https://example.com', '.example.com'],
    ['https://[2001:db8::1]:6443', '2001:db8:1::/48'],
    ['https://svc.example.com', ''],
  ])('leads to %s where NO_PROXY is "%s"', (server, noProxy) => {
    expect(proxy(server, noProxy)).toBe('http://proxy.example:3128');
  });

  it.each([
    ['https://api.example.com', '*'],
    ['https://api.example.com', 'api.example.com'],
    ['https://API.example.com.', ' other.com , Example.COM '],
    ['https://api.example.com:6443', 'example.com:6443'],
    ['https://api.example.com', '.example.com'],
    ['https://api.example.com', '*.example.com'],
    ['https://10.1.2.3:6443', '10.0.0.0/8'],
    ['https://10.1.2.3:6443', '10.1.2.3'],
    ['https://10.1.2.3:6443', '10.1.2.3:6443'],
    ['https://[2001:db8::1]:6443', '2001:db8::/32'],
    ['https://[2001:db8::1]:6443', '[2001:db8::1]'],
    ['https://127.0.0.1:6443', ''],
    ['https://[::1]:6443', ''],
    ['https://localhost:6443', ''],
    ['https://kubernetes.default.svc', ''],
    ['https://api.shoot.svc.cluster.local:6443', ''],
    ['http://api.example.com', ''],
  ])('does not lead to %s where NO_PROXY is "%s"', (server, noProxy) => {
    expect(proxy(server, noProxy)).toBeUndefined();
  });

  it("returns no proxy for the pod's own cluster, and none without the variables", () => {
    const own = { KUBERNETES_SERVICE_HOST: '10.96.0.1' };
    expect(proxy('https://10.96.0.1:443', '', own)).toBeUndefined();
    expect(environmentProxy('https://api.example.com', {})).toBeUndefined();
    expect(environmentProxy('https://api.example.com', { HTTPS_PROXY: '' })).toBeUndefined();
  });

  it('falls back to HTTP_PROXY without HTTPS_PROXY', () => {
    const named = (env: Record<string, string>) => environmentProxy('https://api.example.com', env)?.name;
    expect(named({ HTTP_PROXY: 'http://plain:1' })).toBe('http://plain:1');
    expect(named({ HTTP_PROXY: 'http://capital:1', http_proxy: 'small:2', HTTPS_PROXY: '' })).toBe('http://small:2');
    expect(named({ http_proxy: 'http://plain:1', HTTPS_PROXY: 'http://tls:3' })).toBe('http://tls:3');
    expect(named({ HTTP_PROXY: 'http://plain:1', NO_PROXY: 'example.com' })).toBeUndefined();
    expect(() => named({ HTTP_PROXY: 'socks5://u:hush@proxy:1080' })).toThrow(
      /^environment variable HTTP_PROXY names no/,
    );
  });

  it('prefers the lower-case variable', () => {
    const both = { HTTPS_PROXY: 'http://capital:1', https_proxy: 'small:2', NO_PROXY: '*', no_proxy: 'other' };
    expect(environmentProxy('https://api.example.com', both)?.name).toBe('http://small:2');
  });

  it.each(['socks5://u:hush@proxy:1080', 'http://u:hush@:3128', 'http://'])(
    'may not be %s, which is not shown',
    (text) => {
      expect(() => environmentProxy('https://api.example.com', { HTTPS_PROXY: text })).toThrow(
        /^environment variable HTTPS_PROXY names no proxy that can be used$/,
      );
    },
  );
});

let ca: KeyPair;
let serving: KeyPair;
let proxying: KeyPair;
let client: KeyPair;
let systemAuthorities: string[];
beforeAll(async () => {
  ca = await createCA({ commonName: 'test', days: 1 });
  const names = { dnsNames: [ELSEWHERE], ipAddresses: ['192.0.2.7'] };
  serving = await issue(ca, { commonName: 'server', days: 1, usages: ['server'], ...names });
  proxying = await issue(ca, { commonName: 'proxy', days: 1, usages: ['server'], dnsNames: ['localhost'] });
  client = await issue(ca, { commonName: 'ada', days: 1, usages: ['client'] });
  systemAuthorities = getCACertificates('default');
});
afterAll(() => setDefaultCACertificates(systemAuthorities));

const atEnd: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of atEnd.splice(0).reverse()) await undo();
});

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** An API server that tells by which HTTP it was asked, and by whom. */
async function apiServer({ allowHTTP2 = true, pair = serving } = {}): Promise<number> {
  const answer = (request: Http2ServerRequest | IncomingMessage, response: Http2ServerResponse | ServerResponse) => {
    const { CN } = (request.socket as TLSSocket).getPeerCertificate().subject ?? {};
    response.end(`${request.httpVersion} ${CN}`);
  };
  const options = { ...pair, ca: ca.cert, requestCert: true };
  const server = allowHTTP2 ? createSecureServer(options, answer) : createHttp1Server(options, answer);
  server.on('session', (session) => session.on('error', () => {}));
  atEnd.push(() => void server.close());
  return listen(server as Server);
}

/** A proxy that leads to one API server, or answers so, whatever its name. */
async function proxyTo(server: number | string, pair?: KeyPair): Promise<ConnectProxy> {
  const targets = [`${ELSEWHERE}:6443`, '192.0.2.7:6443', '127.0.0.1:6443', '[2001:db8::7]:6443'];
  const proxy = await startProxy(Object.fromEntries(targets.map((target) => [target, server])), pair);
  atEnd.push(proxy.close);
  return proxy;
}

const withLogin = ({ url }: ConnectProxy, login: string) => url.replace('//', `//${login}@`);

function transportBy(url: string, more: Partial<TransportOptions> = {}) {
  const proxy = parseProxy(url, 'the test');
  const transport = newTransport({ origin: `https://${ELSEWHERE}:6443`, ca: ca.cert, ...client, proxy, ...more });
  atEnd.push(() => transport.close());
  return transport;
}

const ask: Exchange = { method: 'GET', path: '/', headers: {}, headersTimeoutMs: 30_000, bodyTimeoutMs: 30_000 };
const BOUND = { most: 1000, tooLarge: () => new Error('too large') };
const said = async (transport: ReturnType<typeof newTransport>, kind: 'request' | 'stream' = 'request') =>
  bodyTextOf(await transport.request(ask, kind), BOUND);

describe('a connection through a proxy', () => {
  it('reaches a name that only the proxy resolves, with HTTP/2 and the client certificate, and is shared', async () => {
    const proxy = await proxyTo(await apiServer());
    const transport = transportBy(withLogin(proxy, 'ada:a%20secret'));
    expect(await Promise.all([said(transport), said(transport), said(transport, 'stream')])).toEqual(
      Array.from({ length: 3 }, () => '2.0 ada'),
    );
    expect(new Set(proxy.asked)).toEqual(new Set([`${ELSEWHERE}:6443`]));
    expect(proxy.logins[0]).toBe(`Basic ${Buffer.from('ada:a secret').toString('base64')}`);
    expect(proxy.asked.length).toBeLessThanOrEqual(3);
    await transport.close();
    await expect.poll(proxy.open).toBe(0);
    expect(transport.sockets()).toBe(0);
  });

  it('works for a server without HTTP/2', async () => {
    const proxy = await proxyTo(await apiServer({ allowHTTP2: false }));
    const transport = transportBy(proxy.url);
    expect(await said(transport)).toBe('1.1 ada');
    await transport.close();
    await expect.poll(proxy.open).toBe(0);
  });

  it.each([true, false])("verifies the server's certificate for an address, HTTP/2 %s", async (allowHTTP2) => {
    const proxy = await proxyTo(await apiServer({ allowHTTP2 }));
    expect(await said(transportBy(proxy.url, { origin: 'https://192.0.2.7:6443' }))).toMatch(/ ada$/);
    const other = transportBy(proxy.url, { origin: 'https://[2001:db8::7]:6443' });
    await expect(said(other)).rejects.toThrow(/2001:db8::7/i);
    expect(proxy.asked.at(-1)).toBe('[2001:db8::7]:6443');
  });

  it('may use TLS to the proxy, and pings of a live one are answered', async () => {
    setDefaultCACertificates([ca.cert]);
    const proxy = await proxyTo(await apiServer(), proxying);
    const transport = transportBy(proxy.url, { liveness: { pingMs: 50, silenceMs: 500 } });
    expect(await said(transport)).toBe('2.0 ada');
    await new Promise((resolve) => setTimeout(resolve, 1000));
    expect(await said(transport)).toBe('2.0 ada');
    expect(proxy.asked).toHaveLength(1);
  });

  it('does not send the password to a proxy with a wrong certificate', async () => {
    setDefaultCACertificates([ca.cert]);
    const proxy = await proxyTo(await apiServer(), serving);
    const url = withLogin(proxy, 'ada:hush');
    await expect(said(transportBy(url))).rejects.toThrow(/^proxy https:\/\/localhost:\d+ cannot be used: .*altnames/);
    expect(proxy.asked).toEqual([]);
  });

  it('fails when somebody on the path presents another certificate', async () => {
    const other = await createCA({ commonName: 'other', days: 1 });
    const pair = await issue(other, { commonName: 'server', days: 1, usages: ['server'], dnsNames: [ELSEWHERE] });
    for (const allowHTTP2 of [true, false]) {
      const proxy = await proxyTo(await apiServer({ pair, allowHTTP2 }));
      await expect(said(transportBy(proxy.url))).rejects.toThrow(/certificate/);
      await expect.poll(proxy.open).toBe(0);
    }
  });

  it.each([
    ['403 Forbidden', `did not open a connection to ${ELSEWHERE}:6443: 403 Forbidden`],
    ['407 Proxy Authentication Required', 'asks for another user and password: 407 Proxy Authentication Required'],
    ['101 Switching Protocols', `did not open a connection to ${ELSEWHERE}:6443: 101 Switching Protocols`],
  ])('that is answered by %s fails with a sentence about the proxy, without its password', async (answer, sentence) => {
    const proxy = await proxyTo(answer);
    const transport = transportBy(withLogin(proxy, 'ada:hush'));
    await expect(said(transport)).rejects.toMatchObject({ message: `proxy ${proxy.url} ${sentence}`, code: 'EPROXY' });
  });

  it('names the proxy that cannot be reached or speaks no HTTP', async () => {
    const gone = createServer();
    const port = await listen(gone);
    await new Promise((resolve) => gone.close(resolve));
    const name = `http://127.0.0.1:${port}`;
    await expect(said(transportBy(name))).rejects.toMatchObject({
      message: `proxy ${name} cannot be used: connect ECONNREFUSED 127.0.0.1:${port}`,
      code: 'ECONNREFUSED',
    });
    for (const answer of ['SSH-2.0-x\r\n', `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`]) {
      const noise = createServer((socket) => void socket.on('error', () => {}).end(answer));
      atEnd.push(() => void noise.close());
      const other = await listen(noise);
      await expect(said(transportBy(`http://127.0.0.1:${other}`))).rejects.toThrow(
        new RegExp(`^proxy http://127.0.0.1:${other} cannot be used: Parse Error: .*$`),
      );
    }
  });

  it('has a timeout, and ends when the client closes', async () => {
    const held: Socket[] = [];
    const silent = createServer((socket) => void held.push(socket.on('error', () => {}).resume()));
    atEnd.push(() => {
      for (const socket of held) socket.destroy();
      silent.close();
    });
    const url = `http://127.0.0.1:${await listen(silent)}`;
    const limits = { withinMs: 50, signal: new AbortController().signal };
    await expect(connectThrough(parseProxy(url, 'x'), { host: ELSEWHERE, port: 443 }, limits)).rejects.toMatchObject({
      message: `proxy ${url} did not open a connection to ${ELSEWHERE}:443 within 0.05 s`,
      code: 'ETIMEDOUT',
    });
    const transport = transportBy(url);
    const asked = expect(said(transport)).rejects.toMatchObject({ code: 'ECLOSED' });
    await expect.poll(() => held.length).toBe(2);
    await transport.close();
    await asked;
    await expect.poll(() => held.every((socket) => socket.destroyed)).toBe(true);
  });

  it('goes to the address that was checked, and to none that is refused', async () => {
    const pair = await issue(ca, { commonName: 's', days: 1, usages: ['server'], dnsNames: ['localhost'] });
    const proxy = await proxyTo(await apiServer({ pair }));
    const admit = outsideOnly(addressList(['127.0.0.1/32', '::1/128']));
    const origin = 'https://localhost:6443';
    expect(await said(transportBy(proxy.url, { origin, admit }))).toBe('2.0 ada');
    expect(proxy.asked).toEqual(['127.0.0.1:6443']);
    const refusing = outsideOnly(addressList([]));
    for (const server of ['https://localhost:6443', 'https://169.254.169.254:80'])
      await expect(said(transportBy(proxy.url, { origin: server, admit: refusing }))).rejects.toThrow(/is internal/);
    expect(proxy.asked).toHaveLength(1);
  });
});
