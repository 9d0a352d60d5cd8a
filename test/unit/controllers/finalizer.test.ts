import { expect, it } from 'vitest';
import { FINALIZER } from '../../../operator/api/group.ts';
import { hold } from '../../../operator/controllers/finalizer.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { CONFIGMAPS, type KubeObject } from '../../../operator/kube/resources.ts';

const OTHER = 'example.org/other';

/** An object as it is on the server, as the cache shows it, and who writes to it. */
function scene(stored: Partial<KubeObject['metadata']>, cached: Partial<KubeObject['metadata']> | undefined = stored) {
  const object = (metadata: object): KubeObject => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'a', namespace: 'team', uid: 'u', resourceVersion: '7', ...metadata },
  });
  const server = { object: object(stored) as KubeObject | undefined, writes: 0 };
  const garden = {
    mergePatch: async (_: unknown, name: string, _namespace: unknown, { metadata }: { metadata: object }) => {
      if (!server.object) throw new KubeApiError('PATCH', 404, { reason: 'NotFound' });
      if ((metadata as { resourceVersion?: string }).resourceVersion !== server.object.metadata.resourceVersion)
        throw new KubeApiError('PATCH', 409, { reason: 'Conflict' });
      server.writes++;
      return { ...server.object, metadata: { ...server.object.metadata, ...metadata, name, resourceVersion: '8' } };
    },
  };
  let known = cached && object(cached);
  const cache = {
    get: () => known,
    absorb: (written: KubeObject) => {
      known = written;
    },
  };
  const run = (held: boolean, seen: object = stored, labels?: Record<string, string>) =>
    hold({ garden: garden as never }, CONFIGMAPS, cache, object(seen), held, {
      ...(labels && { labels }),
      signal: new AbortController().signal,
    });
  return { server, run, known: () => known?.metadata };
}

it('puts our finalizer beside those of others, once', async () => {
  const { server, run, known } = scene({ finalizers: [OTHER] });
  await run(true);
  expect(known()?.finalizers).toEqual([OTHER, FINALIZER]);
  await run(true);
  expect(server.writes).toBe(1);
});

it('takes off ours alone', async () => {
  const { run, known } = scene({ finalizers: [FINALIZER, OTHER], deletionTimestamp: '2026-01-01T00:00:00Z' });
  await run(false);
  expect(known()?.finalizers).toEqual([OTHER]);
});

it('loses no finalizer that somebody has put on since the object was read', async () => {
  const before = { finalizers: [FINALIZER], resourceVersion: '5' };
  const now = { finalizers: [FINALIZER, OTHER] };
  // What the cache has heard of by now counts, however old what is worked on.
  const heard = scene(now);
  await heard.run(false, before);
  expect(heard.known()?.finalizers).toEqual([OTHER]);
  // What it has not, the server knows.
  const deaf = scene(now, before);
  await expect(deaf.run(false, before)).rejects.toThrow(/409/);
  expect(deaf.server.writes).toBe(0);
});

it('lets nothing else go that came under the same name', async () => {
  const { server, run } = scene({ uid: 'new', finalizers: [FINALIZER], resourceVersion: '9' });
  await expect(run(false, { finalizers: [FINALIZER], resourceVersion: '5' })).rejects.toThrow(/409/);
  expect(server.writes).toBe(0);
});

it('is done when the object has gone, but not when it was to be held', async () => {
  const gone = scene({ finalizers: [FINALIZER] });
  gone.server.object = undefined;
  await gone.run(false);
  const lost = scene({});
  lost.server.object = undefined;
  await expect(lost.run(true)).rejects.toThrow(/404/);
});

it('does not hold what is on its way out, which the server would refuse', async () => {
  const { server, run } = scene({ deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [OTHER] });
  await run(true);
  expect(server.writes).toBe(0);
});

it('brings the labels with the finalizer, also where that is there already', async () => {
  const { server, run, known } = scene({ finalizers: [FINALIZER] });
  await run(true, undefined, { role: 'credentials' });
  expect(known()?.labels).toEqual({ role: 'credentials' });
  await run(true, undefined, { role: 'credentials' });
  expect(server.writes).toBe(1);
});
