import { describe, expect, it } from 'vitest';
import type { CoppiceError } from '../../../../operator/api/errors.ts';
import { checkAccount, missingForControlPlane, PERMISSIONS } from '../../../../providers/gcp/account.ts';
import { type Answer, FakeGoogle } from './fake-google.ts';
import { context, withKey } from './fixtures.ts';

const PATH = '/v1/projects/demo-project:testIamPermissions';

const answering = (answer: (permissions: string[]) => Answer) =>
  FakeGoogle.start(({ path, body }) => (path === PATH ? answer(JSON.parse(body).permissions) : undefined));

describe('an account', () => {
  it('is known by its project, and may do all that is needed', async () => {
    await using google = await answering((permissions) => ({ body: { permissions } }));
    expect(await checkAccount(context(), google.endpoints)).toEqual({ id: 'demo-project', missing: [] });
    const { method, headers } = google.asked.find(({ path }) => path === PATH)!;
    expect([method, headers.authorization]).toEqual(['POST', 'Bearer ya29.token']);
    expect(google.calls).toHaveLength(1);
  });

  it("is told which permissions it lacks, in Google's names", async () => {
    const lacking = ['container.clusters.create', 'compute.routers.update'];
    await using google = await answering((permissions) => ({
      body: { permissions: permissions.filter((permission) => !lacking.includes(permission)) },
    }));
    const { missing } = await checkAccount(context(), google.endpoints);
    expect(missing.sort()).toEqual(lacking.sort());
  });

  it('is asked before a control plane on machines for the network of that, too', async () => {
    const lacking = ['compute.globalAddresses.setLabels', 'compute.networks.create'];
    const sizes: number[] = [];
    await using google = await answering((permissions) => {
      sizes.push(permissions.length);
      return { body: { permissions: permissions.filter((permission) => !lacking.includes(permission)) } };
    });
    expect((await missingForControlPlane(context(), google.endpoints)).sort()).toEqual(lacking);
    expect(sizes[0]).toBeLessThanOrEqual(100);
  });

  it('that may do nothing gets an empty answer from Google, and the whole list from us', async () => {
    await using google = await answering(() => ({ body: {} }));
    expect((await checkAccount(context(), google.endpoints)).missing).toEqual(PERMISSIONS.managed);
  });

  it('asks for no more than Google answers at once, each once', () => {
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
  ])('with %s has its own code', async (_, error, code) => {
    await using google = await answering(() => ({ status: error.code, body: { error } }));
    const reason = await checkAccount(context(), google.endpoints).catch((thrown: unknown) => thrown);
    expect(reason).toMatchObject({ code, message: expect.stringContaining(error.message.replace(/\.$/, '')) });
  });

  it('without a usable key is not asked about', async () => {
    await using google = await FakeGoogle.start();
    const reason = await checkAccount(withKey({ type: 'authorized_user' }), google.endpoints).catch((thrown) => thrown);
    expect((reason as CoppiceError).code).toBe('ERR_INFRA_UNAUTHENTICATED');
    expect(google.asked).toEqual([]);
  });
});
