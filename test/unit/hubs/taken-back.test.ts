import { beforeEach, describe, expect, it } from 'vitest';
import { LABELS } from '../../../operator/api/group.ts';
import { type MadeFor, ownerLabels } from '../../../operator/controllers/membership/ownership.ts';
import { TwoSides } from '../../../operator/controllers/membership/two-sides.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { type KubeObject, SERVICEACCOUNTS } from '../../../operator/kube/resources.ts';
import { MemoryApiServer } from '../../kit/memory-api-server.ts';

const NEVER = new AbortController().signal;
const owner = (membership: string, more: Partial<MadeFor> = {}): MadeFor => ({
  garden: 'ours',
  membership,
  hub: 'production',
  cluster: { namespace: 'shop', name: 'peak', uid: 'uid-of-peak' },
  identity: 'kube-system-of-peak',
  ...more,
});
const account = (labels?: Record<string, string>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name: 'production', namespace: 'hub-access', ...(labels && { labels }) },
});

let objects: MemoryApiServer;
beforeEach(() => {
  objects = new MemoryApiServer();
});
const labelOf = () =>
  objects.find<KubeObject>(SERVICEACCOUNTS, 'production', 'hub-access')!.metadata.labels?.[LABELS.membership];
const apply = (takesBack: boolean) => {
  const client = objects as unknown as KubeClient;
  const sides = new TwoSides({ hub: client, member: client }, owner('new'), () => new Date(0), takesBack);
  return sides.apply({ on: 'member', resource: SERVICEACCOUNTS, object: account() }, NEVER);
};

describe('a membership recreated after an orphaning deletion of its Hub', () => {
  it('owns the objects of the previous membership', async () => {
    objects.put(account(ownerLabels(owner('old'))));
    await apply(true);
    expect(labelOf()).toBe('new');
  });

  it.each<[string, Record<string, string> | undefined]>([
    ['made by somebody', undefined],
    ['of another garden', ownerLabels(owner('old', { garden: 'theirs' }))],
    ['of another Hub', ownerLabels(owner('old', { hub: 'test' }))],
    [
      'of a cluster of this name that was there before',
      ownerLabels(owner('old', { cluster: { namespace: 'shop', name: 'peak', uid: 'uid-of-earlier' } })),
    ],
    ['of another cluster behind the same name', ownerLabels(owner('old', { identity: 'another' }))],
  ])('touches nothing %s', async (_what, labels) => {
    objects.put(account(labels));
    await expect(apply(true)).rejects.toThrow(/was not made for this membership/);
    expect(labelOf()).toBe(labels?.[LABELS.membership]);
  });

  it('takes nothing back during a cleanup', async () => {
    objects.put(account(ownerLabels(owner('old'))));
    await expect(apply(false)).rejects.toThrow(/was not made for this membership/);
  });
});
