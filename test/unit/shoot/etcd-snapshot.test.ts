import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { EtcdClient } from '../../../operator/etcd/etcd-client.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** A member's JSON gateway on loopback. */
async function member(status: object, snapshot: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((request, response) => {
    if (request.url === '/v3/maintenance/snapshot') return snapshot(response);
    return response.end(JSON.stringify(status));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const LEADER = { header: { member_id: '1', revision: '2088' }, leader: '1' };
const line = (text: string) => `${JSON.stringify({ result: { blob: Buffer.from(text).toString('base64') } })}\n`;

async function snapshotFrom(endpoints: string[], signal = new AbortController().signal) {
  const client = new EtcdClient(endpoints, { ca: '', cert: '', key: '' });
  try {
    const { revision, chunks } = await client.snapshot(signal);
    const parts: Buffer[] = [];
    for await (const chunk of chunks) parts.push(chunk);
    return { revision, text: Buffer.concat(parts).toString() };
  } finally {
    await client.close();
  }
}

describe('a snapshot of etcd', () => {
  it('is assembled from lines, wherever the network splits them', async () => {
    const endpoint = await member(LEADER, (response) => {
      const bytes = Buffer.from(line('one ') + line('two ') + line('three'));
      for (let from = 0; from < bytes.length; from += 7) response.write(bytes.subarray(from, from + 7));
      response.end();
    });
    expect(await snapshotFrom([endpoint])).toEqual({ revision: 2088, text: 'one two three' });
  });

  it('comes from a voting member with a leader', async () => {
    const wrong = (response: ServerResponse) => response.end(line('wrong'));
    const endpoints = [
      await member({ ...LEADER, isLearner: true }, wrong),
      await member({ ...LEADER, leader: '0' }, wrong),
      'http://127.0.0.1:1',
      await member(LEADER, (response) => response.end(line('right'))),
    ];
    expect((await snapshotFrom(endpoints)).text).toBe('right');
    await expect(snapshotFrom(endpoints.slice(0, 2))).rejects.toThrow(/none has a leader/);
    await expect(snapshotFrom(endpoints.slice(0, 3))).rejects.toThrow(/does not answer/);
  });

  it('that etcd aborts is an error with its reason', async () => {
    const endpoint = await member(LEADER, (response) => {
      response.write(line('half'));
      response.end(`${JSON.stringify({ error: { message: 'the disk is gone' } })}\n`);
    });
    await expect(snapshotFrom([endpoint])).rejects.toThrow('the disk is gone');
  });

  it('that breaks off is an error, not a short snapshot', async () => {
    const endpoint = await member(LEADER, (response) => {
      response.write(line('half'));
      setImmediate(() => response.destroy());
    });
    await expect(snapshotFrom([endpoint])).rejects.toThrow(/broke off/);
  });

  it('is aborted without a reader', async () => {
    const abort = new AbortController();
    const endpoint = await member(LEADER, (response) => {
      response.write(line('half'));
      setImmediate(() => abort.abort(new Error('the shoot is being deleted')));
    });
    await expect(snapshotFrom([endpoint], abort.signal)).rejects.toThrow('the shoot is being deleted');
  });
});
