import { CoppiceError } from '../../operator/api/errors.ts';
import type { AccountCheck, Owner } from '../cloud.ts';
import { type AwsConnection, query } from './api.ts';
import { missingPermissions } from './permissions.ts';
import type { AccessKey } from './sigv4.ts';
import { textAt } from './xml.ts';

/**
 * Identifies the key's account at AWS, and the permissions missing for `owner`. Throws ERR_INFRA_UNAUTHENTICATED when
 * AWS does not accept the key.
 */
export async function checkAccount(aws: AwsConnection & { key: AccessKey }, owner: Owner): Promise<AccountCheck> {
  const answer = await query(aws, 'sts', 'GetCallerIdentity');
  const id = textAt(answer, 'GetCallerIdentityResult', 'Account');
  const identity = textAt(answer, 'GetCallerIdentityResult', 'Arn');
  if (!id) throw new CoppiceError('ERR_RETRYABLE_INFRA_DEPENDENCIES', 'AWS does not say whose account it is');
  return { id, missing: await missingPermissions(aws, identity, owner) };
}
