import { expect, it } from 'vitest';
import type { Seed } from '../../../operator/api/seed.ts';
import { SeedRegistry } from '../../../operator/clusters/seed-access.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { KubeApiError, KubeUnreachableError } from '../../../operator/kube/errors.ts';
import { silent } from '../../../operator/kube/log.ts';
import type { WatchEvent } from '../../../operator/kube/requests/watch.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { buildSeed } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';

const seed = buildSeed({ metadata: { name: 'local' } });

/** A garden that is its own seed, and shows what it holds only when it is told to. */
function slowGarden() {
  const { promise: shown, resolve: show } = Promise.withResolvers<void>();
  const { promise: broken, reject: breakWatch } = Promise.withResolvers<never>();
  broken.catch(() => {});
  let watches = 0;
  const until = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  const watch = async (
    _: unknown,
    { signal }: { signal: AbortSignal },
    event: (event: WatchEvent<KubeObject>) => void,
  ): Promise<void> => {
    watches++;
    try {
      await Promise.race([shown, until(signal)]);
      const annotations = { 'k8s.io/initial-events-end': 'true' };
      const metadata = { name: '', resourceVersion: '1', annotations };
      event({ type: 'BOOKMARK', object: { apiVersion: 'v1', kind: 'Pod', metadata } });
      await Promise.race([broken, until(signal)]);
    } finally {
      watches--;
    }
  };
  const identity = { metadata: { name: 'kube-system', uid: 'one' } };
  const server = 'https://127.0.0.1:6443';
  const getOrUndefined = async () => ({ kind: 'PriorityClass' });
  const client = partOf<KubeClient>({ server, watch, get: async () => identity, getOrUndefined });
  const registry = new SeedRegistry(client, silent);
  return { registry, show, breakWatch, watches: () => watches, identity };
}

it.each([
  ['that does not answer was away', new KubeUnreachableError('GET /pods', new Error('refused')), true],
  ['that has forgotten a resource version was not', new KubeApiError('GET /pods', 410, { reason: 'Expired' }), false],
])('a seed %s', async (_, failure, away) => {
  const { registry, show, breakWatch, watches } = slowGarden();
  show();
  const access = await registry.open(seed, new AbortController().signal);
  expect(access.awayAt).toBeUndefined();
  const open = watches();
  breakWatch(failure);
  await expect.poll(watches).toBeLessThan(open);
  await registry.closeAll();
  expect(access.awayAt !== undefined).toBe(away);
});

it('opens a seed for all who ask, also when the first of them is stopped', async () => {
  const { registry, show } = slowGarden();
  const first = new AbortController();
  const one = registry.open(seed, first.signal);
  const other = registry.open(seed, new AbortController().signal);
  first.abort(new Error('the shoot was changed'));
  await expect(one).rejects.toThrow('the shoot was changed');
  show();
  expect((await other).name).toBe('local');
  expect(registry.get('local')).toBe(await other);
  await registry.closeAll();
});

it('leaves nothing open of a seed that is closed before it has answered', async () => {
  const { registry, watches } = slowGarden();
  const opened = registry.open(seed, new AbortController().signal);
  const refused = expect(opened).rejects.toThrow('seed local is not wanted any more');
  await expect.poll(watches).toBeGreaterThan(0);
  await registry.close('local');
  await refused;
  expect([registry.get('local'), watches()]).toEqual([undefined, 0]);
});

const pinned = (clusterIdentity: string) => ({ ...seed, status: { clusterIdentity } }) as Seed;

it('opens no seed that is another cluster than it was: nothing of it is looked at', async () => {
  const { registry, show, watches } = slowGarden();
  show();
  await expect(registry.open(pinned('two'), new AbortController().signal)).rejects.toThrow(
    'the kubeconfig of Seed local points to another cluster (UID of kube-system one, not two): nothing is made or deleted there',
  );
  expect([registry.get('local'), watches()]).toEqual([undefined, 0]);
  expect((await registry.open(pinned('one'), new AbortController().signal)).name).toBe('local');
  await registry.closeAll();
});

it('gives nobody an open seed that turned out to be another cluster', async () => {
  const { registry, show } = slowGarden();
  show();
  await registry.open(seed, new AbortController().signal);
  await expect(registry.open(pinned('two'), new AbortController().signal)).rejects.toThrow('another cluster');
  await registry.closeAll();
});
