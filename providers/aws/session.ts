import { CoppiceError } from '../../operator/api/errors.ts';
import { type Exchanged, Exchanges, explainDistrust } from '../web-identity.ts';
import { type AwsConnection, query } from './api.ts';
import type { AwsCredentials } from './credentials.ts';
import type { AccessKey } from './sigv4.ts';
import { type Element, textAt } from './xml.ts';

/** Visible in CloudTrail and in the session's ARNs. */
const SESSION_NAME = 'coppice';
/** A role's default limit (sts:AssumeRole, DurationSeconds); longer than the longest single creation. */
const DURATION_SECONDS = '3600';

const SESSIONS = new Exchanges<AccessKey>();

/**
 * Access key for AWS calls: the given one, or that of a role session, valid for an hour and cached. Creates nothing
 * permanent. Throws ERR_INFRA_UNAUTHENTICATED or ERR_INFRA_UNAUTHORIZED when the role cannot be assumed.
 */
export async function openSession(credentials: AwsCredentials, aws: Omit<AwsConnection, 'key'>): Promise<AccessKey> {
  const { key, role, token, stsRegion } = credentials;
  if (!role) return key!;
  const region = (token && stsRegion) || aws.region;
  const where = aws.endpoint?.('sts', region) ?? region;
  const proof = token ? ['token', token] : ['key', key!.accessKeyID, key!.secretAccessKey, key!.sessionToken ?? ''];
  return SESSIONS.get([where, role, ...proof], { now: aws.now(), signal: aws.signal }, async (signal) => {
    const asked = { ...aws, region, signal };
    return token ? webIdentitySession(role, token, asked) : assumedSession(role, key!, asked);
  });
}

/** With the key of a user who may assume the role (AWS STS API Reference, AssumeRole). */
async function assumedSession(role: string, key: AccessKey, aws: Omit<AwsConnection, 'key'>) {
  const parameters = { RoleArn: role, RoleSessionName: SESSION_NAME, DurationSeconds: DURATION_SECONDS };
  return sessionIn(await query({ ...aws, key }, 'sts', 'AssumeRole', parameters), 'AssumeRole', role);
}

/** Unsigned: the token is the only proof (AWS STS API Reference, AssumeRoleWithWebIdentity). */
async function webIdentitySession(role: string, token: string, aws: Omit<AwsConnection, 'key'>) {
  const action = 'AssumeRoleWithWebIdentity';
  const parameters = {
    RoleArn: role,
    RoleSessionName: SESSION_NAME,
    DurationSeconds: DURATION_SECONDS,
    WebIdentityToken: token,
  };
  try {
    return sessionIn(await query(aws, 'sts', action, parameters), action, role);
  } catch (error) {
    throw explainDistrust(
      error,
      token,
      `role ${role}`,
      'an IAM OIDC identity provider for the issuer, and sub and aud in conditions of the trust policy',
    );
  }
}

function sessionIn(answer: Element, action: string, role: string): Exchanged<AccessKey> {
  const text = (name: string) => textAt(answer, `${action}Result`, 'Credentials', name);
  const value = {
    accessKeyID: text('AccessKeyId'),
    secretAccessKey: text('SecretAccessKey'),
    sessionToken: text('SessionToken'),
  };
  if (Object.values(value).some((part) => part === '')) {
    throw new CoppiceError('ERR_RETRYABLE_INFRA_DEPENDENCIES', `AWS gave no credentials for role ${role}`);
  }
  return { value, expiresAt: text('Expiration') };
}
