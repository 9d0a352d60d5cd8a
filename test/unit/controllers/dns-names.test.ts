import { describe, expect, it } from 'vitest';
import type { WantedName } from '../../../operator/accounts/dns-account.ts';
import { usedFor } from '../../../operator/accounts/dns-account.ts';
import { CoppiceError } from '../../../operator/api/errors.ts';
import { hostNames, recordOf, wantedNames } from '../../../operator/controllers/shoot/dns/dns-names.ts';
import {
  type DNSOutcome,
  nextLook,
  outcomeOf,
  recordsCondition,
  rememberedOutcomes,
} from '../../../operator/controllers/shoot/dns/dns-outcome.ts';
import { buildSeed, buildShoot } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';

const shoot = (dns?: object, more: object = {}) =>
  buildShoot({ metadata: { name: 'blue', namespace: 'shop' }, spec: { ...(dns && { dns }) }, ...more });
const seed = (internal?: object) =>
  buildSeed({ metadata: { name: 's' }, spec: { ...(internal && { dns: { internal } }) } });

describe('the DNS names of an API server', () => {
  it('are none without a domain', () => {
    expect(hostNames(shoot(), seed())).toEqual([]);
    expect(wantedNames(shoot(), seed(), 'local')).toEqual([]);
  });

  it("are one in the tenant's domain, with the tenant's credentials only", () => {
    const own = shoot({
      domain: 'shop.example.com',
      providers: [
        { type: 'azure-dns', secretName: 'old' },
        {
          type: 'aws-route53',
          primary: true,
          credentialsRef: { kind: 'CredentialsBinding', name: 'mine' },
          zones: { include: ['Z1'] },
        },
      ],
    });
    expect(wantedNames(own, seed(), 'local')).toEqual([
      {
        host: 'api.shop.example.com',
        domain: 'external',
        provider: 'aws',
        choice: { include: ['Z1'] },
        credentials: { namespace: 'shop', kind: 'CredentialsBinding', name: 'mine' },
      },
    ]);
  });

  it("are one in the platform's domain, for each cluster of the seed", () => {
    const internal = {
      type: 'google-clouddns',
      domain: 'internal.example.com',
      zone: 'z',
      credentialsRef: { name: 'dns', namespace: 'garden' },
    };
    expect(hostNames(shoot(), seed(internal))).toEqual(['api.blue.shop.internal.example.com']);
    expect(wantedNames(shoot(), seed(internal), 'local')).toMatchObject([
      {
        provider: 'gcp',
        choice: { include: ['z'] },
        credentials: { namespace: 'garden', kind: 'Secret', name: 'dns' },
      },
    ]);
  });

  it("are hosted by the machines' provider, unless another is named", () => {
    expect(wantedNames(shoot({ domain: 'x.org' }), seed(), 'simulated')).toMatchObject([{ provider: 'simulated' }]);
  });

  it('are in the certificate although others create the record', () => {
    const own = shoot({ domain: 'x.org', providers: [{ type: 'unmanaged' }] });
    expect(hostNames(own, seed())).toEqual(['api.x.org']);
    expect(wantedNames(own, seed(), 'local')).toEqual([]);
  });

  it('are not guessed between providers', () => {
    const own = shoot({ domain: 'x.org', providers: [{ type: 'aws-route53' }, { type: 'azure-dns' }] });
    expect(wantedNames(own, seed(), 'local')[0]!.problem?.message).toContain('none is primary');
  });

  it.each([
    ['192.0.2.1', 'A'],
    ['2001:db8::1', 'AAAA'],
    ['lb.elb.amazonaws.com', 'CNAME'],
  ])('lead to %s by %s', (target, type) => {
    expect(recordOf('api.x.org', target)).toEqual({ name: 'api.x.org', type, ttl: 120, values: [target] });
  });
});

