import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';

const PROGRAM = readFileSync(new URL('../../../../providers/machines/pod_network.py', import.meta.url), 'utf8');
/** Has the program watch once: without a kubelet's certificate and without routes, and with less patience. */
const HARNESS = `
import os, ssl, sys, types
module = {'__name__': 'pod_network'}
exec(sys.stdin.read(), module)
class Context(ssl.SSLContext):
    def load_cert_chain(self, file): pass
module['ssl'] = types.SimpleNamespace(create_default_context=lambda cafile: Context(ssl.PROTOCOL_TLS_CLIENT))
module['time'] = types.SimpleNamespace(sleep=lambda seconds: None)
module['follow'] = lambda nodes: print(','.join(sorted(nodes)), flush=True)
print(module['SILENCE_S'])
module['SILENCE_S'] = 1
try:
    module['watch']()
    print('ended')
except OSError as error:
    print(type(error).__name__)
`;
const node = (name: string, resourceVersion: string) => ({ metadata: { name, resourceVersion }, spec: {} });
type Event = { type: string; object: object };
const bookmark = (resourceVersion: string): Event => ({ type: 'BOOKMARK', object: { metadata: { resourceVersion } } });

/** What the program says and asks of an API server that answers its watches in this way; after these it is silent. */
async function watchOf(...watches: Event[][]) {
  const asked: URLSearchParams[] = [];
  const server = createServer((request, response) => {
    const query = new URL(request.url!, 'http://x').searchParams;
    asked.push(query);
    if (!query.has('watch'))
      return response.end(JSON.stringify({ metadata: { resourceVersion: '1' }, items: [node('a', '1')] }));
    const events = watches.shift();
    if (!events) return response.flushHeaders();
    for (const event of events) response.write(`${JSON.stringify(event)}\n`);
    return response.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const env = { ...process.env, API_SERVER: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  const child = spawn('python3', ['-c', HARNESS], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => {
    child.kill();
    server.closeAllConnections();
    server.close();
  });
  child.stdin.end(PROGRAM);
  const [silence, ...said] = (await text(child.stdout)).trim().split('\n');
  return { silence: Number(silence), said, asked };
}

it('the node watch resumes at its resourceVersion, and gives up an API server that is silent for a minute', async () => {
  const { silence, said, asked } = await watchOf(
    [{ type: 'ADDED', object: node('b', '2') }, bookmark('7')],
    [{ type: 'DELETED', object: node('a', '9') }],
  );
  // Once more as each watch begins.
  expect(said).toEqual(['a', 'a,b', 'a,b', 'b', 'b', 'TimeoutError']);
  expect(asked.map((query) => query.get('resourceVersion'))).toEqual([null, '1', '7', '9']);
  const seconds = Number(asked[1]!.get('timeoutSeconds'));
  expect(silence).toBeLessThanOrEqual(60);
  expect(seconds).toBeLessThan(silence);
});

it('the node watch lists again when its resourceVersion has expired', async () => {
  const { said } = await watchOf([{ type: 'ERROR', object: { code: 410 } }]);
  expect(said).toEqual(['a', 'ended']);
});
