import { describe, expect, it } from 'vitest';
import { KubeApiError, KubeUnreachableError } from '../../../operator/kube/errors.ts';
import { evict } from '../../../operator/kube/requests/evict.ts';

const LONG = 'x'.repeat(1_000_000);

describe("a long message of a tenant's webhook is cut to what a status has room for", () => {
  it('in the error of a write', () => {
    const error = new KubeApiError('PATCH /a', 403, { reason: LONG, message: LONG });
    expect(error.message.length).toBeLessThan(5_000);
    expect(error.reason.length).toBeLessThan(1_000);
    expect(new KubeApiError('GET /a', 404, { reason: 'NotFound', message: 'no' }).message).toBe(
      'GET /a: 404 NotFound: no',
    );
  });

  it('in the outcome of an eviction', async () => {
    const causes = Array.from({ length: 10 }, () => ({ message: LONG }));
    const request = () => Promise.reject(new KubeApiError('POST /eviction', 429, { details: { causes } }));
    const eviction = await evict({ request }, { metadata: { name: 'a' } }, {});
    expect(eviction).toMatchObject({ outcome: 'blocked', message: expect.stringMatching(/^x{1000}$/) });
  });

  it.each([
    new KubeApiError('POST /eviction', 500, { message: 'This pod has more than one PodDisruptionBudget' }),
    new KubeApiError('POST /eviction', 403, { message: 'admission webhook "w" denied the request' }),
    new KubeUnreachableError('POST /eviction', new Error('no answer')),
  ])('of an eviction is about that pod: %s', async (error) => {
    const eviction = await evict({ request: () => Promise.reject(error) }, { metadata: { name: 'a' } }, {});
    expect(eviction).toMatchObject({ outcome: 'refused', message: error.message });
    expect('isUnanswered' in eviction).toBe(error instanceof KubeUnreachableError);
  });
});
