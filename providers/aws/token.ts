import { writeKubeconfigText } from '../../operator/pki/kubeconfig.ts';
import type { CloudKubeconfig, ManagedClusterOutputs } from '../cloud.ts';
import { awsHostOf } from './partitions.ts';
import { type AccessKey, presignUrl } from './sigv4.ts';

/**
 * Validity of EKS tokens: EKS accepts a presigned STS request as a bearer token for 15 minutes from its signature,
 * whatever its X-Amz-Expires; a minute is a margin. Source: kubernetes-sigs/aws-iam-authenticator, pkg/token/token.go.
 */
const LIFE_MS = 14 * 60_000;
const PREFIX = 'k8s-aws-v1.';
/** Limit of old authenticators. */
const EXPIRES_SECONDS = 60;

/** A bearer token for EKS' API server, computed without a CLI tool or request. */
export async function eksToken(
  clusterName: string,
  region: string,
  key: AccessKey,
  now: Date,
): Promise<{ token: string; expiresAt: string }> {
  const url = new URL(`https://${awsHostOf('sts', region)}/?Action=GetCallerIdentity&Version=2011-06-15`);
  const request = { method: 'GET', url, headers: { 'x-k8s-aws-id': clusterName } };
  const text = await presignUrl(request, key, { service: 'sts', region, now, expiresSeconds: EXPIRES_SECONDS });
  return {
    token: PREFIX + Buffer.from(text).toString('base64url'),
    expiresAt: new Date(now.getTime() + LIFE_MS).toISOString(),
  };
}

/** A kubeconfig with such a token in it. */
export async function eksKubeconfig(
  cluster: ManagedClusterOutputs,
  region: string,
  key: AccessKey,
  now: Date,
): Promise<CloudKubeconfig> {
  const { token, expiresAt } = await eksToken(cluster.name, region, key, now);
  const { name, endpoint: server, certificateAuthority: ca } = cluster;
  return { kubeconfig: writeKubeconfigText({ server, ca, token, name, user: 'coppice' }), expiresAt };
}
