import { AuthorizationManagementClient } from '@azure/arm-authorization';
import { ResourceGraphClient } from '@azure/arm-resourcegraph';
import { ClientSecretCredential } from '@azure/identity';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { taggedResources } from '../../../../providers/azure/tagged.ts';
import type { Owner } from '../../../../providers/cloud.ts';
import { tagsOf } from '../../../../providers/tags.ts';
import type { FakeCloud, WebEndpoints } from '../../../kit/cloud/index.ts';
import { cloudOverTLS, operationsOf } from './clouds.ts';

/** Azure's own clients for what Coppice only looks up ask the fake Azure (decision 41). */
let cloud: FakeCloud;
let web: WebEndpoints['azure'];
beforeAll(async () => {
  cloud = await cloudOverTLS();
  web = (await cloud.web()).azure;
});
afterAll(() => cloud?.close());

const TENANT = '99999999-2222-4333-8444-555555555555';
const location = 'germanywestcentral';
const once = { retryOptions: { maxRetries: 0 } };
const manager = () => ({ ...once, endpoint: web.management });
const credential = () => {
  const { key, secret } = cloud.account('azure-native');
  return new ClientSecretCredential(TENANT, key, secret, {
    ...once,
    authorityHost: web.login,
    disableInstanceDiscovery: true,
  });
};

it('the fake Resource Graph lists all pages by tag, equally for SDK and product', async () => {
  const account = cloud.account('azure-native');
  const owner = { technicalID: 'shoot--shop--tagged', uid: 'uid-1', garden: 'g' } as unknown as Owner;
  const make = operationsOf(cloud, 'azure-native');
  const made: string[] = [];
  for (let count = 0; count < 7; count++) {
    const inputs = { resourceGroupName: `tagged-${count}`, location, tags: tagsOf(owner) };
    made.push((await make.create('azure-native:resources:ResourceGroup', `group-${count}`, inputs)).id);
  }
  await make.create('azure-native:resources:ResourceGroup', 'other', { resourceGroupName: 'other', location });
  const client = new ResourceGraphClient(credential(), manager());
  const pages: string[][] = [];
  let skipToken: string | undefined;
  do {
    const { data, skipToken: next } = await client.resources({
      subscriptions: [account.id],
      query: 'resourcecontainers | project id, tags | order by id asc',
      options: { resultFormat: 'objectArray', top: 1000, ...(skipToken && { skipToken }) },
    });
    pages.push((data as { id: string }[]).map(({ id }) => id));
    skipToken = next;
  } while (skipToken);
  expect(pages.length).toBe(2);
  expect(pages.flat().sort()).toEqual(made.sort());
  const ctx = { account, profile: {} as never, region: location, signal: new AbortController().signal };
  const found = await taggedResources({ ...ctx, now: () => new Date() } as never, web);
  expect(found.map(({ id }) => id).sort()).toEqual(made);
});

it('the fake Azure lists role assignments by scope', async () => {
  const subscription = cloud.account('azure-native').id;
  const make = operationsOf(cloud, 'azure-native');
  await make.create('azure-native:resources:ResourceGroup', 'group', { resourceGroupName: 'granted', location });
  const scope = `/subscriptions/${subscription}/resourceGroups/granted`;
  const name = '11111111-2222-4333-8444-555555555555';
  await make.create('azure-native:authorization:RoleAssignment', 'grant', {
    roleAssignmentName: name,
    scope,
    principalId: 'somebody',
    roleDefinitionId: '/providers/Microsoft.Authorization/roleDefinitions/reader',
  });
  const client = new AuthorizationManagementClient(credential(), subscription, manager());
  const listed = [];
  for await (const one of client.roleAssignments.listForScope(scope.slice(1), { filter: 'atScope()' }))
    listed.push(one);
  expect(listed).toMatchObject([{ name, scope, principalId: 'somebody' }]);
});
