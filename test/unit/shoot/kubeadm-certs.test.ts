import { createDecipheriv } from 'node:crypto';
import { expect, it } from 'vitest';
import { kubeadmAuthorities } from '../../../operator/shoot/kubeadm.ts';
import { certificateKeyFor, joinObjects } from '../../../operator/shoot/kubeadm-certs.ts';
import { issueShootPKI, planShootPKI } from '../../../operator/shoot/pki.ts';

const now = new Date('2026-11-21T00:00:00Z');
const parameters = { apiServerAddress: 'x', etcdAddresses: [], services: '10.97.0.0/16', selfHosted: true };
const pki = await issueShootPKI({}, planShootPKI({}, parameters, now), parameters, now);
const key = certificateKeyFor(pki, 'abcdef.0123456789abcdef');
const secretIn = (objects: ReturnType<typeof joinObjects>) =>
  objects.find(({ kind }) => kind === 'Secret')!.data as Record<string, string>;

it('has the authorities as kubeadm decrypts them: nonce first, AES-256-GCM, names without folders', () => {
  const found = Object.entries(secretIn(joinObjects(pki, key))).map(([name, text]) => {
    const bytes = Buffer.from(text, 'base64');
    const open = createDecipheriv('aes-256-gcm', Buffer.from(key, 'hex'), bytes.subarray(0, 12));
    open.setAuthTag(bytes.subarray(-16));
    return [name, Buffer.concat([open.update(bytes.subarray(12, -16)), open.final()]).toString()];
  });
  const names: Record<string, string> = Object.fromEntries(found);
  expect(Object.keys(names).sort()).toEqual(
    [
      'ca.crt',
      'ca.key',
      'etcd-ca.crt',
      'etcd-ca.key',
      'front-proxy-ca.crt',
      'front-proxy-ca.key',
      'sa.key',
      'sa.pub',
    ].sort(),
  );
  expect(names['etcd-ca.key']).toBe(kubeadmAuthorities(pki)['etcd/ca.key']);
});

it('is the same each time, and shows no key', () => {
  expect(joinObjects(pki, key)).toEqual(joinObjects(pki, key));
  expect(Buffer.from(secretIn(joinObjects(pki, key))['ca.key']!, 'base64').toString()).not.toContain('PRIVATE');
});

it('is of another key for another token, or another cluster', async () => {
  const others = await issueShootPKI({}, planShootPKI({}, parameters, now), parameters, now);
  const keys = [key, certificateKeyFor(pki, 'abcdef.other'), certificateKeyFor(others, 'abcdef.0123456789abcdef')];
  expect(new Set(keys).size).toBe(3);
  for (const one of keys) expect(one).toMatch(/^[0-9a-f]{64}$/);
});
