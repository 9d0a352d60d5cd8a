import { Duplex, PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { EtcdClient } from '../../../operator/etcd/etcd-client.ts';
import { createCA, type KeyPair } from '../../../operator/pki/certificates.ts';

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
  new EtcdClient(['https://127.0.0.1:2379'], { ca: pair.cert, ...pair }, async () => {
    const tunnel = Duplex.from({ writable: new PassThrough(), readable: new PassThrough() });
    opened(tunnel);
    return tunnel;
  });

it('a tunnel in which nobody answers is given up, and nothing of it is left to fail later', async () => {
  const opened: Duplex[] = [];
  const client = clientThrough((tunnel) => opened.push(tunnel));
  expect(await client.observe()).toBeUndefined();
  await client.close();
  await new Promise((resolve) => setImmediate(resolve));
  expect(opened.map(({ destroyed }) => destroyed)).toEqual([true]);
  expect(unheard).toEqual([]);
});

it('a tunnel that is refused says why', async () => {
  const refuse = (tunnel: Duplex) => setTimeout(() => tunnel.destroy(new Error('port 2379: connection refused')), 50);
  const client = clientThrough(refuse);
  await expect(client.memberList()).rejects.toThrow('connection refused');
  await client.close();
  expect(unheard).toEqual([]);
});
