import { afterEach, expect, it, vi } from 'vitest';
import type { Seed } from '../../../operator/api/seed.ts';
import { SeedAccess, SeedRegistry } from '../../../operator/clusters/seed-access.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { KubeApiError, KubeUnreachableError } from '../../../operator/kube/errors.ts';
import { silent } from '../../../operator/kube/log.ts';
import type { WatchEvent } from '../../../operator/kube/requests/watch.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { buildSeed } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { idle } from '../../kit/turns.ts';
import { FakeClock } from '../kube/fake-clock.ts';

const seed = buildSeed({ metadata: { name: 'local' } });

afterEach(() => void vi.useRealTimers());

const unreachable = new KubeUnreachableError('GET /pods', new Error('refused'));

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
  const line = { answers: true };
  const get = async () => {
    if (line.answers) return identity;
    throw unreachable;
  };
  const client = partOf<KubeClient>({ server, watch, get, getOrUndefined });
  const registry = new SeedRegistry(client, silent);
  return { client, registry, show, breakWatch, watches: () => watches, identity, line };
}

const expired = new KubeApiError('GET /pods', 410, { reason: 'Expired' });

it.each([
  ['whose watch fails once was not away', unreachable, true, false],
  ['that does not answer for seconds was away', unreachable, false, true],
  ['whose resource version expired was not away', expired, false, false],
])('a seed %s', async (_, failure, answers, away) => {
  const { client, show, breakWatch, watches, line } = slowGarden();
  const clock = new FakeClock();
  const access = new SeedAccess({ name: 'local', identity: 'one', client, clock }, silent, () => {});
  show();
  await access.start(AbortSignal.timeout(5000));
  const open = watches();
  line.answers = answers;
  breakWatch(failure);
  await expect.poll(watches).toBeLessThan(open);
  for (let second = 0; second < 10; second++) {
    clock.advance(1000);
    await idle();
  }
  expect(access.awayAt !== undefined).toBe(away);
  await access.stop();
});

it('a seed is away until it answers again', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const { client, show, breakWatch, line } = slowGarden();
  const clock = new FakeClock();
  const access = new SeedAccess({ name: 'local', identity: 'one', client, clock }, silent, () => {});
  show();
  await access.start(AbortSignal.timeout(5000));
  line.answers = false;
  breakWatch(unreachable);
  /** What it says a minute later. */
  const awayAt = async (minute: number) => {
    clock.advance(60_000);
    await idle();
    vi.setSystemTime(minute * 60_000);
    return access.awayAt && +access.awayAt / 60_000;
  };
  await expect.poll(() => awayAt(1)).toBe(1);
  expect(await awayAt(2)).toBe(2);
  line.answers = true;
  await expect.poll(() => awayAt(3)).toBe(2);
  await access.stop();
});

it('a seed is opened for all callers, also when the first is cancelled', async () => {
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

it('a seed closed before it answered leaves nothing open', async () => {
  const { registry, watches } = slowGarden();
  const opened = registry.open(seed, new AbortController().signal);
  const refused = expect(opened).rejects.toThrow('seed local is not wanted any more');
  await expect.poll(watches).toBeGreaterThan(0);
  await registry.close('local');
  await refused;
  expect([registry.get('local'), watches()]).toEqual([undefined, 0]);
});

const pinned = (clusterIdentity: string) => ({ ...seed, status: { clusterIdentity } }) as Seed;

it('a seed that became another cluster is not opened, and nothing of it is read', async () => {
  const { registry, show, watches } = slowGarden();
  show();
  await expect(registry.open(pinned('two'), new AbortController().signal)).rejects.toThrow(
    'the kubeconfig of Seed local points to another cluster (UID of kube-system one, not two): nothing is made or deleted there',
  );
  expect([registry.get('local'), watches()]).toEqual([undefined, 0]);
  expect((await registry.open(pinned('one'), new AbortController().signal)).name).toBe('local');
  await registry.closeAll();
});

it('an open seed that became another cluster is given to no caller', async () => {
  const { registry, show } = slowGarden();
  show();
  await registry.open(seed, new AbortController().signal);
  await expect(registry.open(pinned('two'), new AbortController().signal)).rejects.toThrow('another cluster');
  await registry.closeAll();
});
