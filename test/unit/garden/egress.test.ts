import { createSocket, type Socket } from 'node:dgram';
import { connect, createServer, type Server } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { DNSRelay } from '../../../operator/garden/egress/dns-relay.ts';
import { type EgressPolicy, egressLine, parsePolicy } from '../../../operator/garden/egress/policy.ts';
import { parseResolvers, type Resolver } from '../../../operator/garden/egress/resolvers.ts';
import { reachableAddresses, routeCommands, routeExceptions } from '../../../operator/garden/egress/routes.ts';
import { parseLocalAddresses } from '../../../operator/garden/host/own-addresses.ts';
import { chooseRanges, egressRange } from '../../../operator/garden/host/ranges.ts';

const RANGES = chooseRanges('000000', [])!;
const HOSTS = ['192.0.2.2'];

/** Routes as the kernel would have them after the commands. */
function applied(commands: readonly string[]): { dst: string; protocol: string; type?: string }[] {
  const routes = new Map<string, { dst: string; protocol: string; type?: string }>();
  for (const command of commands) {
    const [, verb, ...words] = command.split(' ');
    const type = words[0] === 'unreachable' ? words.shift() : undefined;
    const dst = words[0]!;
    if (verb === 'del') routes.delete(dst);
    else routes.set(dst, { dst, protocol: '86', ...(type && { type }) });
  }
  return [...routes.values()];
}
const commandsFor = (policy: EgressPolicy, shown: Parameters<typeof routeCommands>[0], hosts = HOSTS) =>
  routeCommands(shown, routeExceptions(policy, RANGES, hosts), RANGES);

it('egress is unrestricted by default, and closed for an unreadable policy', () => {
  expect(parsePolicy(undefined)).toBe('all');
  expect(parsePolicy('{"policy":"public"}')).toBe('public');
  for (const text of ['{"policy":"everything"}', '{"policy":', 'null', '[]', ''])
    expect(parsePolicy(text)).toBe('none');
});

it('egress never reaches cloud metadata, other gardens, or the machine past its firewall', () => {
  for (const policy of ['all', 'public', 'none'] as const) {
    const ways = routeExceptions(policy, RANGES, HOSTS);
    for (const refused of ['0.0.0.0/8', '169.254.0.0/16', '168.63.129.16', '100.100.100.200', '10.160.0.0/11'])
      expect(ways.get(refused)).toBe('unreachable');
    expect(ways.get(egressRange(RANGES).resolver)).toBe('unreachable');
    expect(ways.get('192.0.2.2')).toBe(policy === 'all' ? 'link' : 'unreachable');
    expect(ways.get('10.0.0.0/8')).toBe(policy === 'all' ? undefined : 'unreachable');
  }
});

it("hostAddresses includes interfaces whose link is down, and no transparent proxy's ranges", () => {
  const leaf = (address: string, ...routes: string[]) =>
    [`     |-- ${address}`, ...routes.map((route) => `        /${route}`)].join('\n');
  const trie = [
    ...['Main:', '  +-- 0.0.0.0/0 3 0 5', leaf('0.0.0.0', '0 universe UNICAST'), leaf('127.0.0.1', '32 host LOCAL')],
    ...[leaf('172.17.0.0', '16 link UNICAST'), leaf('172.17.0.1', '32 host LOCAL')],
    ...[leaf('192.168.7.0', '24 link UNICAST', '25 host LOCAL'), leaf('192.168.7.255', '32 link BROADCAST')],
    ...['Local:', leaf('172.17.0.1', '32 host LOCAL'), leaf('10.162.128.1', '32 host LOCAL')],
    ...['Id 100:', leaf('0.0.0.0', '0 host LOCAL')],
  ];
  expect(reachableAddresses(parseLocalAddresses(`${trie.join('\n')}\n`))).toEqual(['172.17.0.1', '192.168.7.0/25']);
});

it('routeCommands adds no existing route, and removes obsolete ones', () => {
  const shown = applied(commandsFor('public', []));
  expect(commandsFor('public', shown)).toEqual([]);
  const opened = commandsFor('all', shown);
  expect(opened).toContain('route del unreachable 192.168.0.0/16 proto 86');
  expect(opened).toContain(`route replace 192.0.2.2 via ${RANGES.hostAddress} dev uplink proto 86`);
  expect(opened.join()).not.toContain('169.254');
  const moved = commandsFor('all', applied(commandsFor('all', [])), ['198.51.100.7']);
  expect(moved).toEqual([
    `route replace 198.51.100.7 via ${RANGES.hostAddress} dev uplink proto 86`,
    'route del 192.0.2.2 proto 86',
  ]);
});

it("routeCommands removes an older garden's default route, and no other", () => {
  const old = { dst: 'default', gateway: RANGES.hostAddress, dev: 'uplink' };
  const pods = { dst: RANGES.pods, dev: 'pods', protocol: 'kernel' };
  expect(commandsFor('none', [old, pods])).toContain(`route del default via ${RANGES.hostAddress} dev uplink`);
  const open = { dst: 'default', gateway: egressRange(RANGES).gateway, dev: 'egress' };
  expect(commandsFor('all', [open, pods]).join()).not.toMatch(/default|route del/);
});

it('egressLine describes the policy in one line', () => {
  expect(egressLine({ policy: 'all' })).toBe('Pods reach what this machine reaches.');
  expect(egressLine({ policy: 'none' })).toContain('"coppice up --egress all"');
  expect(egressLine({ policy: 'all', problem: 'no slirp4netns' })).toBe(
    'Pods reach nothing outside the garden: no slirp4netns',
  );
});

