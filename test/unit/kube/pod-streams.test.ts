import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { execInPod } from '../../../operator/kube/pod-exec.ts';
import { podDialer } from '../../../operator/kube/pod-tunnel.ts';
import { createCA, issue, type KeyPair } from '../../../operator/pki/certificates.ts';
import { writeKubeconfigText } from '../../../operator/pki/kubeconfig.ts';
import { type ConnectProxy, ELSEWHERE, startProxy } from '../../kit/connect-proxy.ts';

const SERVER = `https://${ELSEWHERE}:6443`;
let ca: KeyPair;
let server: Server;
let proxy: ConnectProxy;

const CLOSE = 8;
const PING = 9;
let pings = 0;
/** One message of a stream: the first byte says which. Shorter than 126 bytes. */
const frame = (stream: number, text: string): Buffer =>
  Buffer.concat([Buffer.from([0x82, text.length + 1, stream]), Buffer.from(text, 'latin1')]);

/** The text of a message from a client, without the byte that says which stream. */
function textOf(message: Buffer): string {
  const mask = message.subarray(2, 6);
  const plain = message.subarray(6, 6 + (message[1]! & 0x7f)).map((byte, at) => byte ^ mask[at % 4]!);
  return Buffer.from(plain.subarray(1)).toString('latin1');
}

/** A pod whose port says everything twice, and in which every command says hello. */
function podStreams({ url = '', headers }: IncomingMessage, socket: Duplex): void {
  socket.on('error', () => {});
  const accept = createHash('sha1').update(`${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`);
  const protocol = String(headers['sec-websocket-protocol']).split(',')[0]!;
  const answer = [
    'HTTP/1.1 101 Switching Protocols',
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${accept.digest('base64')}`,
    `Sec-WebSocket-Protocol: ${protocol}`,
  ];
  socket.write(`${answer.join('\r\n')}\r\n\r\n`);
  const isCommand = url.includes('/exec?');
  // Each stream of a port begins with its number.
  const first = isCommand ? [frame(1, 'hello\n'), frame(3, '{"status":"Success"}')] : [frame(0, 'pp'), frame(1, 'pp')];
  socket.write(Buffer.concat(first));
  socket.on('data', (message: Buffer) => {
    const kind = message[0]! & 0x0f;
    if (kind === CLOSE) socket.end();
    else if (kind === PING) pings++;
    else socket.write(frame(0, textOf(message).repeat(2)));
  });
}

beforeAll(async () => {
  ca = await createCA({ commonName: 'test', days: 1 });
  const dnsNames = [ELSEWHERE];
  server = createServer({ ...(await issue(ca, { commonName: 's', days: 1, usages: ['server'], dnsNames })) });
  server.on('upgrade', podStreams);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  proxy = await startProxy({ [`${ELSEWHERE}:6443`]: port, 'other.elsewhere.test:6443': '502 Bad Gateway' });
});
afterAll(async () => {
  await proxy?.close();
  server?.close();
});
const withLogin = () => proxy.url.replace('//', '//ada:hush@');
beforeEach(() => {
  proxy.asked.length = 0;
  vi.stubEnv('HTTPS_PROXY', withLogin());
  vi.stubEnv('https_proxy', '');
  vi.stubEnv('NO_PROXY', '');
});
afterEach(() => vi.unstubAllEnvs());

const config = (at = SERVER, proxyURL?: string): string =>
  writeKubeconfigText({ server: at, ca: ca.cert, token: 't', name: 'c', user: 'u', proxyURL });

it("podDialer reaches a pod through the environment's proxy and an API server behind it", async () => {
  const stream = await podDialer(config())('shop', 'etcd-0', 2379);
  stream.write('etcd');
  const [said] = await once(stream, 'data');
  expect(String(said)).toBe('etcdetcd');
  expect(proxy.asked).toEqual([`${ELSEWHERE}:6443`]);
  stream.destroy();
  await expect.poll(proxy.open).toBe(0);
});

it('keepAlive pings a quiet stream until it closes', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const stream = await podDialer(config())('shop', 'etcd-0', 2379);
  const before = pings;
  vi.advanceTimersByTime(60_000);
  await expect.poll(() => pings - before).toBe(2);
  stream.destroy();
  await expect.poll(proxy.open).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
});

it('execInPod runs a command through the proxy of the kubeconfig', async () => {
  vi.stubEnv('HTTPS_PROXY', '');
  const target = { namespace: 'shop', pod: 'web', container: 'web' };
  expect(await execInPod(config(SERVER, withLogin()), target, ['hi'], 10_000)).toBe('hello\n');
  await expect.poll(proxy.open).toBe(0);
});

it('the error of a proxy that fails names the proxy without its password', async () => {
  const at = 'https://other.elsewhere.test:6443';
  const why = `proxy ${proxy.url} did not open a connection to other.elsewhere.test:6443: 502 Bad Gateway`;
  await expect(podDialer(config(at))('shop', 'etcd-0', 2379)).rejects.toThrow(
    new Error(`pod shop/etcd-0, port 2379: ${why}`),
  );
  const target = { namespace: 'shop', pod: 'web', container: 'web' };
  await expect(execInPod(config(at), target, ['hi'], 10_000)).rejects.toThrow(
    new Error(`pod shop/web cannot be entered: ${why}`),
  );
});
