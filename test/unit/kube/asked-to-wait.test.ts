import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { KubeClient } from '../../../operator/kube/client.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { silent } from '../../../operator/kube/log.ts';
import { reflect } from '../../../operator/kube/reflector.ts';
import { NODES } from '../../../operator/kube/resources.ts';
import { partOf } from '../../kit/builders/partial.ts';

describe('an API server that sends Retry-After', () => {
  let server: Server;
  let client: KubeClient;
  let retryAfter: string;
  let asked: number;

  beforeAll(async () => {
    server = createServer((_, response) => {
      // Only the first time.
      const status = asked++ === 0 ? 429 : 200;
      response.writeHead(status, { 'content-type': 'application/json', 'retry-after': retryAfter }).end('{}');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    client = new KubeClient({ server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  });
  beforeEach(() => {
    asked = 0;
  });
  afterAll(async () => {
    await client?.close();
    server?.close();
  });

  it('is asked again after that time', async () => {
    retryAfter = '0.01';
    expect(await client.request('GET', '/')).toEqual({});
    expect(asked).toBe(2);
  });

  it.each(['31', '86400', '1e300'])(
    'for %s s is told so at once: a webhook of a tenant may say that, too',
    async (s) => {
      retryAfter = s;
      await expect(client.request('PATCH', '/', { body: {} })).rejects.toMatchObject({ status: 429 });
      expect(asked).toBe(1);
    },
  );
});

it('is asked for a watch again after a minute, even if it asks for a day', async () => {
  vi.useFakeTimers();
  const stop = new AbortController();
  let asked = 0;
  const watch = async () => {
    asked++;
    throw new KubeApiError('WATCH', 429, {}, 86_400);
  };
  const running = reflect(
    partOf<KubeClient>({ watch }),
    NODES,
    { log: silent },
    { replace() {}, event() {} },
    stop.signal,
  );
  await vi.advanceTimersByTimeAsync(59_000);
  expect(asked).toBe(1);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(asked).toBe(2);
  stop.abort();
  await running;
  vi.useRealTimers();
});
