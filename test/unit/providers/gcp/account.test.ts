import { describe, expect, it } from 'vitest';
import type { CoppiceError } from '../../../../operator/api/errors.ts';
import { checkAccount, missingForControlPlane, PERMISSIONS } from '../../../../providers/gcp/account.ts';
import { type Answer, FakeGoogle } from './fake-google.ts';
import { context, withKey } from './fixtures.ts';

const PATH = '/v1/projects/demo-project:testIamPermissions';

const answering = (answer: (permissions: string[]) => Answer) =>
  FakeGoogle.start(({ path, body }) => (path === PATH ? answer(JSON.parse(body).permissions) : undefined));

describe('checkAccount at Google', () => {
  it('returns the project, and no missing permission', async () => {
    await using google = await answering((permissions) => ({ body: { permissions } }));
    expect(await checkAccount(context(), google.endpoints)).toEqual({ id: 'demo-project', missing: [] });
    const { method, headers } = google.asked.find(({ path }) => path === PATH)!;
    expect([method, headers.authorization]).toEqual(['POST', 'Bearer ya29.token']);
    expect(google.calls).toHaveLength(1);
  });

  it("returns missing permissions by Google's names", async () => {
    const lacking = ['container.clusters.create', 'compute.routers.update'];
    await using google = await answering((permissions) => ({
      body: { permissions: permissions.filter((permission) => !lacking.includes(permission)) },
    }));
    const { missing } = await checkAccount(context(), google.endpoints);
    expect(missing.sort()).toEqual(lacking.sort());
  });

  it('also checks network permissions for control planes on machines', async () => {
    const lacking = ['compute.globalAddresses.setLabels', 'compute.networks.create'];
    const sizes: number[] = [];
    await using google = await answering((permissions) => {
      sizes.push(permissions.length);
      return { body: { permissions: permissions.filter((permission) => !lacking.includes(permission)) } };
    });
    expect((await missingForControlPlane(context(), google.endpoints)).sort()).toEqual(lacking);
    expect(sizes[0]).toBeLessThanOrEqual(100);
  });

  it('returns all permissions as missing for the empty answer of Google', async () => {
    await using google = await answering(() => ({ body: {} }));
    expect((await checkAccount(context(), google.endpoints)).missing).toEqual(PERMISSIONS.managed);
  });

  it("asks for each permission once, within Google's limit per call", () => {
    expect(PERMISSIONS.managed.length).toBeLessThanOrEqual(100);
    expect(new Set(PERMISSIONS.managed).size).toBe(PERMISSIONS.managed.length);
  });

  it.each([
    [
      'an API that is not enabled',
      {
        code: 403,
        message: 'Cloud Resource Manager API has not been used in project 1 before or it is disabled.',
        status: 'PERMISSION_DENIED',
        details: [{ reason: 'SERVICE_DISABLED', domain: 'googleapis.com' }],
      },
      'ERR_INFRA_DEPENDENCIES',
    ],
    [
      'another project',
      { code: 403, message: 'The caller does not have permission', status: 'PERMISSION_DENIED' },
      'ERR_INFRA_UNAUTHORIZED',
    ],
    [
      'a revoked key',
      { code: 401, message: 'Request had invalid credentials.', status: 'UNAUTHENTICATED' },
      'ERR_INFRA_UNAUTHENTICATED',
    ],
    [
      'a throttled account',
      { code: 429, message: 'Quota exceeded', status: 'RESOURCE_EXHAUSTED' },
      'ERR_INFRA_RATE_LIMITS_EXCEEDED',
    ],
  ])('reports %s with its own code', async (_, error, code) => {
    await using google = await answering(() => ({ status: error.code, body: { error } }));
    const reason = await checkAccount(context(), google.endpoints).catch((thrown: unknown) => thrown);
    expect(reason).toMatchObject({ code, message: expect.stringContaining(error.message.replace(/\.$/, '')) });
  });

  it('calls nothing without a usable key', async () => {
    await using google = await FakeGoogle.start();
    const reason = await checkAccount(withKey({ type: 'authorized_user' }), google.endpoints).catch((thrown) => thrown);
    expect((reason as CoppiceError).code).toBe('ERR_INFRA_UNAUTHENTICATED');
    expect(google.asked).toEqual([]);
  });
});
