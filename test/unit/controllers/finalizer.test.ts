import { expect, it } from 'vitest';
import { FINALIZER } from '../../../operator/api/group.ts';
import { hold } from '../../../operator/controllers/finalizer.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { CONFIGMAPS, type KubeObject } from '../../../operator/kube/resources.ts';

const OTHER = 'example.org/other';

interface Operation {
  op: string;
  path: string;
  value?: unknown;
}

/** An object as it is on the server, as the cache shows it, and who writes to it. */
function testbed(
  stored: Partial<KubeObject['metadata']>,
  cached: Partial<KubeObject['metadata']> | undefined = stored,
) {
  const object = (metadata: object): KubeObject => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'a', namespace: 'team', uid: 'u', resourceVersion: '7', ...metadata },
  });
  const server = { object: object(stored) as KubeObject | undefined, writes: 0 };
  const found = () => {
    if (!server.object) throw new KubeApiError('PATCH', 404, { reason: 'NotFound' });
    return server.object;
  };
  const write = (changes: object) => {
    server.writes++;
    server.object = { ...found(), metadata: { ...found().metadata, ...changes, resourceVersion: '8' } };
    return server.object;
  };
  const garden = {
    mergePatch: async (_: unknown, _name: string, _namespace: unknown, { metadata }: { metadata: object }) => {
      if ((metadata as { resourceVersion?: string }).resourceVersion !== found().metadata.resourceVersion)
        throw new KubeApiError('PATCH', 409, { reason: 'Conflict' });
      return write(JSON.parse(JSON.stringify(metadata)));
    },
    jsonPatch: async (_: unknown, _name: string, _namespace: unknown, operations: Operation[]) => {
      const { uid, finalizers = [] } = found().metadata;
      let left: string[] = finalizers;
      for (const { op, path, value } of operations) {
        const at = Number(path.split('/').at(-1));
        if (op === 'remove') left = left.filter((__, i) => i !== at);
        else if (value !== (path === '/metadata/uid' ? uid : left[at]))
          throw new KubeApiError('PATCH', 422, { reason: 'Invalid' });
      }
      return write({ finalizers: left });
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

it("addFinalizer adds Coppice's finalizer beside others, once", async () => {
  const { server, run, known } = testbed({ finalizers: [OTHER] });
  await run(true);
  expect(known()?.finalizers).toEqual([OTHER, FINALIZER]);
  await run(true);
  expect(server.writes).toBe(1);
});

it("removeFinalizer removes Coppice's only", async () => {
  const { run, known } = testbed({ finalizers: [FINALIZER, OTHER], deletionTimestamp: '2026-01-01T00:00:00Z' });
  await run(false);
  expect(known()?.finalizers).toEqual([OTHER]);
});

it('removeFinalizer keeps finalizers added since the read, and ignores status writes', async () => {
  const before = { finalizers: [FINALIZER], resourceVersion: '5' };
  const now = { finalizers: [FINALIZER, OTHER] };
  const { server, run } = testbed(now, before);
  await run(false, before);
  expect(server.object?.metadata.finalizers).toEqual([OTHER]);
});

it("removeFinalizer removes no foreign finalizer in the former position of Coppice's", async () => {
  const before = { finalizers: [OTHER, FINALIZER] };
  const { server, run } = testbed({ finalizers: [FINALIZER, OTHER] }, before);
  await expect(run(false, before)).rejects.toThrow(/422/);
  expect(server.writes).toBe(0);
});

it('removeFinalizer restores no finalizer that somebody removed', async () => {
  const before = { finalizers: [OTHER], resourceVersion: '5' };
  const { server, run } = testbed({}, before);
  await expect(run(true, before)).rejects.toThrow(/409/);
  expect(server.writes).toBe(0);
});

it('removeFinalizer affects no new object of the same name', async () => {
  const { server, run } = testbed({ uid: 'new', finalizers: [FINALIZER] });
  await expect(run(false, { finalizers: [FINALIZER] })).rejects.toThrow(/422/);
  expect(server.writes).toBe(0);
});

it('a finalizer write succeeds for a deleted object, except when adding', async () => {
  const gone = testbed({ finalizers: [FINALIZER] });
  gone.server.object = undefined;
  await gone.run(false);
  const lost = testbed({});
  lost.server.object = undefined;
  await expect(lost.run(true)).rejects.toThrow(/404/);
});

it('addFinalizer does not apply to an object being deleted, which the server would reject', async () => {
  const { server, run } = testbed({ deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [OTHER] });
  await run(true);
  expect(server.writes).toBe(0);
});

it('addFinalizer adds labels too, also where the finalizer exists', async () => {
  const { server, run, known } = testbed({ finalizers: [FINALIZER] });
  await run(true, undefined, { role: 'credentials' });
  expect(known()?.labels).toEqual({ role: 'credentials' });
  await run(true, undefined, { role: 'credentials' });
  expect(server.writes).toBe(1);
});
