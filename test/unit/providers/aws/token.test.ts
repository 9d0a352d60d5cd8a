import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { openSession } from '../../../../providers/aws/session.ts';
import { eksKubeconfig, eksToken } from '../../../../providers/aws/token.ts';

const key = { accessKeyID: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
const now = new Date('2015-08-30T12:36:00Z');

/** What a tenant may write for a region, so that a host of its own comes of it. */
const FORGED = [
  'evil.example.org/#',
  'x@evil.example.org/',
  'a.evil',
  'a:8443/',
  '',
  '..',
  'a\nb',
  `${'a'.repeat(64)}`,
];

const urlOf = (token: string) => new URL(Buffer.from(token.slice('k8s-aws-v1.'.length), 'base64url').toString());

describe('openSession with a web identity token', () => {
  it.each(FORGED)('contacts no host made from region %j', async (region) => {
    const role = 'arn:aws:iam::123456789012:role/deployer';
    const aws = { region, now: () => now, signal: new AbortController().signal };
    await expect(openSession({ role, token: 'identity-token' }, aws)).rejects.toThrow("part of a host's name");
  });
});

describe('an EKS token', () => {
  it('is a presigned GetCallerIdentity, bound to one cluster, valid for 14 minutes', async () => {
    const { token, expiresAt } = await eksToken('one', 'eu-central-1', key, now);
    expect(token).toMatch(/^k8s-aws-v1\.[A-Za-z0-9_-]+$/);
    expect(expiresAt).toBe('2015-08-30T12:50:00.000Z');
    const url = urlOf(token);
    expect(url.host).toBe('sts.eu-central-1.amazonaws.com');
    expect(url.searchParams.get('Action')).toBe('GetCallerIdentity');
    expect(url.searchParams.get('X-Amz-SignedHeaders')).toBe('host;x-k8s-aws-id');
    const other = urlOf((await eksToken('two', 'eu-central-1', key, now)).token);
    expect(other.searchParams.get('X-Amz-Signature')).not.toBe(url.searchParams.get('X-Amz-Signature'));
  });

  it('uses the STS of its partition', async () => {
    expect(urlOf((await eksToken('one', 'cn-north-1', key, now)).token).host).toBe('sts.cn-north-1.amazonaws.com.cn');
  });

  it.each([
    ['us-iso-east-1', 'sts.us-iso-east-1.c2s.ic.gov'],
    ['us-isob-east-1', 'sts.us-isob-east-1.sc2s.sgov.gov'],
    ['eu-isoe-west-1', 'sts.eu-isoe-west-1.cloud.adc-e.uk'],
    ['us-isof-south-1', 'sts.us-isof-south-1.csp.hci.ic.gov'],
    ['eusc-de-east-1', 'sts.eusc-de-east-1.amazonaws.eu'],
    ['us-gov-west-1', 'sts.us-gov-west-1.amazonaws.com'],
  ])('uses in region %s the STS at %s', async (region, host) => {
    expect(urlOf((await eksToken('one', region, key, now)).token).host).toBe(host);
  });

  it.each(FORGED)('is not issued for a host made from region %j', async (region) => {
    await expect(eksToken('one', region, key, now)).rejects.toThrow("part of a host's name");
  });

  it('is contained in a kubeconfig that needs no command line tool', async () => {
    const cluster = { name: 'one', endpoint: 'https://one.eks.example', certificateAuthority: 'CA\n', version: '1.36' };
    const { kubeconfig, expiresAt } = await eksKubeconfig(cluster, 'eu-central-1', key, now);
    const { token } = await eksToken('one', 'eu-central-1', key, now);
    expect(expiresAt).toBe('2015-08-30T12:50:00.000Z');
    expect(load(kubeconfig)).toMatchObject({
      clusters: [{ cluster: { server: 'https://one.eks.example', 'certificate-authority-data': 'Q0EK' } }],
      users: [{ user: { token } }],
    });
    expect(kubeconfig).not.toContain('exec');
  });
});
