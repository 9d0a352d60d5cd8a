import { CoppiceError } from '../../operator/api/errors.ts';
import type { AccountCheck, Owner } from '../cloud.ts';
import { type AwsConnection, query } from './api.ts';
import { missingPermissions } from './permissions.ts';
import type { AccessKey } from './sigv4.ts';
import { textAt } from './xml.ts';

/**
 * Asks AWS whose the key is, and what it may not do of what `owner` needs. Throws ERR_INFRA_UNAUTHENTICATED when AWS does not
 * know the key, or no longer.
 */
export async function checkAccount(aws: AwsConnection & { key: AccessKey }, owner: Owner): Promise<AccountCheck> {
  const answer = await query(aws, 'sts', 'GetCallerIdentity');
  const id = textAt(answer, 'GetCallerIdentityResult', 'Account');
  const identity = textAt(answer, 'GetCallerIdentityResult', 'Arn');
  if (!id) throw new CoppiceError('ERR_RETRYABLE_INFRA_DEPENDENCIES', 'AWS does not say whose account it is');
  return { id, missing: await missingPermissions(aws, identity, owner) };
}
