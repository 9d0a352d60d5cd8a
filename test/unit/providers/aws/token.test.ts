import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { eksKubeconfig, eksToken } from '../../../../providers/aws/token.ts';

const key = { accessKeyID: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
const now = new Date('2015-08-30T12:36:00Z');

const urlOf = (token: string) => new URL(Buffer.from(token.slice('k8s-aws-v1.'.length), 'base64url').toString());

describe('EKS token', () => {
  it('is a presigned question who asks, bound to one cluster, good for 14 minutes', () => {
    const { token, expiresAt } = eksToken('one', 'eu-central-1', key, now);
    expect(token).toMatch(/^k8s-aws-v1\.[A-Za-z0-9_-]+$/);
    expect(expiresAt).toBe('2015-08-30T12:50:00.000Z');
    const url = urlOf(token);
    expect(url.host).toBe('sts.eu-central-1.amazonaws.com');
    expect(url.searchParams.get('Action')).toBe('GetCallerIdentity');
    expect(url.searchParams.get('X-Amz-SignedHeaders')).toBe('host;x-k8s-aws-id');
    const other = urlOf(eksToken('two', 'eu-central-1', key, now).token);
    expect(other.searchParams.get('X-Amz-Signature')).not.toBe(url.searchParams.get('X-Amz-Signature'));
  });

  it('asks the STS of its partition', () => {
    expect(urlOf(eksToken('one', 'cn-north-1', key, now).token).host).toBe('sts.cn-north-1.amazonaws.com.cn');
  });

  it('comes in a kubeconfig that needs no command line tool', () => {
    const cluster = { name: 'one', endpoint: 'https://one.eks.example', certificateAuthority: 'CA\n', version: '1.36' };
    const { kubeconfig, expiresAt } = eksKubeconfig(cluster, 'eu-central-1', key, now);
    const { token } = eksToken('one', 'eu-central-1', key, now);
    expect(expiresAt).toBe('2015-08-30T12:50:00.000Z');
    expect(load(kubeconfig)).toMatchObject({
      clusters: [{ cluster: { server: 'https://one.eks.example', 'certificate-authority-data': 'Q0EK' } }],
      users: [{ user: { token } }],
    });
    expect(kubeconfig).not.toContain('exec');
  });
});
