import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { pino } from 'pino';
import { addressList } from '../../api/address-range.ts';
import { listenInNamespace } from '../host/listeners.ts';
import { askFor } from './asked.ts';
import type { Upstream } from './content.ts';
import { startMirror } from './mirror.ts';

const USAGE =
  'usage: node mirror-main.ts --listen ADDRESS:PORT --dir FOLDER... [--enter WORDS] [--expect NAME:TAG,...] ' +
  '[--peers RANGE,...] [--on-demand REGISTRY/NAME:TAG,... --asked FOLDER] ' +
  '[--cert FILE --key FILE] [--cache FOLDER --settings FILE --seed FOLDER --kubeconfig FILE --own RANGE,...]';

const { values } = parseArgs({
  options: {
    listen: { type: 'string' },
    dir: { type: 'string', multiple: true },
    enter: { type: 'string' },
    expect: { type: 'string' },
    peers: { type: 'string' },
    'on-demand': { type: 'string' },
    asked: { type: 'string' },
    cache: { type: 'string' },
    settings: { type: 'string' },
    seed: { type: 'string' },
    kubeconfig: { type: 'string' },
    own: { type: 'string' },
    cert: { type: 'string' },
    key: { type: 'string' },
  },
});
const address = /^\[?([^\]]+)\]?:(\d+)$/.exec(values.listen ?? '');
const dirs = values.dir ?? [];
if (!address || dirs.length === 0) {
  console.error(USAGE);
  process.exit(2);
}
const log = pino({ name: 'mirror' });
const { enter, cache, settings, seed, kubeconfig, asked } = values;
const words = (text = '') => text.split(',').filter(Boolean);

/** Loaded with the first image that is not local: many gardens never need it. */
async function upstream(folder: string): Promise<Upstream> {
  const [{ PullThrough }, { parseSettings }, { nodeBlobs }] = await Promise.all([
    import('./upstream/pull-through.ts'),
    import('./upstream/settings.ts'),
    import('./upstream/node-blobs.ts'),
  ]);
  return PullThrough.open({
    folder,
    settings: async () => parseSettings(settings && (await readFile(settings, 'utf8').catch(() => undefined))),
    own: words(values.own),
    inUse: async () => (seed ? nodeBlobs(seed) : new Set()),
    others: async () => {
      if (!kubeconfig) return 'it is not known who has access to the garden';
      const { othersIn } = await import('./upstream/others.ts');
      return othersIn(await readFile(kubeconfig, 'utf8'));
    },
    log,
  });
}

const mirror = await startMirror({
  dirs,
  host: address[1]!,
  port: Number(address[2]),
  ...(enter && { listen: async (host, port) => (await listenInNamespace(JSON.parse(enter), [host], port))[0]! }),
  ...(values.cert &&
    values.key && { tls: { cert: await readFile(values.cert, 'utf8'), key: await readFile(values.key, 'utf8') } }),
  expected: words(values.expect),
  ...(values.peers && { peers: addressList(words(values.peers)) }),
  ...(asked && {
    onDemand: {
      names: words(values['on-demand']),
      ask: (name: string) => askFor(asked, name),
    },
  }),
  ...(cache && { upstream: () => upstream(cache) }),
  log,
});
log.info({ url: mirror.url, dirs }, 'mirror listens');
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => void mirror.close().then(() => process.exit(0)));
}