describe('the credentials of a DNS name', () => {
  const binding = (type: string) => ({
    metadata: { name: 'mine', namespace: 'shop' },
    provider: { type },
    credentialsRef: { kind: 'Secret', name: 'keys' },
  });
  const side = (type?: string) =>
    ({
      clusters: { get: () => undefined },
      bindings: { get: (key: string) => (type && key === 'shop/mine' ? binding(type) : undefined) },
    }) as never;
  const wanted = (credentials: object, domain: WantedName['domain'] = 'external') =>
    partOf<WantedName>({ provider: 'aws', domain, credentials: { namespace: 'shop', ...credentials } });

  it("are in the cluster's namespace", () => {
    const own = shoot({ domain: 'x.org' });
    expect(usedFor(side(), own, wanted({ kind: 'Secret', name: 'keys' }))).toEqual({
      namespace: 'shop',
      secret: 'keys',
    });
    expect(usedFor(side('aws'), own, wanted({ kind: 'CredentialsBinding', name: 'mine' }))).toMatchObject({
      secret: 'keys',
    });
    expect(usedFor(side(), own, wanted({ kind: 'WorkloadIdentity', name: 'id' }))).toMatchObject({
      identity: 'id',
      type: 'aws',
    });
  });
  it.each<[string, object, WantedName['domain'], string]>([
    ['gcp', { kind: 'CredentialsBinding', name: 'mine' }, 'external', 'is for provider gcp, not aws'],
    ['aws', { kind: 'CredentialsBinding', name: 'lost' }, 'external', 'there is no CredentialsBinding shop/lost'],
    ['aws', {}, 'external', 'names no credentials'],
    ['aws', {}, 'internal-domain', 'the seed names no credentials'],
  ])('for a binding of %s, named as %j in the %s domain are refused', (type, credentials, domain, message) => {
    expect(() => usedFor(side(type), shoot(), wanted(credentials, domain))).toThrow(message);
  });
});

describe('the status of a DNS name', () => {
  const name = { host: 'api.x.org', domain: 'external' } as const;
  const right: DNSOutcome = { ...name, ready: true, target: '192.0.2.1' };
  const failed = (code: CoppiceError['code'], before?: DNSOutcome) =>
    outcomeOf(name, { error: new CoppiceError(code, 'no') }, before, 3);

  it('changes only with evidence: an unanswered request changes nothing', () => {
    expect(outcomeOf(name, { target: '192.0.2.1' }, undefined, 0)).toEqual(right);
    expect(failed('ERR_RETRYABLE_INFRA_DEPENDENCIES', right).ready).toBe(true);
    expect(failed('ERR_INFRA_UNAUTHENTICATED', right).ready).toBe(true);
    expect(failed('ERR_INFRA_DEPENDENCIES', right).ready).toBe(false);
    expect(failed('ERR_RETRYABLE_INFRA_DEPENDENCIES').ready).toBe(false);
  });

  it('is a condition with code and advice', () => {
    const problem = recordsCondition([failed('ERR_INFRA_UNAUTHORIZED')], shoot());
    expect(problem).toMatchObject({ type: 'DNSRecordsReady', status: 'False', codes: ['ERR_INFRA_UNAUTHORIZED'] });
    expect(problem!.message).toContain('api.x.org: no. The cloud accepts the credentials but denies this action');
    expect(recordsCondition([right], shoot())).toMatchObject({
      status: 'True',
      message: 'api.x.org points to 192.0.2.1',
    });
    expect(recordsCondition([], shoot())).toBeUndefined();
  });

  it('is kept by a restarted operator without a write', () => {
    const said = { type: 'DNSRecordsReady', status: 'True', reason: 'RecordsReady', message: 'm' };
    const known = shoot(undefined, {
      status: {
        conditions: [{ ...said, lastTransitionTime: 'then' }],
        advertisedAddresses: [{ name: 'external', url: 'https://api.x.org:6443' }],
      },
    });
    const names = [{ ...name } as WantedName];
    expect(rememberedOutcomes(known, names)).toEqual([{ ...name, ready: true }]);
    expect(recordsCondition(rememberedOutcomes(known, names), known)).toEqual(said);
    expect(rememberedOutcomes(shoot(), names)).toEqual([{ ...name, ready: false }]);
    expect(recordsCondition(rememberedOutcomes(shoot(), names), shoot())).toMatchObject({ status: 'Unknown' });
  });

  it('is checked again in an hour, and sooner after a failure', () => {
    expect(nextLook([right], 0)).toBe(3600_000);
    expect([1, 2, 3, 20].map((failures) => nextLook([failed('ERR_INFRA_RATE_LIMITS_EXCEEDED')], failures))).toEqual([
      5_000, 10_000, 20_000, 300_000,
    ]);
    expect(nextLook([failed('ERR_INFRA_UNAUTHENTICATED')], 1)).toBe(300_000);
  });
});
