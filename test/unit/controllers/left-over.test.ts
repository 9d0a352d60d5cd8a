import { describe, expect, it, vi } from 'vitest';
import { closeLeftOver, tellLeftBehind } from '../../../operator/controllers/shoot/deletion/left-over.ts';
import { GARDEN_ANNOTATION } from '../../../operator/controllers/shoot/ownership.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { silent } from '../../../operator/kube/log.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { buildShoot } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';

const namespace = (more: Partial<KubeObject['metadata']> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'shoot--shop--a', uid: 'u1', annotations: { [GARDEN_ANNOTATION]: 'ours' }, ...more },
});

/** The names of the namespaces that are closed when these are found and the garden has this shoot. */
async function closed(found: KubeObject[], shoot?: object): Promise<unknown[]> {
  const remove = vi.fn(async () => true);
  const client = partOf<KubeClient>({ delete: remove });
  const garden = partOf<KubeClient>({ getOrUndefined: async () => shoot });
  const seed = { name: 'local', client, namespacesOf: (key: string) => (key === 'shop/a' ? found : []) };
  await closeLeftOver({ garden, gardenID: 'ours', log: silent }, [seed], 'shop/a', new AbortController().signal);
  return remove.mock.calls.map(([, name, , options]: unknown[]) => [
    name,
    (options as { preconditions: object }).preconditions,
  ]);
}

it('left-overs of a vanished shoot are closed, and nothing newer', async () => {
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

describe('cloud machines of a shoot deleted by force', () => {
  const shoot = buildShoot({
    metadata: { name: 'a', namespace: 'shop', uid: 'u1' },
    spec: { cloudProfile: { name: 'clouds' } },
  });
  const tag = (uid: string, id: string) => ({ id, type: 'group', region: 'here', owner: { uid, garden: 'ours' } });

  /** Events, when the cloud has these and the garden has this shoot of the name. */
  async function told(tagged: () => object[], { there = undefined as object | undefined, inCloud = true } = {}) {
    const events: string[] = [];
    const deps = partOf<Parameters<typeof tellLeftBehind>[0]>({
      garden: { getOrUndefined: async () => there },
      gardenID: 'ours',
      log: silent,
      namesAccount: () => true,
      profiles: { get: (name: string) => ({ metadata: { name }, spec: { type: 'memory', machineTypes: [] } }) },
      provider: () => ({ inCloud, managed: { tagged: async () => tagged() } }),
      account: async () => ({ account: { id: 'account-1' }, now: () => new Date(0) }),
      recordEvent: (_: unknown, _type: string, reason: string, message: string) =>
        void events.push(`${reason} ${message}`),
    });
    await tellLeftBehind(deps, shoot, new AbortController().signal);
    return events;
  }

  it('are reported, with advice', async () => {
    expect(await told(() => [tag('u1', 'pool-a'), tag('u2', 'of-another')])).toEqual([
      'LeftBehind Shoot shop/a was deleted by force: 1 resources are left in account account-1; "coppice sweep" lists them, "coppice sweep --yes" removes them: group pool-a',
    ]);
  });
  it('are reported by tag where the cloud cannot be queried', async () => {
    const refuse = () => {
      throw new Error('the key is not known');
    };
    expect(await told(refuse)).toEqual([
      'LeftBehind Shoot shop/a was deleted by force: what is left in account account-1 has tag coppice-uid=u1, but cannot be shown here: the key is not known',
    ]);
  });
  it.each<[string, Parameters<typeof told>]>([
    ['nothing is left', [() => []]],
    ['another of its name takes it over', [() => [tag('u1', 'pool-a')], { there: {} }]],
    ['it had nothing in a cloud', [() => [tag('u1', 'pool-a')], { inCloud: false }]],
  ])('is no word when %s', async (_, args) => {
    expect(await told(...args)).toEqual([]);
  });
});
