import { describe, expect, it } from 'vitest';
import { checkAccount } from '../../../../providers/azure/account.ts';
import { allPages } from '../../../../providers/azure/arm.ts';
import { azureDNS } from '../../../../providers/azure/dns.ts';
import { refuseForeignResources } from '../../../../providers/azure/foreign-resources.ts';
import { azureMachines } from '../../../../providers/azure/machines.ts';
import { context, FakeAzure } from './fake-azure.ts';
import { tags } from './fixtures.ts';

const zone = { id: '/subscriptions/s/resourceGroups/g/providers/dnsZones/a', domain: 'a.example', private: false };
const dnsContext = { ...context(), objects: {} as never } as never;

/** Everything that reads a list of Azure's page by page. */
const READERS: [what: string, read: (azure: FakeAzure) => Promise<unknown>][] = [
  ['permissions', (azure) => checkAccount(context(), azure.endpoints)],
  ['what is in a resource group', (azure) => refuseForeignResources(context(), azure.endpoints)],
  ['DNS zones', (azure) => azureDNS(azure.endpoints).zones(dnsContext)],
  ['records', (azure) => azureDNS(azure.endpoints).texts(dnsContext, zone)],
  ['machines', (azure) => azureMachines({} as never, () => azure.endpoints).machines(context(), ['workers'])],
];

describe('a list of Azure whose next page is at another host', () => {
  it.each(READERS)('rejects and returns no part of the %s, and sends the token nowhere else', async (_what, read) => {
    await using elsewhere = await FakeAzure.start(() => ({ body: { value: [] } }));
    await using azure = await FakeAzure.start(() => ({
      body: { tags, state: 'Enabled', value: [], nextLink: `${elsewhere.endpoints.management}/next` },
    }));
    await expect(read(azure)).rejects.toMatchObject({
      code: 'ERR_RETRYABLE_INFRA_DEPENDENCIES',
      message: expect.stringContaining('goes on at another host'),
    });
    expect(elsewhere.asked).toEqual([]);
  });
});

describe('allPages at Azure', () => {
  const management = 'https://management.azure.com';
  const read = (nextLink: string) =>
    allPages<number>(`${management}/first`, 'numbers', { management }, async (url) =>
      url.endsWith('/first') ? { value: [1], nextLink } : { value: [2] },
    );

  it.each([
    ['with the port', 'https://management.azure.com:443/next'],
    ['in capitals', 'https://Management.Azure.com/next'],
  ])('accepts the same host %s', async (_what, link) => {
    expect(await read(link)).toEqual([1, 2]);
  });

  it.each([
    'https://management.azure.com.evil.example/next',
    'https://management.azure.com@evil.example/next',
    'http://management.azure.com/next',
    'https://management.azure.com:444/next',
    '/next',
  ])('does not follow %s', async (link) => {
    await expect(read(link)).rejects.toThrow('numbers: the list goes on at another host');
  });

  it('rejects pages that name each other for ever', async () => {
    const page = { value: [1], nextLink: `${management}/next` };
    await expect(allPages('x', 'numbers', { management }, async () => page)).rejects.toThrow('more than 1000 pages');
  });

  it('is empty without a list', async () => {
    expect(await allPages(`${management}/x`, 'x', { management }, async () => undefined)).toEqual([]);
  });
});
