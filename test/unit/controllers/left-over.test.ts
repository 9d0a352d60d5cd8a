import { expect, it, vi } from 'vitest';
import { closeLeftOver } from '../../../operator/controllers/shoot/left-over.ts';
import { GARDEN_ANNOTATION } from '../../../operator/controllers/shoot/ownership.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { silent } from '../../../operator/kube/log.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';

const namespace = (more: Partial<KubeObject['metadata']> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'shoot--shop--a', uid: 'u1', annotations: { [GARDEN_ANNOTATION]: 'ours' }, ...more },
});

/** The names of the namespaces that are closed when these are found and the garden has this shoot. */
async function closed(found: KubeObject[], shoot?: object, refusal?: Error): Promise<unknown[]> {
  const remove = vi.fn(async () => {
    if (refusal) throw refusal;
    return true;
  });
  const client = { delete: remove } as unknown as KubeClient;
  const garden = { getOrUndefined: async () => shoot } as unknown as KubeClient;
  const seed = { name: 'local', client, namespacesOf: (key: string) => (key === 'shop/a' ? found : []) };
  await closeLeftOver({ garden, gardenID: 'ours', log: silent }, [seed], 'shop/a', new AbortController().signal);
  return remove.mock.calls.map(([, name, , options]: unknown[]) => [
    name,
    (options as { preconditions: object }).preconditions,
  ]);
}

it('what a shoot left that vanished is closed, and nothing that came after it', async () => {
  expect(await closed([namespace()])).toEqual([['shoot--shop--a', { uid: 'u1' }]]);
});

it.each([
  ['is being closed already', namespace({ deletionTimestamp: '2026-01-01T00:00:00Z' }), undefined],
  ['belongs to another garden', namespace({ annotations: { [GARDEN_ANNOTATION]: 'theirs' } }), undefined],
  ['says not whose it is', namespace({ annotations: {} }), undefined],
  ['has a shoot that the cache does not show yet', namespace(), {}],
])('a namespace that %s is left alone', async (_, found, shoot) => {
  expect(await closed([found], shoot)).toEqual([]);
});

it('that it has gone meanwhile is no error', async () => {
  const gone = new KubeApiError('DELETE', 404, { reason: 'NotFound' });
  expect(await closed([namespace()], undefined, gone)).toHaveLength(1);
});
