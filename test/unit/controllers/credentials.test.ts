import { describe, expect, it } from 'vitest';
import { credentialsIn, credentialsOf } from '../../../operator/accounts/credentials.ts';
import { type CredentialsBinding, credentialsBindingFields } from '../../../operator/api/credentialsbinding.ts';
import { API_VERSION } from '../../../operator/api/group.ts';
import { type WorkerCluster, workerClusterSpec } from '../../../operator/api/workercluster.ts';
import { unactedQuotas, usedNames } from '../../../operator/controllers/credentials/controller.ts';
import { buildWorkerCluster } from '../../kit/builders/objects.ts';

const cluster = (credentialsRef: object | undefined, namespace = 'shop') =>
  buildWorkerCluster({
    metadata: { name: 'one', namespace },
    spec: workerClusterSpec.parse({ cloudProvider: 'aws', dataPlaneNodes: 1, credentialsRef }),
  });
const binding = (name: string, fields: object = {}): CredentialsBinding => ({
  apiVersion: API_VERSION,
  kind: 'CredentialsBinding',
  metadata: { name, namespace: 'shop' },
  ...credentialsBindingFields.parse({
    provider: { type: 'aws' },
    credentialsRef: { kind: 'Secret', name: 'keys' },
    ...fields,
  }),
});
const BINDINGS = new Map([
  ['shop/bound', binding('bound')],
  ['shop/gcp', binding('gcp', { provider: { type: 'gcp' } })],
  ['shop/foreign', binding('foreign', { credentialsRef: { name: 'keys', namespace: 'bank' } })],
  ['shop/own', binding('own', { credentialsRef: { name: 'keys', namespace: 'shop' } })],
  ['shop/identity', binding('identity', { credentialsRef: { kind: 'WorkloadIdentity', name: 'me' } })],
  ['shop/stolen', binding('stolen', { credentialsRef: { kind: 'WorkloadIdentity', name: 'me', namespace: 'bank' } })],
]);
const find = (wc: WorkerCluster) => credentialsOf(wc, 'aws', (namespace, name) => BINDINGS.get(`${namespace}/${name}`));

describe('credentialsRef', () => {
  it.each<[string, object, object]>([
    ['names a Secret', { name: 'keys' }, { namespace: 'shop', secret: 'keys' }],
    ['names a binding', { name: 'bound' }, { namespace: 'shop', secret: 'keys', binding: 'bound' }],
    [
      'names a Secret where a binding has the name too',
      { kind: 'Secret', name: 'bound' },
      { namespace: 'shop', secret: 'bound' },
    ],
    [
      'names its own namespace',
      { name: 'own', namespace: 'shop' },
      { namespace: 'shop', secret: 'keys', binding: 'own' },
    ],
    [
      'names a binding that leads to a workload identity',
      { name: 'identity' },
      { namespace: 'shop', identity: 'me', type: 'aws', binding: 'identity' },
    ],
  ])('%s', (_what, ref, use) => {
    expect(find(cluster(ref))).toEqual(use);
  });

  it.each<[string, object | undefined, string]>([
    ['nothing', undefined, 'names no credentials'],
    ['another namespace', { name: 'keys', namespace: 'bank' }, 'own namespace only'],
    ['a binding that leads to another namespace', { name: 'foreign' }, 'own namespace only'],
    ['a binding of another provider', { name: 'gcp' }, 'is for provider gcp, not aws'],
    ['a binding that leads to an identity of another namespace', { name: 'stolen' }, 'own namespace only'],
    ['a binding that is not there', { kind: 'CredentialsBinding', name: 'nobody' }, 'there is no CredentialsBinding'],
  ])('may not name %s', (_what, ref, words) => {
    expect(() => find(cluster(ref))).toThrow(words);
  });

  it("never resolves to another tenant's binding of the same name", () => {
    expect(find(cluster({ name: 'bound' }, 'bank'))).toEqual({ namespace: 'bank', secret: 'bound' });
  });
});

describe('credentials', () => {
  const use = { namespace: 'shop', secret: 'keys' };
  const secret = (values: Record<string, string>) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'keys', namespace: 'shop' },
    data: Object.fromEntries(Object.entries(values).map(([k, v]) => [k, Buffer.from(v).toString('base64')])),
  });

  it('have a version that changes with their values only', () => {
    const one = credentialsIn(secret({ a: '1', b: '2' }), use);
    expect(one.values).toEqual({ a: '1', b: '2' });
    expect(credentialsIn(secret({ b: '2', a: '1' }), use).version).toBe(one.version);
    expect(credentialsIn(secret({ a: '1', b: '3' }), use).version).not.toBe(one.version);
  });

  it.each([
    ['that are not there', undefined, 'there is no Secret shop/keys'],
    ['that are empty', secret({}), 'Secret shop/keys is empty'],
  ])('%s are waited for', (_what, given, words) => {
    expect(() => credentialsIn(given, use)).toThrow(words);
  });

  it('that do not exist may be a misspelled CredentialsBinding', () => {
    const says = (advice: string) => expect.objectContaining({ advice });
    expect(() => credentialsIn(undefined, use)).toThrow(
      says('Make it, or name another Secret, or a CredentialsBinding.'),
    );
    expect(() => credentialsIn(undefined, { ...use, binding: 'own' })).toThrow(says('Make it, or name another.'));
  });
});

it('the binding or Secret that clusters use is held by a finalizer', () => {
  const used = usedNames(
    [
      cluster({ name: 'bound' }),
      cluster({ name: 'keys' }),
      cluster({ name: 'x', namespace: 'bank' }),
      cluster(undefined),
    ],
    new Set(['bound', 'gcp']),
  );
  expect([[...used.bindings], [...used.secrets]]).toEqual([['bound'], ['keys']]);
});

it('the credentials of fallback places are held too, since they are needed for deletion', () => {
  const { spec, ...rest } = cluster({ name: 'keys' });
  const fallback = [{ cloudProvider: 'gcp', credentialsRef: { name: 'gcp' } }, { region: 'there' }];
  const used = usedNames([{ ...rest, spec: { ...spec, fallback } }], new Set(['gcp']));
  expect([[...used.bindings], [...used.secrets]]).toEqual([['gcp'], ['keys']]);
});

it('the credentials of DNS names are held too', () => {
  const { spec, ...rest } = cluster(undefined);
  const dns = (provider: object) => ({ ...rest, spec: { ...spec, dns: { domain: 'x.org', providers: [provider] } } });
  const used = usedNames(
    [
      dns({ credentialsRef: { kind: 'CredentialsBinding', name: 'zones' } }),
      dns({ credentialsRef: { name: 'keys' } }),
      dns({ secretName: 'old' }),
    ],
    new Set(['keys']),
  );
  expect([[...used.bindings], [...used.secrets]]).toEqual([['zones'], ['keys', 'old']]);
});

it('quotas of a binding are stored without effect, which is reported by name', () => {
  const metadata = { name: 'bound', namespace: 'shop' };
  expect(unactedQuotas({ metadata })).toBeUndefined();
  const quotas = [{ name: 'own' }, { name: 'all', namespace: 'garden' }];
  const condition = unactedQuotas({ metadata, quotas });
  expect(condition).toMatchObject({ type: 'AllFieldsActedOn', status: 'False', reason: 'KeptOnly' });
  expect(condition?.message).toContain('shop/own, garden/all');
});
