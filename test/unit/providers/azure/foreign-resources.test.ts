import { expect, it } from 'vitest';
import { refuseForeignResources } from '../../../../providers/azure/foreign-resources.ts';
import { type Answer, context, FakeAzure } from './fake-azure.ts';
import { subscription, tags } from './fixtures.ts';

const group = `/subscriptions/${subscription}/resourceGroups/shoot--shop--one`;
const theirs = { ...tags, 'coppice-uid': 'of another' };

/** What is refused of a group with these tags, by what is in it, a page each. */
async function refused(own: Record<string, string> | undefined, ...pages: object[][]): Promise<string> {
  await using azure = await FakeAzure.start(({ path }): Answer | undefined => {
    if (path.startsWith(`${group}?`)) return own && { body: { tags: own } };
    const page = Number(new URL(path, 'http://azure').searchParams.get('page') ?? 0);
    const nextLink = pages[page + 1] && `${azure.endpoints.management}${group}/resources?page=${page + 1}`;
    return { body: { value: pages[page], nextLink } };
  });
  return await refuseForeignResources(context(), azure.endpoints).then(
    () => '',
    (error: Error) => error.message,
  );
}

it('refuseForeignResources refuses an owned group with foreign resources, and names them', async () => {
  const ours = { id: 'ours', tags };
  expect(await refused(tags, [ours], [{ id: 'vm-1' }, { id: 'vm-2', tags: theirs }])).toMatch(
    /^resource group shoot--shop--one would go with .*: vm-1, vm-2/,
  );
  expect(await refused(tags, [ours])).toBe('');
});

it('refuseForeignResources ignores missing and foreign groups', async () => {
  expect(await refused(undefined)).toBe('');
  expect(await refused(theirs, [{ id: 'vm-1' }])).toBe('');
});
