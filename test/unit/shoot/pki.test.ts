import { X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { parseUntrustedKubeconfig } from '../../../operator/kube/kubeconfig.ts';
import { certificateMatches, createCA, issue, issuedBy } from '../../../operator/pki/certificates.ts';
import { adminKubeconfig } from '../../../operator/shoot/kubeconfigs.ts';
import { issueShootPKI, type PKIData, pkiParameters, planShootPKI } from '../../../operator/shoot/pki.ts';
import { controlPlane, NOW, pkiOf } from './values.ts';

const parameters = pkiParameters(controlPlane());
const pki = await pkiOf(controlPlane());
const later = (days: number) => new Date(NOW.getTime() + days * 24 * 3600 * 1000);
const planned = (existing: PKIData, now = NOW, changed = parameters) =>
  planShootPKI(existing, changed, now).issue.map(({ id, reason }) => `${id} ${reason}`);

describe('planShootPKI', () => {
  it('issues everything without existing certificates', () => {
    const plan = planShootPKI({}, parameters, NOW);
    expect(plan.nextRenewal).toBeUndefined();
    expect(plan.issue.every(({ reason }) => reason === 'missing')).toBe(true);
    expect(plan.issue.slice(0, 3).map(({ id }) => id)).toEqual(['ca', 'ca-etcd', 'ca-front-proxy']);
    expect(Object.keys(pki)).toHaveLength(plan.issue.length * 2);
  });

  it('issues nothing when everything exists, and names the next check', () => {
    const plan = planShootPKI(pki, parameters, NOW);
    expect(plan.issue).toEqual([]);
    expect(plan.nextRenewal!.getTime()).toBeGreaterThan(later(0.9).getTime());
    expect(plan.nextRenewal!.getTime()).toBeLessThan(later(1.1).getTime());
  });

  it.each([
    ['a lost key', { 'kube-proxy.key': '' }, ['kube-proxy missing']],
    ['a key of another', { 'kube-proxy.key': pki['admin.key']! }, ['kube-proxy damaged']],
    ['nonsense', { 'kube-proxy.crt': 'x' }, ['kube-proxy damaged']],
    ['a lost service account key', { 'sa.key': '' }, ['sa missing']],
    ['a lost authority', { 'ca-etcd.key': '' }, ['ca-etcd missing', 'etcd authority', 'etcd-client authority']],
  ])('%s', (_, change, expected) => expect(planned({ ...pki, ...change })).toEqual(expected));

  it('follows addresses: more etcd members, another API server address', () => {
    expect(planned(pki, NOW, pkiParameters(controlPlane(3)))).toEqual(['etcd changed']);
    expect(planned(pki, NOW, { ...parameters, apiServerAddress: '10.1.0.99' })).toEqual(['kube-apiserver changed']);
  });

  it("includes the cluster's names in the API server's certificate, and renews nothing without names", async () => {
    const named = { ...controlPlane(), hostNames: ['api.shop.example.com'] };
    expect(planned(pki, NOW, pkiParameters(named))).toEqual(['kube-apiserver changed']);
    const certificate = new X509Certificate((await pkiOf(named))['kube-apiserver.crt']!);
    expect(certificate.checkHost('api.shop.example.com')).toBeDefined();
    expect(new X509Certificate(pki['kube-apiserver.crt']!).subjectAltName).not.toContain('example.com');
  });

  it('includes names beside the address in the kubeconfig, which keeps using the address', () => {
    const names = { external: 'api.shop.example.com' };
    const text = adminKubeconfig(controlPlane(), pki, names);
    expect(parseUntrustedKubeconfig(text).server).toBe('https://10.1.0.10:6443');
    expect(text).toContain('current-context: demo\n');
    expect(text).toContain('server: https://api.shop.example.com:6443');
    expect(text).toContain('name: demo-external');
    expect(adminKubeconfig(controlPlane(), pki)).not.toContain('external');
  });

  it('issues only CAs for more than 60 days, and no certificate with irrevocable rights', () => {
    for (const [id, cert] of Object.entries(pki).filter(([file]) => file.endsWith('.crt'))) {
      const { ca, subject, validToDate } = new X509Certificate(cert);
      if (!ca) expect([id, +validToDate <= +later(60)]).toEqual([id, true]);
      expect(subject).not.toContain('system:masters');
    }
  });

  it("renews the admin's after a day, other leaves after 48, CAs 30 days before expiry", () => {
    expect(planned(pki, later(0.9))).toEqual([]);
    expect(planned(pki, later(1.1))).toEqual(['admin expiring']);
    expect(planned(pki, later(47))).toEqual(['admin expiring']);
    expect(planned(pki, later(49))).toContain('kubelet-client expiring');
    expect(planned(pki, later(49))).not.toContain('ca expiring');
    expect(planned(pki, later(49)).every((line) => line.endsWith('expiring'))).toBe(true);
    expect(planned(pki, later(3621))).toContain('ca expiring');
  });

  it('replaces a 90-day certificate of an older operator within a day', async () => {
    const ca = { cert: pki['ca.crt']!, key: pki['ca.key']! };
    const old = await issue(ca, {
      commonName: 'coppice:admin',
      organizations: ['coppice:admins'],
      usages: ['client'],
      days: 90,
      now: NOW,
    });
    expect(planned({ ...pki, 'admin.crt': old.cert, 'admin.key': old.key }, later(1))).toEqual(['admin expiring']);
  });

  it('leaves a daily reader, or one with its operator down for five days, never without a valid certificate', async () => {
    let data = pki;
    let held = data['admin.crt']!;
    const seen = new Set([held]);
    for (let hour = 6; hour <= 30 * 24; hour += 6) {
      const now = later(hour / 24);
      const isAway = hour > 10 * 24 && hour <= 15 * 24;
      if (!isAway) data = await issueShootPKI(data, planShootPKI(data, parameters, now), parameters, now);
      if (hour % 24 === 0) held = data['admin.crt']!;
      seen.add(held);
      const { validFromDate, validToDate } = new X509Certificate(held);
      expect(+validFromDate <= +now && +now < +validToDate, `a valid certificate after ${hour} h`).toBe(true);
      expect(+validToDate - +validFromDate).toBeLessThan(7.1 * 24 * 3600_000);
      expect(issuedBy(held, data['ca.crt']!)).toBe(true);
    }
    expect(seen.size).toBeGreaterThan(20);
  });

  it('replaces a leaf of another CA', async () => {
    const other = await createCA({ commonName: 'ca-front-proxy', days: 3650, now: NOW });
    const swapped = { ...pki, 'ca-front-proxy.crt': other.cert, 'ca-front-proxy.key': other.key };
    expect(planned(swapped)).toEqual(['front-proxy-client authority']);
  });
});

describe('issueShootPKI', () => {
  it('issues the plan and keeps the rest', async () => {
    const grown = pkiParameters(controlPlane(3));
    const data = await issueShootPKI(pki, planShootPKI(pki, grown, NOW), grown, NOW);
    expect(planShootPKI(data, grown, NOW).issue).toEqual([]);
    const changed = Object.keys(data).filter((key) => data[key] !== pki[key]);
    expect(changed.sort()).toEqual(['etcd.crt', 'etcd.key']);
  });

  it('renews a CA without invalidating what it signed', async () => {
    const plan = { issue: [{ id: 'ca', reason: 'expiring' as const }] };
    const data = await issueShootPKI(pki, plan, parameters, later(3621));
    expect(data['ca.key']).toBe(pki['ca.key']);
    expect(data['ca.crt']).not.toBe(pki['ca.crt']);
    expect(issuedBy(data['admin.crt']!, data['ca.crt']!)).toBe(true);
  });

  it('includes every name of the API server', () => {
    expect(
      certificateMatches(pki['kube-apiserver.crt']!, {
        commonName: 'kube-apiserver',
        dnsNames: [
          'kubernetes',
          'kubernetes.default',
          'kubernetes.default.svc',
          'kubernetes.default.svc.cluster.local',
          'localhost',
        ],
        ipAddresses: ['10.1.0.10', '100.96.0.1', '127.0.0.1'],
        usages: ['server'],
      }),
    ).toBe(true);
  });
});
