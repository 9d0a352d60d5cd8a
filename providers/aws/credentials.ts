import { CoppiceError } from '../../operator/api/errors.ts';
import { checkedRegion } from '../../operator/api/region.ts';
import type { CloudAccount } from '../cloud.ts';
import type { AccessKey } from './sigv4.ts';

/** Identity and proof of a caller. */
export interface AwsCredentials {
  /** Absent with workload identity, which `token` proves. */
  key?: AccessKey;
  /** Role assumed for all calls. */
  role?: string;
  /** Token of an identity provider that the role trusts. */
  token?: string;
  /** Region of the STS that receives the token. Absent: the cluster's region. */
  stsRegion?: string;
}

const ROLE = /^arn:[a-z-]+:iam::\d{12}:role\/[\w+=,.@/-]+$/;

const REGION = /^[a-z]{2,}(-[a-z]+)+-\d+$/;

/** Rejects truncated and multi-line values, since they become part of a header. */
const ACCESS_KEY_ID = /^\w{16,128}$/;

const unusable = (message: string, advice: string): CoppiceError =>
  new CoppiceError('ERR_INFRA_UNAUTHENTICATED', message, { advice });

/**
 * Keys of the Secret with Gardener's names: accessKeyID and secretAccessKey (provider-aws pkg/aws/types.go), with
 * sessionToken for temporary ones; or roleARN and token with workload identity. roleARN beside an access key: the role
 * is assumed. Throws ERR_INFRA_UNAUTHENTICATED when one is missing or malformed.
 */
export function credentialsOf({ credentials }: CloudAccount): AwsCredentials {
  const { accessKeyID, secretAccessKey, sessionToken, roleARN, token, stsRegion } = trimmed(credentials);
  if (roleARN && !ROLE.test(roleARN)) {
    throw unusable('roleARN of the AWS credentials is no ARN of a role', 'Correct roleARN in the Secret.');
  }
  if (roleARN && token && !accessKeyID)
    return { role: roleARN, token, ...(stsRegion && { stsRegion: checkedSTSRegion(stsRegion) }) };
  const missing = Object.entries({ accessKeyID, secretAccessKey }).filter(([, value]) => !value);
  if (!accessKeyID || !secretAccessKey) {
    throw unusable(
      `the AWS credentials lack ${missing.map(([name]) => name).join(' and ')}`,
      'The Secret needs the keys accessKeyID and secretAccessKey, or roleARN and token with workload identity.',
    );
  }
  if (!ACCESS_KEY_ID.test(accessKeyID)) {
    throw unusable('accessKeyID of the AWS credentials is no access key id', 'Correct accessKeyID in the Secret.');
  }
  const key = { accessKeyID, secretAccessKey, ...(sessionToken && { sessionToken }) };
  return { key, ...(roleARN && { role: roleARN }) };
}

/** Validates a region that becomes part of a host name. */
function checkedSTSRegion(region: string): string {
  if (REGION.test(region)) return region;
  throw unusable('stsRegion of the AWS credentials is no region', 'Correct stsRegion, or leave it out.');
}

/** Trims values: Secrets are often created from files with a trailing newline. */
const trimmed = (credentials: Readonly<Record<string, string>>): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(credentials).map(([name, value]) => [name, value.trim()]));

/** Environment with the plugin aws's credentials. Source: AWS SDKs and tools reference guide, "Access keys". */
export const pluginEnvironment = ({
  accessKeyID,
  secretAccessKey,
  sessionToken,
}: AccessKey): Record<string, string> => ({
  AWS_ACCESS_KEY_ID: accessKeyID,
  AWS_SECRET_ACCESS_KEY: secretAccessKey,
  ...(sessionToken && { AWS_SESSION_TOKEN: sessionToken }),
});

/** Further environment of the plugin: the region, and no other credential sources of this machine. */
export const pluginSettings = (region: string): Record<string, string> => ({
  AWS_REGION: checkedRegion(region),
  AWS_EC2_METADATA_DISABLED: 'true',
  AWS_CONFIG_FILE: '/dev/null',
  AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
});
