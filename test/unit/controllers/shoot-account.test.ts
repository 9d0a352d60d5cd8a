import { describe, expect, it } from 'vitest';
import { accountOfShoot, credentialsOfShoot, namesAccount, usersOf } from '../../../operator/accounts/shoot-account.ts';
import type { CredentialsBinding } from '../../../operator/api/credentialsbinding.ts';
import { unreachableReason } from '../../../operator/controllers/shoot/expose.ts';
import { buildCloudProfile, buildSeed, buildShoot, buildWorkerCluster } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';

const ownerReferences = [{ apiVersion: 'x', kind: 'WorkerCluster', name: 'one', uid: 'u' }];
const shoot = (spec: object, metadata: object = {}) =>
  buildShoot({ metadata: { name: 'one', namespace: 'shop', ...metadata }, spec });
const clusters = (more: object) => ({
  get: () => buildWorkerCluster({ metadata: { name: 'one', namespace: 'shop', uid: 'u' }, ...more }),
});
const none = { get: () => undefined };
const bindings = (_namespace: string, name: string) =>
  ['aws', 'gcp'].includes(name)
    ? partOf<CredentialsBinding>({
        metadata: { name, namespace: 'shop' },
        provider: { type: name },
        credentialsRef: { kind: 'Secret', name: `${name}-secret` },
      })
    : undefined;

describe('the account of a shoot', () => {
  it('is that of its WorkerCluster', () => {
    const its = clusters({ spec: { credentialsRef: { name: 'keys' } } });
    expect(credentialsOfShoot(shoot({}, { ownerReferences }), 'aws', its, bindings)).toEqual({
      namespace: 'shop',
      secret: 'keys',
    });
    expect(namesAccount(shoot({}, { ownerReferences }), its)).toBe(true);
  });

  it('is not used in a region that would change the API host, whatever the Shoot says', async () => {
    const side = partOf<Parameters<typeof accountOfShoot>[0]>({
      clusters: clusters({ spec: { credentialsRef: { name: 'keys' } } }),
      bindings: { get: () => undefined },
      credentials: { get: () => ({ data: { token: 'c2VjcmV0' } }) },
    });
    const forged = shoot({ region: 'evil.example.org/#' }, { ownerReferences });
    const profile = buildCloudProfile({ spec: { type: 'aws' } });
    await expect(accountOfShoot(side, forged, profile, new AbortController().signal)).rejects.toThrow(
      '"evil.example.org/#" can be no region',
    );
  });

  it('is not that of another cluster of the same name, nor one named after its nodes were simulated', () => {
    const spec = { credentialsRef: { name: 'keys' } };
    const earlier = clusters({ spec, metadata: { name: 'one', namespace: 'shop', uid: 'other' } });
    expect(namesAccount(shoot({}, { ownerReferences }), earlier)).toBe(false);
    expect(namesAccount(shoot({}, { ownerReferences }), clusters({ spec, status: { simulated: true } }))).toBe(false);
  });

  it('is that of the binding it names itself', () => {
    const own = shoot({ credentialsBindingName: 'aws' });
    expect(credentialsOfShoot(own, 'aws', none, bindings)).toMatchObject({ namespace: 'shop', secret: 'aws-secret' });
    expect(namesAccount(own, none)).toBe(true);
  });

  it.each([
    [{}, 'names no credentials'],
    [{ credentialsBindingName: 'gcp' }, 'is for provider gcp, not aws'],
    [{ credentialsBindingName: 'lost' }, 'there is no CredentialsBinding shop/lost'],
  ])('cannot be told of %j', (spec, message) => {
    expect(() => credentialsOfShoot(shoot(spec), 'aws', none, bindings)).toThrow(message);
  });
});

it('is retried by all its users once the cloud accepts a refused binding', () => {
  const cluster = (name: string, spec: object, namespace = 'shop') =>
    buildWorkerCluster({ metadata: { name, namespace }, spec });
  const ref = { credentialsRef: { name: 'aws' } };
  const known = [
    cluster('managed', ref),
    cluster('hosted', { fallback: [ref] }),
    cluster('other', { credentialsRef: { name: 'gcp' } }),
    cluster('managed', ref, 'elsewhere'),
  ];
  const shoots = [
    shoot({}, { name: 'hosted' }),
    shoot({}, { name: 'other' }),
    shoot({ credentialsBindingName: 'aws' }, { name: 'own' }),
    shoot({ credentialsBindingName: 'aws' }, { name: 'own', namespace: 'elsewhere' }),
  ];
  expect(usersOf(bindings('shop', 'aws')!, known, shoots)).toEqual({
    clusters: ['shop/managed', 'shop/hosted'],
    shoots: ['shop/hosted', 'shop/own'],
  });
});

it.each<['NodePort' | 'LoadBalancer' | undefined, string | undefined]>([
  [undefined, 'seed s exposes API servers by ClusterIP only'],
  ['NodePort', 'seed s exposes API servers by NodePort only'],
  ['LoadBalancer', undefined],
])('a seed that exposes API servers by %s', (type, message) => {
  const seed = buildSeed({ metadata: { name: 's' }, spec: { exposure: type && { type } } });
  const why = unreachableReason(seed)?.message;
  if (message === undefined) expect(why).toBeUndefined();
  else expect(why).toContain(message);
});
