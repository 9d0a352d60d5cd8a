import { describe, expect, it } from 'vitest';
import { taggedResources } from '../../../../providers/azure/tagged.ts';
import { context, FakeAzure } from './fake-azure.ts';
import { owner, subscription, tags } from './fixtures.ts';

const row = (name: string, location: string, rowTags: Record<string, string> = tags) => ({
  id: `/subscriptions/${subscription}/resourceGroups/${name}`,
  type: 'microsoft.resources/subscriptions/resourcegroups',
  location,
  tags: rowTags,
});

describe('taggedResources at Azure', () => {
  it('lists all pages in the region, with the owner of each resource', async () => {
    await using azure = await FakeAzure.start(({ body }) => {
      const { $skipToken } = JSON.parse(body).options;
      if ($skipToken === 'more')
        return { body: { data: [row('c', 'Germany West Central', { 'coppice-uid': 'old' })] } };
      return { body: { data: [row('a', 'germanywestcentral'), row('b', 'westeurope')], $skipToken: 'more' } };
    });
    const found = await taggedResources(context(), azure.endpoints);
    expect(found).toEqual([
      {
        id: `/subscriptions/${subscription}/resourceGroups/a`,
        type: 'microsoft.resources/subscriptions/resourcegroups',
        region: 'germanywestcentral',
        owner,
      },
      expect.objectContaining({ id: `/subscriptions/${subscription}/resourceGroups/c`, owner: { uid: 'old' } }),
    ]);
  });

  it('returns the pool of a scale set', async () => {
    const data = [row('a', 'germanywestcentral', { ...tags, 'coppice-pool': 'web' })];
    await using azure = await FakeAzure.start(() => ({ body: { data } }));
    expect((await taggedResources(context(), azure.endpoints)).map(({ part }) => part)).toEqual(['pool-web']);
  });

  it('searches the subscription of the credentials by tag, including resource groups', async () => {
    await using azure = await FakeAzure.start(() => ({ body: { data: [] } }));
    expect(await taggedResources(context(), azure.endpoints)).toEqual([]);
    const { method, path, body } = azure.asked[1]!;
    expect(`${method} ${path}`).toMatch(/^POST \/providers\/Microsoft\.ResourceGraph\/resources\?api-version=/);
    expect(JSON.parse(body)).toMatchObject({ subscriptions: [subscription], options: { resultFormat: 'objectArray' } });
    expect(JSON.parse(body).query).toContain("tags['coppice-technical-id']");
    expect(JSON.parse(body).query).toContain('resourcecontainers');
  });
});
