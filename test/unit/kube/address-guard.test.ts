import { once } from 'node:events';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { addressList } from '../../../operator/api/address-range.ts';
import { KubeClient } from '../../../operator/kube/client.ts';
import { addressesOf, outsideOnly, platformAddresses } from '../../../operator/kube/http/address-guard.ts';
import { createCA, issue } from '../../../operator/pki/certificates.ts';

const admits = (address: string, allowed: string[] = [], own: string[] = []): boolean => {
  try {
    outsideOnly(addressList(allowed), own)(address);
    return true;
  } catch {
    return false;
  }
};

describe('outsideOnly', () => {
  it.each([
    '127.0.0.1',
    '127.8.8.8',
    '0.0.0.0',
    '10.96.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '100.64.0.1',
    '100.100.100.200',
    '169.254.169.254',
    '169.254.170.2',
    '168.63.129.16',
    '192.0.0.192',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:a9fe:a9fe',
    '::127.0.0.1',
    '64:ff9b::a9fe:a9fe',
    '2002:7f00:1::',
    'fd00:ec2::254',
    'fe80::1',
    'fe80::1%eth0',
    'ff02::1',
    'no address',
    '',
  ])('sends the operator to no internal address (%s)', (address) => {
    expect(admits(address)).toBe(false);
  });

  it.each(['8.8.8.8', '172.32.0.1', '100.63.255.255', '169.253.0.1', '2606:4700::1', '::ffff:8.8.8.8'])(
    'sends it to the internet (%s)',
    (address) => {
      expect(admits(address)).toBe(true);
    },
  );

  it('admits networks that administrators allow, and no other private one', () => {
    expect(admits('10.1.2.3', ['10.1.0.0/16', 'fd00::/8'])).toBe(true);
    expect(admits('::ffff:10.1.2.3', ['10.1.0.0/16'])).toBe(true);
    expect(admits('10.2.2.3', ['10.1.0.0/16'])).toBe(false);
    expect(admits('169.254.169.254', ['10.1.0.0/16'])).toBe(false);
  });

  it('refuses clusters of the platform at any address', () => {
    expect(admits('8.8.8.8', [], ['8.8.8.8'])).toBe(false);
    expect(admits('::ffff:8.8.8.8', [], ['8.8.8.8'])).toBe(false);
    expect(admits('8.8.8.8', [], ['::ffff:8.8.8.8'])).toBe(false);
    for (const own of ['10.1.2.3', '::ffff:10.1.2.3', '10.1.2.0/24'])
      expect(admits('10.1.2.3', ['10.0.0.0/8'], [own])).toBe(false);
    expect(admits('10.1.3.3', ['10.0.0.0/8'], ['10.1.2.0/24'])).toBe(true);
  });

  it('admits other clusters of this machine on allowed loopback, but not the garden', async () => {
    const platform = ['https://127.0.0.1:6443', 'https://10.1.2.3:6443', 'https://[::1]/'];
    const to = async (server: string) => {
      const own = await platformAddresses(platform, server);
      return admits(new URL(server).hostname.replace(/[[\]]/g, ''), ['127.0.0.0/8', '::1/128', '10.0.0.0/8'], own);
    };
    expect(await to('https://127.0.0.1:40001')).toBe(true);
    expect(await to('https://127.0.0.1:6443')).toBe(false);
    expect(await to('https://127.0.0.9:6443')).toBe(false);
    expect(await to('https://[::1]')).toBe(false);
    expect(await to('https://10.1.2.3:40001')).toBe(false);
    expect(await to('https://10.1.2.4:6443')).toBe(true);
  });
});

it.each(['10.0.0.0', '10.0.0.0/33', 'a/8', '10.0.0.0/x'])('%s is no network to allow', (range) => {
  expect(() => addressList([range])).toThrow('is no address range (example: 10.0.0.0/16)');
});

it('platformAddresses resolves API servers by any name', async () => {
  expect(await addressesOf(['https://127.0.0.1:6443', 'https://[::1]:6443/k', 'nothing'])).toEqual([
    '127.0.0.1',
    '::1',
  ]);
});

describe('a client with an address guard', () => {
  let server: Server;
  let connections = 0;
  beforeEach(async () => {
    connections = 0;
    server = createServer((socket) => {
      connections++;
      socket.destroy();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterEach(() => void server.close());

  it.each(['127.0.0.1', 'localhost', '2130706433', '[::ffff:127.0.0.1]'])(
    'does not even connect to %s, and says why',
    async (host) => {
      const { port } = server.address() as AddressInfo;
      const client = new KubeClient({ server: `https://${host}:${port}`, admit: outsideOnly(addressList([])) });
      await expect(client.request('GET', '/version', { retries: 0 })).rejects.toThrow(
        /^address (127\.0\.0\.1|::1|::ffff:7f00:1) is internal to the platform, and refused$/,
      );
      await client.close();
      expect(connections).toBe(0);
    },
  );

  it('connects to an allowed address', async () => {
    const { port } = server.address() as AddressInfo;
    const admit = outsideOnly(addressList(['127.0.0.0/8', '::1/128']));
    const client = new KubeClient({ server: `https://localhost:${port}`, admit });
    await expect(client.request('GET', '/version', { retries: 0 })).rejects.not.toThrow('refused');
    await client.close();
    expect(connections).toBeGreaterThan(0);
  });
});

it('checks the address of each connection, also over HTTP/1.1', async () => {
  const ca = await createCA({ commonName: 'authority', days: 1 });
  const pair = await issue(ca, { commonName: 'old', days: 1, usages: ['server'], dnsNames: ['localhost'] });
  let requests = 0;
  const server = createHttpsServer({ key: pair.key, cert: pair.cert }, (_, response) => {
    requests++;
    response.end('{}');
  }).listen(0, 'localhost');
  await once(server, 'listening');
  const url = `https://localhost:${(server.address() as AddressInfo).port}`;
  const asked: string[] = [];
  let refuses = Number.POSITIVE_INFINITY;
  const admit = (address: string) => {
    asked.push(address);
    if (asked.length >= refuses) throw new Error('refused');
  };
  const client = new KubeClient({ server: url, ca: ca.cert, admit });
  await client.request('GET', '/version', { retries: 0 });
  await client.close();
  // That it speaks HTTP/1.1 the first connection has shown, and the second one sends the request.
  const perConnection = asked.length / 2;
  expect([requests, Number.isInteger(perConnection), perConnection > 0]).toEqual([1, true, true]);

  asked.length = 0;
  refuses = perConnection + 1;
  const rebound = new KubeClient({ server: url, ca: ca.cert, admit });
  await expect(rebound.request('GET', '/version', { retries: 0 })).rejects.toThrow('refused');
  expect(requests).toBe(1);
  await rebound.close();
  server.closeAllConnections();
  server.close();
});
