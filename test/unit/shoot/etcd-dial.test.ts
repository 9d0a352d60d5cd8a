import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { Duplex, PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EtcdClient } from '../../../operator/etcd/etcd-client.ts';
import { certificateExpiry, createCA, issue, type KeyPair } from '../../../operator/pki/certificates.ts';

const unheard: unknown[] = [];
const note = (error: unknown) => unheard.push(error);
let listeners: NodeJS.UncaughtExceptionListener[];
let pair: KeyPair;

// An error of a stream that nobody listens for ends the operator.
beforeEach(async () => {
  pair = await createCA({ commonName: 'etcd', days: 1, now: new Date() });
  listeners = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException').on('uncaughtException', note);
});
afterEach(() => {
  process.off('uncaughtException', note);
  for (const listener of listeners) process.on('uncaughtException', listener);
});

/** A client whose every connection is a tunnel in which nobody answers; `opened` is told of each. */
const clientThrough = (opened: (tunnel: Duplex) => void) =>
  new EtcdClient(
    ['https://127.0.0.1:2379'],
    { ca: pair.cert, ...pair },
    {
      dial: async () => {
        const tunnel = Duplex.from({ writable: new PassThrough(), readable: new PassThrough() });
        opened(tunnel);
        return tunnel;
      },
    },
  );

it('a silent tunnel is given up without later failures', async () => {
  const opened: Duplex[] = [];
  const client = clientThrough((tunnel) => opened.push(tunnel));
  expect(await client.observe()).toBeUndefined();
  await client.close();
  await new Promise((resolve) => setImmediate(resolve));
  expect(opened.map(({ destroyed }) => destroyed)).toEqual([true]);
  expect(unheard).toEqual([]);
});

it('a refused tunnel reports why', async () => {
  const refuse = (tunnel: Duplex) => setTimeout(() => tunnel.destroy(new Error('port 2379: connection refused')), 50);
  const client = clientThrough(refuse);
  await expect(client.memberList()).rejects.toThrow('connection refused');
  await client.close();
  expect(unheard).toEqual([]);
});

it("a member's certificate expiry is read at the end of a tunnel", async () => {
  const { cert, key } = await issue(pair, {
    commonName: 'one',
    ipAddresses: ['10.0.0.1', '127.0.0.1'],
    usages: ['server'],
    days: 0.5,
  });
  const clientURLs = ['https://10.0.0.1:2379'];
  const answers = {
    '/v3/cluster/member/list': { members: [{ ID: '1', name: 'one', clientURLs }] },
    '/v3/maintenance/status': { header: { member_id: '1' }, leader: '1' },
  };
  const server = createServer({ cert, key }, ({ url }, response) => {
    response.end(JSON.stringify(answers[url as keyof typeof answers]));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const client = new EtcdClient(
    clientURLs,
    { ca: pair.cert, ...pair },
    { dial: async () => connect((server.address() as AddressInfo).port, '127.0.0.1') },
  );
  const members = await client.observe();
  await client.close();
  server.close();
  expect(members).toMatchObject([{ name: 'one', healthy: true, certificateEnds: certificateExpiry(cert) }]);
});

describe('a member with a separate gateway', () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });

  /** A port of the loopback that answers for a member by this name. */
  async function memberAt(name: string): Promise<number> {
    const { cert, key } = await issue(pair, {
      commonName: name,
      ipAddresses: ['127.0.0.1'],
      usages: ['server'],
      days: 0.5,
    });
    const server = createServer({ cert, key }, (_, response) => {
      response.end(JSON.stringify({ members: [{ ID: '1', name }] }));
    });
    servers.push(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return (server.address() as AddressInfo).port;
  }

  async function asked(clientPort: number, gatewayPort: number): Promise<string | undefined> {
    const way = { gatewayPort };
    const client = new EtcdClient([`https://127.0.0.1:${clientPort}`], { ca: pair.cert, ...pair }, way);
    try {
      return (await client.memberList())[0]?.name;
    } finally {
      await client.close();
    }
  }

  it('is asked at the gateway', async () => {
    expect(await asked(await memberAt('for API servers'), await memberAt('gateway'))).toBe('gateway');
  });

  it('that started without it is asked at the client port', async () => {
    const gateway = await memberAt('gateway');
    servers.pop()?.close();
    expect(await asked(await memberAt('for API servers'), gateway)).toBe('for API servers');
  });
});
