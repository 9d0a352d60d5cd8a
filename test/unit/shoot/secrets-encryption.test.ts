import { expect, it } from 'vitest';
import { afterEncryptionStep } from '../../../operator/pki/secrets-encryption.ts';
import { encryptionOf, planEncryption, withEncryption } from '../../../operator/shoot/secrets-encryption.ts';
import { controlPlane, controlPlaneObjects, NOW, pkiOf } from './values.ts';

const values = controlPlane();
const pki = await pkiOf(values);
const asked = { isNew: false, rotate: false, now: NOW };

/** The API server's Deployment with these keys, and what it is told of Secrets. */
function apiServer(keys: Record<string, string>) {
  const objects = controlPlaneObjects(values, keys).filter(({ metadata }) => metadata.name === 'kube-apiserver');
  const [secret, deployment] = [objects.find(({ kind }) => kind === 'Secret')!, objects[1]!];
  const { metadata, spec } = deployment.spec.template;
  const file = secret.data['encryption.json'];
  return {
    arguments: spec.containers[0].args as string[],
    checksum: metadata.annotations['multi-cluster.demo.io/checksum'] as string,
    told:
      file === undefined
        ? undefined
        : (JSON.parse(Buffer.from(file, 'base64').toString()).resources[0].providers as object[]),
  };
}

it("a new cluster's API servers encrypt Secrets from the start, without a rewrite", () => {
  const keys = planEncryption(pki, { ...asked, isNew: true });
  const { arguments: args, told } = apiServer(keys);
  expect(args).toContain('--encryption-provider-config=/etc/kubernetes/encryption.json');
  expect(told).toEqual([{ secretbox: { keys: [encryptionOf(keys)?.write] } }]);
  expect(controlPlaneObjects(values, keys)).toHaveLength(controlPlaneObjects(values, pki).length);
});

it('a cluster without encryption keys keeps plain Secrets until all its API servers know the key', () => {
  const { told } = apiServer(planEncryption(pki, asked));
  expect(told?.map((provider: object) => Object.keys(provider)[0])).toEqual(['identity', 'secretbox']);
});

it('the encryption state is unchanged without a request', () => {
  const keys = planEncryption(pki, { ...asked, isNew: true });
  expect(planEncryption(keys, asked)).toBe(keys);
  // Once the keys are there, the cluster is no longer taken for one without Secrets.
  expect(planEncryption(keys, { ...asked, isNew: true })).toBe(keys);
});

it('every step of a rotation rolls the API servers, and no further rotation begins meanwhile', () => {
  const first = planEncryption(pki, { ...asked, isNew: true });
  const rotating = planEncryption(first, { ...asked, rotate: true });
  expect(planEncryption(rotating, { ...asked, rotate: true })).toBe(rotating);
  const promoted = withEncryption(rotating, afterEncryptionStep(encryptionOf(rotating)!, 'promote', NOW, 0));
  const done = withEncryption(promoted, afterEncryptionStep(encryptionOf(promoted)!, 'rewrite', NOW, 0));
  const checksums = [pki, first, rotating, promoted, done].map((keys) => apiServer(keys).checksum);
  expect(new Set(checksums).size).toBe(5);
});
