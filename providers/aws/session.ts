import { CoppiceError } from '../../operator/api/errors.ts';
import { distrusted, Exchanges } from '../web-identity.ts';
import { type Connection, query } from './api.ts';
import type { Credentials } from './credentials.ts';
import type { AccessKey } from './sigv4.ts';
import { type Element, textAt } from './xml.ts';

/** Shown in CloudTrail and in ARNs of the session. */
const SESSION_NAME = 'coppice';
/** The most that a role allows without being asked to (sts:AssumeRole, DurationSeconds); longer than the longest single create. */
const DURATION_SECONDS = '3600';

const SESSIONS = new Exchanges<AccessKey>();

/**
 * The access key to ask AWS with: the given one, or that of a session with the role, an hour long: one of a
 * token is kept while it is good. Makes nothing that lasts.
 * Throws ERR_INFRA_UNAUTHENTICATED or ERR_INFRA_UNAUTHORIZED when the role is not to be had.
 */
export async function openSession(credentials: Credentials, aws: Omit<Connection, 'key'>): Promise<AccessKey> {
  const { key, role, token } = credentials;
  if (!role) return key!;
  if (token) return webIdentitySession(role, token, { ...aws, region: credentials.stsRegion ?? aws.region });
  const parameters = { RoleArn: role, RoleSessionName: SESSION_NAME, DurationSeconds: DURATION_SECONDS };
  const answer = await query({ ...aws, ...(key && { key }) }, 'sts', 'AssumeRole', parameters);
  return sessionIn(answer, 'AssumeRole', role).key;
}

/** The call is not signed: the token is all the proof there is (AWS STS API Reference, AssumeRoleWithWebIdentity). */
async function webIdentitySession(role: string, token: string, aws: Omit<Connection, 'key'>): Promise<AccessKey> {
  const action = 'AssumeRoleWithWebIdentity';
  const parameters = {
    RoleArn: role,
    RoleSessionName: SESSION_NAME,
    DurationSeconds: DURATION_SECONDS,
    WebIdentityToken: token,
  };
  const where = aws.endpoint?.('sts', aws.region) ?? aws.region;
  return SESSIONS.get([where, role, token], aws.now(), async () => {
    try {
      const { key, expiresAt } = sessionIn(await query(aws, 'sts', action, parameters), action, role);
      return { value: key, expiresAt };
    } catch (error) {
      throw distrusted(
        error,
        token,
        `role ${role}`,
        'an IAM OIDC identity provider for the issuer, and sub and aud in conditions of the trust policy',
      );
    }
  });
}

function sessionIn(answer: Element, action: string, role: string): { key: AccessKey; expiresAt: string } {
  const text = (name: string) => textAt(answer, `${action}Result`, 'Credentials', name);
  const key = {
    accessKeyID: text('AccessKeyId'),
    secretAccessKey: text('SecretAccessKey'),
    sessionToken: text('SessionToken'),
  };
  if (Object.values(key).some((value) => value === '')) {
    throw new CoppiceError('ERR_RETRYABLE_INFRA_DEPENDENCIES', `AWS gave no credentials for role ${role}`);
  }
  return { key, expiresAt: text('Expiration') };
}
