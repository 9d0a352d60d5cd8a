import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { access } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { errorText } from '../../operator/api/errors.ts';
import { run } from '../../operator/garden/host/command.ts';
import { loadModules } from '../../operator/garden/host/network.ts';
import { testTools } from './tools.ts';

/** What a way out needs of this machine, installed first where it can be had. Rejects with what is lacking. */
async function needsOfEgress(): Promise<void> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) throw new Error('it takes root on Linux');
  await loadModules();
  await access('/dev/net/tun');
  await testTools('slirp4netns', 'iptables');
}

/** Why no garden of this machine can have a way out, which it also prints; undefined where it can. */
export const whyNoEgress = (): Promise<string | undefined> =>
  needsOfEgress().then(
    () => undefined,
    (error: unknown) => {
      process.stderr.write(`tests: no way out for pods is tried, for there is none here: ${errorText(error)}\n`);
      return errorText(error);
    },
  );

/** What its name server answers for every name under example.test, and how long it may be kept. */
export const TTL = 77;

/** A web server that says where it was reached, and a name server that knows one address. Runs by itself in the namespace. */
const SERVERS = `
const { createServer } = require('node:http');
const dgram = require('node:dgram');
const [web, names, address, ttl] = process.argv.slice(1);
createServer((request, response) => response.end('the internet at ' + request.headers.host)).listen(Number(web), () => {
  const socket = dgram.createSocket('udp4');
  socket.on('message', (question, from) => {
    const end = question.indexOf(0, 12) + 5;
    const isKnown = question.subarray(12, end).toString('latin1').includes('\\x07example\\x04test') && question.readUInt16BE(end - 4) === 1;
    const head = Buffer.from(question.subarray(0, end));
    head[2] |= 0x80;
    head[3] = isKnown ? 0x80 : 0x83;
    head.writeUInt16BE(isKnown ? 1 : 0, 6);
    head.writeUInt32BE(0, 8);
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, Number(ttl), 0, 4, ...address.split('.').map(Number)]);
    socket.send(isKnown ? Buffer.concat([head, record]) : head, from.port, from.address);
  });
  socket.bind(Number(names), () => console.log('listening'));
});
`;

/** A network namespace that plays the internet: this machine reaches it by a route, as it reaches all else. */
export interface Internet {
  /** A public address, and one of a private network, both served. */
  address: string;
  privateAddress: string;
  /** This machine's own address in that network. */
  hostAddress: string;
  /** Takes it away. */
  close(): Promise<void>;
}

/** Makes it; its names carry a random id, so that several may be there. Takes root. */
export async function makeInternet({ web = 80 } = {}): Promise<Internet> {
  const id = randomBytes(3).toString('hex');
  const namespace = `internet-${id}`;
  const link = `internet-${id}`;
  const [third, fourth] = [...randomBytes(2)].map((byte) => byte & 0xfc) as [number, number];
  // Reserved for measurements and for documentation: nobody's.
  const [hostAddress, address] = [1, 2].map((last) => `198.19.${third}.${fourth + last}`) as [string, string];
  const privateAddress = `172.31.${third}.${fourth + 2}`;
  let servers: ChildProcess | undefined;
  const close = async () => {
    servers?.kill('SIGKILL');
    if (servers && servers.exitCode === null && servers.signalCode === null) await once(servers, 'exit');
    await run(['ip', 'link', 'delete', link]).catch(() => {});
    await run(['ip', 'netns', 'delete', namespace]).catch(() => {});
  };
  try {
    await run(['ip', 'netns', 'add', namespace]);
    await run(['ip', 'link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace]);
    const inside = [
      'link set lo up',
      `address add ${address}/30 dev eth0`,
      `address add ${privateAddress}/32 dev eth0`,
    ];
    await run(['ip', '-n', namespace, '-batch', '-'], { input: [...inside, 'link set eth0 up'].join('\n') });
    const outside = [`address add ${hostAddress}/30 dev ${link}`, `link set ${link} up`];
    const route = `route add ${privateAddress} via ${address} dev ${link}`;
    await run(['ip', '-batch', '-'], { input: [...outside, route].join('\n') });
    const node = [process.execPath, '-e', SERVERS, String(web), '53', address, String(TTL)];
    servers = spawn('nsenter', [`--net=/run/netns/${namespace}`, ...node], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(createInterface({ input: servers.stdout! }), 'line');
    return { address, privateAddress, hostAddress, close };
  } catch (error) {
    await close();
    throw error;
  }
}
