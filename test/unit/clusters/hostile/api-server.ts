import { once } from 'node:events';
import { createSecureServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { createCA, issue } from '../../../../operator/pki/certificates.ts';
import { writeKubeconfigText } from '../../../../operator/pki/kubeconfig.ts';

/**
 * An API server that means harm, in a process of its own so that its memory is not the operator's. Prints a kubeconfig; arguments: how,
 * and of how many Nodes.
 */
const [how, count] = process.argv.slice(2) as [
  (
    | 'fat-nodes'
    | 'fat-pages'
    | 'no-pages'
    | 'endless-list'
    | 'endless-event'
    | 'endless-nodes'
    | 'endless-pods'
    | 'nested'
  ),
  string,
];

const FAT = Buffer.alloc(256 * 1024, 'x');
const NODES = Number(count);
const node = (i: number, labels: object = {}) => ({
  metadata: {
    name: `node-${i}`,
    uid: `uid-${i}`,
    resourceVersion: String(i + 10_000_000),
    labels,
    annotations: { harm: 'HERE' },
  },
  spec: { podCIDR: '10.0.0.0/24' },
  status: { allocatable: { cpu: '2', memory: '8Gi' }, conditions: [{ type: 'Ready', status: 'True' }] },
});

/** The text with 256 KiB in it, as pieces. */
function fat(text: string): Buffer[] {
  const [before, after] = text.split('HERE') as [string, string];
  return [Buffer.from(before), FAT, Buffer.from(after)];
}

const INITIAL_END = JSON.stringify({
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion: '20000000', annotations: { 'k8s.io/initial-events-end': 'true' } } },
});

/** Writes as fast as it is read. */
async function pour(stream: ServerHttp2Stream, pieces: Iterable<string | Buffer>): Promise<void> {
  const ended = new AbortController();
  const onClose = () => ended.abort();
  stream.once('close', onClose);
  for (const piece of pieces) {
    if (stream.destroyed) return;
    if (stream.write(piece)) continue;
    await once(stream, 'drain', { signal: ended.signal }).catch(() => {});
  }
  stream.off('close', onClose);
}

function* fatNodes(from: number, to: number): Iterable<Buffer> {
  for (let i = from; i < to; i++) yield* fat(`${i === from ? '' : ','}${JSON.stringify(node(i))}`);
}

function* forEver(piece: Buffer): Iterable<Buffer> {
  for (;;) yield piece;
}

async function nodeList(stream: ServerHttp2Stream, query: URLSearchParams): Promise<void> {
  const from = Number(query.get('continue') ?? 0);
  const to = how === 'no-pages' ? NODES : Math.min(NODES, from + Number(query.get('limit') || NODES));
  const metadata = { resourceVersion: '20000000', ...(to < NODES && { continue: String(to) }) };
  stream.write(`{"kind":"NodeList","apiVersion":"v1","metadata":${JSON.stringify(metadata)},"items":[`);
  if (how === 'endless-list') await pour(stream, forEver(Buffer.alloc(64 * 1024, ' ')));
  if (how === 'nested') await pour(stream, [Buffer.alloc(15 << 20, '[')]);
  else await pour(stream, fatNodes(from, to));
  stream.end(']}');
}

async function nodeWatch(stream: ServerHttp2Stream): Promise<void> {
  const event = (object: object) => `${JSON.stringify({ type: 'ADDED', object })}\n`;
  if (how === 'endless-event') await pour(stream, forEver(Buffer.alloc(64 * 1024, 'x')));
  const labels = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`label-${i}`, 'y'.repeat(60)]));
  if (how === 'endless-nodes') {
    for (let i = 0; !stream.destroyed; i++) await pour(stream, [event(node(i, { ...labels, i: String(i) }))]);
    return;
  }
  for (let i = 0; i < NODES; i++) await pour(stream, fat(event(node(i))));
  stream.write(`${INITIAL_END}\n`);
}

/** Pods that have no part in common: what is kept of each to find what others share is in vain. */
async function podWatch(stream: ServerHttp2Stream): Promise<void> {
  for (let i = 0; !stream.destroyed; i++) {
    const metadata = {
      name: `p-${i}`,
      namespace: 'n',
      uid: `u-${i}`,
      resourceVersion: String(i + 1),
      labels: { i: `${i}` },
    };
    const tolerations = [{ key: `${i}-${'y'.repeat(400)}` }];
    const object = { metadata, spec: { tolerations, containers: [{ name: `c-${i}` }] } };
    await pour(stream, [`${JSON.stringify({ type: 'ADDED', object })}\n`]);
  }
}

const hasWatchList = how === 'fat-nodes' || how === 'endless-event' || how === 'endless-nodes';

const ca = await createCA({ commonName: 'hostile', days: 1 });
const pair = await issue(ca, { commonName: 'server', days: 1, usages: ['server'], ipAddresses: ['127.0.0.1'] });
const server = createSecureServer({ key: pair.key, cert: pair.cert });
server.on('session', (session) => session.on('error', () => {}));
server.on('stream', (stream, headers) => {
  stream.on('error', () => {});
  const url = new URL(headers[':path'] ?? '/', 'https://localhost');
  const isWatch = url.searchParams.has('watch');
  const isNodes = url.pathname.endsWith('/nodes');
  const isInitial = url.searchParams.has('sendInitialEvents');
  const isRefused = isInitial && isNodes && !hasWatchList;
  stream.respond({ ':status': isRefused ? 400 : 200, 'content-type': 'application/json' });
  if (isRefused) stream.end('{"kind":"Status","code":400}');
  else if (isWatch && !isInitial) return;
  else if (how === 'endless-pods' && url.pathname.endsWith('/pods')) void podWatch(stream);
  else if (isNodes) void (isWatch ? nodeWatch(stream) : nodeList(stream, url.searchParams));
  else stream.write(`${INITIAL_END}\n`);
});
server.listen(0, '127.0.0.1', () => {
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  process.stdout.write(
    JSON.stringify(writeKubeconfigText({ server: url, ca: ca.cert, token: 't', name: 'c', user: 'u' })),
  );
});