it("parseResolvers returns the machine's name servers in order, and loopback without any", () => {
  const text =
    'search corp\n# nameserver 9.9.9.9\nnameserver 127.0.0.53\nnameserver fe80::1%eth0\nnameserver host\nnameserver 1.1.1.1\n';
  expect(parseResolvers(text).map(({ host }) => host)).toEqual(['127.0.0.53', 'fe80::1%eth0', '1.1.1.1']);
  expect(parseResolvers('options rotate\n')).toEqual([{ host: '127.0.0.1', port: 53 }]);
});

const open: { close(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.close();
});
const LOOPBACK = '127.0.0.1';
const bound = (onMessage?: (message: Buffer, reply: (answer: Buffer) => void) => void): Promise<Socket> =>
  new Promise((resolve) => {
    const socket = createSocket('udp4');
    socket.on('message', (message, from) =>
      onMessage?.(message, (answer) => socket.send(answer, from.port, from.address)),
    );
    socket.bind(0, LOOPBACK, () => resolve(socket));
  });
const listening = (server: Server): Promise<Server> =>
  new Promise((resolve) => server.listen(0, LOOPBACK, () => resolve(server)));
const portOf = (one: Socket | Server) => (one.address() as { port: number }).port;

const question = (id: number) => {
  const head = Buffer.alloc(12);
  head.writeUInt16BE(id);
  head.writeUInt16BE(1, 4);
  return Buffer.concat([head, Buffer.from('\x03www\x07example\x04test\0\0\x01\0\x01', 'latin1')]);
};
const answerTo = (asked: Buffer, code: number, tail = '') => {
  const answer = Buffer.concat([asked, Buffer.from(tail)]);
  answer[2]! |= 0x80;
  answer[3] = 0x80 | code;
  return answer;
};
/** A name server that answers like that. */
async function resolver(answer: (asked: Buffer) => Buffer | undefined): Promise<Resolver> {
  const socket = await bound((asked, reply) => {
    const said = answer(asked);
    if (said) reply(said);
  });
  open.push(socket);
  return { host: LOOPBACK, port: portOf(socket) };
}
/** Asks a relay to these servers, by UDP. */
async function relay(resolvers: readonly Resolver[]) {
  const udp = await bound();
  const tcp = await listening(createServer());
  open.push(new DNSRelay({ tcp, udp, resolvers: async () => resolvers }));
  const ask = async (asked: Buffer): Promise<Buffer> => {
    const answer = Promise.withResolvers<Buffer>();
    const client = await bound((message) => answer.resolve(message));
    open.push(client);
    client.send(asked, portOf(udp), LOOPBACK);
    return answer.promise;
  };
  return { ask, tcpPort: portOf(tcp) };
}

it('the DNS relay passes questions and answers byte for byte', async () => {
  const asked: Buffer[] = [];
  const server = await resolver((one) => {
    asked.push(one);
    return answerTo(one, 0, 'with a TTL of its own');
  });
  const { ask } = await relay([server]);
  const mine = question(4711);
  expect(await ask(mine)).toEqual(answerTo(mine, 0, 'with a TTL of its own'));
  expect(asked).toEqual([mine]);
});

it('the DNS relay asks the next name server after a failure, silence or a foreign answer', async () => {
  const servers = await Promise.all([
    resolver((one) => answerTo(one, 2)),
    resolver((one) => answerTo(Buffer.concat([Buffer.from([9, 9]), one.subarray(2)]), 0)),
    resolver((one) => answerTo(one, 3, 'no such name')),
  ]);
  const { ask } = await relay(servers);
  expect(await ask(question(1))).toEqual(answerTo(question(1), 3, 'no such name'));
});

it('the DNS relay fails at once without a name server, and beyond its limit of questions', async () => {
  const { ask } = await relay([{ host: LOOPBACK, port: 1 }]);
  expect(await ask(question(2))).toEqual(answerTo(question(2), 2));

  // As many as it holds wait for that server; it is never asked the others.
  const asked = new Set<number>();
  const waiting = await resolver((one) => {
    asked.add(one.readUInt16BE());
    return undefined;
  });
  const flooded = await relay([waiting]);
  const failed: number[] = [];
  let id = 0;
  const flood = async () => {
    for (const end = id + 400; id < end; id++) {
      void flooded.ask(question(id)).then((answer) => (answer[3]! & 15) === 2 && failed.push(answer.readUInt16BE()));
      // The kernel drops what comes faster than it is read.
      await setImmediate();
    }
    return failed.some((one) => !asked.has(one));
  };
  // On a busy machine the first have been given up before there are enough of them.
  await expect.poll(flood, { timeout: 30_000 }).toBe(true);
});

it('the DNS relay forwards TCP connections to the first available server', async () => {
  const server = await listening(
    createServer((socket) => socket.on('data', (text) => socket.end(`answer to ${text}`))),
  );
  open.push(server);
  const gone = await listening(createServer());
  const port = portOf(gone);
  await new Promise((resolve) => gone.close(resolve));
  const { tcpPort } = await relay([
    { host: LOOPBACK, port },
    { host: LOOPBACK, port: portOf(server) },
  ]);
  const client = connect(tcpPort, LOOPBACK);
  client.write('a question');
  let said = '';
  for await (const text of client) said += text;
  expect(said).toBe('answer to a question');
});
