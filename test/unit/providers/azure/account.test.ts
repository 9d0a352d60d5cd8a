import { describe, expect, it } from 'vitest';
import { checkAccount, missingOf, type Permission } from '../../../../providers/azure/account.ts';
import { type Answer, type Asked, context, FakeAzure, TOKEN } from './fake-azure.ts';
import { subscription } from './fixtures.ts';

const enabled: Answer = { body: { state: 'Enabled' } };
const PERMISSIONS = '/providers/Microsoft.Authorization/permissions';

/** A subscription in this state, on which these roles are held. */
const azureWith =
  (permissions: Permission[], about: Answer = enabled) =>
  ({ path }: Asked): Answer =>
    path.includes(PERMISSIONS) ? { body: { value: permissions } } : about;

describe('checkAccount at Azure', () => {
  it('returns the subscription, and no missing permission', async () => {
    await using azure = await FakeAzure.start(azureWith([{ actions: ['*'], notActions: [] }]));
    expect(await checkAccount(context(), azure.endpoints)).toEqual({ id: subscription, missing: [] });
    const asked = azure.asked.slice(1);
    expect(asked.map(({ method, path }) => `${method} ${path.split('?')[0]}`)).toEqual([
      `GET /subscriptions/${subscription}`,
      `GET /subscriptions/${subscription}${PERMISSIONS}`,
    ]);
    for (const { authorization } of asked) expect(authorization).toBe(`Bearer ${TOKEN}`);
    expect(new URLSearchParams(azure.asked[0]!.body).get('scope')).toBe(`${azure.endpoints.management}/.default`);
  });

  it("reports what a Contributor lacks: role assignments for the cluster's identity and administrator", async () => {
    const contributor = {
      actions: ['*'],
      notActions: ['Microsoft.Authorization/*/Delete', 'Microsoft.Authorization/*/Write'],
    };
    await using azure = await FakeAzure.start(azureWith([contributor]));
    expect((await checkAccount(context(), azure.endpoints)).missing).toEqual([
      'Microsoft.Authorization/roleAssignments/write',
      'Microsoft.Authorization/roleAssignments/delete',
    ]);
  });

  it('reads all pages of permissions', async () => {
    await using azure = await FakeAzure.start(({ path }) => {
      if (!path.includes(PERMISSIONS)) return enabled;
      if (path.includes('page=2')) return { body: { value: [{ actions: ['*'] }] } };
      return { body: { value: [], nextLink: `${azure.endpoints.management}${PERMISSIONS}?page=2` } };
    });
    expect((await checkAccount(context(), azure.endpoints)).missing).toEqual([]);
    expect(azure.asked).toHaveLength(4);
  });

  const refusals: [what: string, about: Answer, code: string][] = [
    ['is disabled', { body: { state: 'Disabled' } }, 'ERR_INFRA_DEPENDENCIES'],
    [
      'is not there, or not for these credentials',
      {
        status: 404,
        body: { error: { code: 'SubscriptionNotFound', message: 'The subscription could not be found.' } },
      },
      'ERR_INFRA_UNAUTHORIZED',
    ],
    [
      'may not be read',
      { status: 403, body: { error: { code: 'AuthorizationFailed', message: 'The client has no authorization.' } } },
      'ERR_INFRA_UNAUTHORIZED',
    ],
    [
      'does not take the token',
      { status: 401, body: { error: { code: 'InvalidAuthenticationToken' } } },
      'ERR_INFRA_UNAUTHENTICATED',
    ],
  ];

  it.each(refusals)('rejects when the subscription %s', async (_what, about, code) => {
    await using azure = await FakeAzure.start(azureWith([], about));
    await expect(checkAccount(context(), azure.endpoints)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(subscription),
    });
  });

  const needed = ['Microsoft.Network/virtualNetworks/subnets/join/action', 'Microsoft.Network/natGateways/write'];
  const roles: [what: string, permissions: Permission[], missing: string[]][] = [
    ['nothing', [], needed],
    ['a star over several parts', [{ actions: ['microsoft.network/*'] }], []],
    ['a star within', [{ actions: ['Microsoft.Network/*/write'] }], [needed[0]!]],
    ['another provider', [{ actions: ['Microsoft.Compute/*'] }], needed],
    [
      'what one role takes back and another gives',
      [{ actions: ['*'], notActions: ['*/write'] }, { actions: ['*/write'] }],
      [],
    ],
    ['a dot that is only a dot', [{ actions: ['MicrosoftXNetwork/*'] }], needed],
  ];

  it.each(roles)('finds missing permissions of roles with %s', (_what, permissions, missing) => {
    expect(missingOf(needed, permissions)).toEqual(missing);
  });
});
