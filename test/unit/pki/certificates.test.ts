import { createPrivateKey, sign, verify, X509Certificate } from 'node:crypto';
import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import {
  certificateExpiry,
  certificateMatches,
  createCA,
  isPair,
  issue,
  issuedBy,
  needsRenewal,
  newServiceAccountKey,
  renewalTime,
  renewCA,
} from '../../../operator/pki/certificates.ts';
import { writeKubeconfigText } from '../../../operator/pki/kubeconfig.ts';

const NOW = new Date('2026-01-01T00:00:00Z');
const DAY_MS = 24 * 3600 * 1000;
const at = (days: number) => new Date(NOW.getTime() + days * DAY_MS);
const ca = await createCA({ commonName: 'demo', days: 3650, now: NOW });
const request = {
  commonName: 'kube-apiserver',
  organizations: ['a', 'b'],
  dnsNames: ['kubernetes', 'kubernetes.default.svc'],
  ipAddresses: ['10.0.0.1', '2001:db8::1'],
  usages: ['server', 'client'] as ('server' | 'client')[],
};
const leaf = await issue(ca, { ...request, days: 60, now: NOW });

describe('issue', () => {
  it('makes a leaf that its CA signed and another CA did not', async () => {
    const other = await createCA({ commonName: 'demo', days: 3650, now: NOW });
    expect(issuedBy(leaf.cert, ca.cert)).toBe(true);
    expect(issuedBy(leaf.cert, other.cert)).toBe(false);
    expect(issuedBy('nonsense', ca.cert)).toBe(false);
    expect(isPair(leaf)).toBe(true);
    expect(isPair({ cert: leaf.cert, key: other.key })).toBe(false);
    expect(isPair({ cert: leaf.cert })).toBe(false);
    expect(new X509Certificate(leaf.cert).ca).toBe(false);
    expect(new X509Certificate(ca.cert).ca).toBe(true);
  });

  it('never outlives its CA', async () => {
    const short = await createCA({ commonName: 'short', days: 10, now: NOW });
    const clamped = await issue(short, { ...request, days: 100, now: NOW });
    expect(certificateExpiry(clamped.cert)).toEqual(certificateExpiry(short.cert));
    expect(certificateExpiry(leaf.cert)).toEqual(at(60));
  });

  it('encodes times beyond 2049, and long lists of names', async () => {
    const far = await createCA({ commonName: 'far', days: 3650, now: new Date('2049-06-01T00:00:00Z') });
    expect(certificateExpiry(far.cert).toISOString()).toBe('2059-05-30T00:00:00.000Z');
    const dnsNames = Array.from({ length: 3000 }, (_, index) => `name-${index}.example`);
    const long = await issue(ca, { commonName: 'long', dnsNames, usages: ['server'], days: 1, now: NOW });
    expect(certificateMatches(long.cert, { commonName: 'long', dnsNames, usages: ['server'] })).toBe(true);
  });

  it('gives every certificate a unique positive serial', async () => {
    const again = await issue(ca, { ...request, days: 100, now: NOW });
    expect(new X509Certificate(again.cert).serialNumber).not.toBe(new X509Certificate(leaf.cert).serialNumber);
    expect(new X509Certificate(again.cert).serialNumber).toMatch(/^[4-7][0-9A-F]{31}$/);
  });
});

describe('matches', () => {
  it.each([
    ['the same', {}, true],
    ['another order', { dnsNames: ['kubernetes.default.svc', 'kubernetes'], organizations: ['b', 'a'] }, true],
    ['another spelling of an IPv6 address', { ipAddresses: ['10.0.0.1', '2001:0db8:0::1'] }, true],
    ['another name', { commonName: 'etcd' }, false],
    ['one group fewer', { organizations: ['a'] }, false],
    ['one DNS name more', { dnsNames: ['kubernetes', 'kubernetes.default.svc', 'x'] }, false],
    ['another address', { ipAddresses: ['10.0.0.2', '2001:db8::1'] }, false],
    ['fewer usages', { usages: ['server'] as 'server'[] }, false],
  ])('%s', (_, change, expected) => {
    expect(certificateMatches(leaf.cert, { ...request, ...change })).toBe(expected);
  });
  it('is false for an invalid certificate', () => expect(certificateMatches('nonsense', request)).toBe(false));
});

describe('needsRenewal', () => {
  it("is true after 80 % of a leaf's life or 48 days, and 30 days before a CA's expiry", async () => {
    expect(needsRenewal(leaf.cert, at(47))).toBe(false);
    expect(needsRenewal(leaf.cert, at(49))).toBe(true);
    const ofAYear = await issue(ca, { ...request, days: 365, now: NOW });
    expect(needsRenewal(ofAYear.cert, at(47))).toBe(false);
    expect(needsRenewal(ofAYear.cert, at(49))).toBe(true);
    expect(needsRenewal(ca.cert, at(3619))).toBe(false);
    expect(needsRenewal(ca.cert, at(3621))).toBe(true);
    expect(needsRenewal(leaf.cert, renewalTime(leaf.cert))).toBe(true);
  });

  it('renewCA keeps signed certificates valid', async () => {
    const renewed = await renewCA(ca, { days: 3650, now: at(3621) });
    expect(renewed.key).toBe(ca.key);
    expect(issuedBy(leaf.cert, renewed.cert)).toBe(true);
    expect(certificateExpiry(renewed.cert)).toEqual(at(7271));
    expect(new X509Certificate(renewed.cert).subject).toBe(new X509Certificate(ca.cert).subject);
  });
});

it('newServiceAccountKey makes keys that sign and verify', async () => {
  const keys = await newServiceAccountKey();
  const data = Buffer.from('token');
  const signature = sign('sha256', data, createPrivateKey(keys.private));
  expect(verify('sha256', data, keys.public, signature)).toBe(true);
});

it('kubeconfig writes a valid kubeconfig', () => {
  const parameters = { server: 'https://10.0.0.1:6443', ca: ca.cert, ...leaf, name: 'demo', user: 'admin' };
  const parsed = load(writeKubeconfigText({ ...parameters, namespace: 'shop' })) as Record<string, any>;
  expect(parsed['current-context']).toBe('demo');
  expect(parsed.contexts[0].context).toEqual({ cluster: 'demo', user: 'admin', namespace: 'shop' });
  expect(Buffer.from(parsed.users[0].user['client-key-data'], 'base64').toString()).toBe(leaf.key);
  expect(parsed.clusters[0].cluster.server).toBe('https://10.0.0.1:6443');
});
