import { CoppiceError } from '../../operator/api/errors.ts';
import { type Connection, query } from './api.ts';
import type { Credentials } from './credentials.ts';
import type { AccessKey } from './sigv4.ts';
import { textAt } from './xml.ts';

/** Shown in CloudTrail and in ARNs of the session. */
const SESSION_NAME = 'coppice';
/** The most that a role allows without being asked to (sts:AssumeRole, DurationSeconds); longer than the longest single create. */
const DURATION_SECONDS = '3600';

/**
 * The access key to ask AWS with: the given one, or that of a session with the role, an hour long. Makes nothing that lasts.
 * Throws ERR_INFRA_UNAUTHENTICATED or ERR_INFRA_UNAUTHORIZED when the role is not to be had.
 */
export async function openSession(credentials: Credentials, aws: Omit<Connection, 'key'>): Promise<AccessKey> {
  const { key, role, token } = credentials;
  if (!role) return key!;
  const parameters = { RoleArn: role, RoleSessionName: SESSION_NAME, DurationSeconds: DURATION_SECONDS };
  const action = token ? 'AssumeRoleWithWebIdentity' : 'AssumeRole';
  const answer = token
    ? await query(aws, 'sts', action, { ...parameters, WebIdentityToken: token })
    : await query({ ...aws, ...(key && { key }) }, 'sts', action, parameters);
  const text = (name: string) => textAt(answer, `${action}Result`, 'Credentials', name);
  const session = {
    accessKeyID: text('AccessKeyId'),
    secretAccessKey: text('SecretAccessKey'),
    sessionToken: text('SessionToken'),
  };
  if (Object.values(session).some((value) => value === '')) {
    throw new CoppiceError('ERR_RETRYABLE_INFRA_DEPENDENCIES', `AWS gave no credentials for role ${role}`);
  }
  return session;
}
