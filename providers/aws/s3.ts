import type { Readable } from 'node:stream';
import { text as wholeText } from 'node:stream/consumers';
import { CoppiceError } from '../../operator/api/errors.ts';
import type { BackupBucket, BackupBuckets, BackupContent, BackupContext, BackupObject } from '../backup.ts';
import {
  backupTags,
  brokenPromises,
  checkedKey,
  contentOf,
  isAsWanted,
  KEPT_DAYS,
  noSuchObject,
  notEmpty,
  refuseForeign,
  refuseTooLarge,
} from '../bucket-objects.ts';
import { transfer } from '../bucket-transfer.ts';
import { eachPage } from '../pages.ts';
import { type AwsConnection, awsCodeOf, awsRefusal, codeAndMessage, noAnswer, query } from './api.ts';
import { awsHostOf, partitionOf } from './partitions.ts';
import { type AccessKey, asSigned, pathOfKey, signHeaders } from './sigv4.ts';
import { childrenAt, type Element, parseRoot, textAt } from './xml.ts';

/** An S3 bucket with its connection. */
type S3 = AwsConnection & { key: AccessKey; bucket: BackupBucket; account?: string };

interface Ask {
  method: 'GET' | 'PUT' | 'DELETE';
  /** Permission name, for example s3:PutObject. */
  action: string;
  key?: string;
  query?: Record<string, string>;
  /** XML or JSON. */
  body?: string;
  content?: BackupContent;
}

const PUBLIC_ACCESS_BLOCKS = ['BlockPublicAcls', 'IgnorePublicAcls', 'BlockPublicPolicy', 'RestrictPublicBuckets'];
/** Statement of the bucket policy that denies requests without TLS. */
const TLS_ONLY = 'TLSOnly';
/** S3's error codes for a removed setting. */
const UNSET = ['NoSuchPublicAccessBlockConfiguration', 'NoSuchBucketPolicy'];

/** XML namespace of S3's documents. */
const NAMESPACE = 'http://s3.amazonaws.com/doc/2006-03-01/';

/** S3 buckets (Amazon S3 API Reference, 2006-03-01). `connect` opens the account. */
export function s3Buckets(connect: (ctx: BackupContext) => Promise<AwsConnection & { key: AccessKey }>): BackupBuckets {
  const owners = new Map<string, { keyID: string; account: string }>();
  const open = async (ctx: BackupContext): Promise<S3> => {
    const aws = await connect(ctx);
    const { bucket } = ctx;
    const keyID = aws.key.accessKeyID;
    const known = owners.get(bucket.name);
    // A key belongs to one account for ever; its validity is checked by each call.
    const account = known?.keyID === keyID ? known.account : await accountOf(aws);
    owners.set(bucket.name, { keyID, account });
    return { ...aws, bucket, account };
  };
  const list = async (s3: S3, prefix: string): Promise<BackupObject[]> => {
    const objects: BackupObject[] = [];
    await eachPage(`objects of bucket ${s3.bucket.name}`, async (token) => {
      const more: Record<string, string> = token === undefined ? {} : { 'continuation-token': token };
      const query = { 'list-type': '2', prefix, ...more };
      const result = await document(s3, { method: 'GET', action: 's3:ListBucket', query });
      for (const one of childrenAt(result, 'Contents'))
        objects.push({ key: textAt(one, 'Key'), size: Number(textAt(one, 'Size')) });
      return textAt(result, 'NextContinuationToken');
    });
    return objects;
  };
  return {
    inCloud: true,
    async ensure(ctx) {
      const s3 = await open(ctx);
      const tags = await tagsOf(s3);
      if (tags && isAsWanted(tags, ctx.bucket)) return;
      if (tags) refuseForeign(tags, ctx.bucket);
      else await create(s3);
      await settle(s3);
    },
    async differences(ctx) {
      const s3 = await open(ctx);
      const [access, versioning, policy] = await Promise.all([
        setting(document, s3, 'publicAccessBlock', 's3:GetBucketPublicAccessBlock'),
        setting(document, s3, 'versioning', 's3:GetBucketVersioning'),
        setting(asked, s3, 'policy', 's3:GetBucketPolicy'),
      ]);
      return brokenPromises({
        'public access is not blocked': PUBLIC_ACCESS_BLOCKS.every((block) => textAt(access, block) === 'true'),
        'versions are not kept': textAt(versioning, 'Status') === 'Enabled',
        'it is reached without TLS': policy?.includes(`"${TLS_ONLY}"`),
      });
    },
    async remove(ctx, { withContents = false } = {}) {
      const s3 = await open(ctx);
      const tags = await tagsOf(s3);
      if (!tags) return;
      refuseForeign(tags, ctx.bucket);
      const objects = await list(s3, '');
      if (objects.length > 0 && !withContents) throw notEmpty(ctx.bucket, objects.length);
      await removeVersions(s3);
      await asked(s3, { method: 'DELETE', action: 's3:DeleteBucket' });
    },
    async put(ctx, key, content) {
      refuseTooLarge(content, key);
      await asked(await open(ctx), { method: 'PUT', action: 's3:PutObject', key: checkedKey(key), content });
    },
    list: async (ctx, prefix) => list(await open(ctx), prefix),
    async get(ctx, key) {
      try {
        return await stream(await open(ctx), { method: 'GET', action: 's3:GetObject', key: checkedKey(key) });
      } catch (error) {
        throw awsCodeOf(error) === 'NoSuchKey' ? noSuchObject(ctx.bucket, key) : error;
      }
    },
    async delete(ctx, key) {
      await asked(await open(ctx), { method: 'DELETE', action: 's3:DeleteObject', key: checkedKey(key) });
    },
  };
}

/** Bucket names are global: with the account in a header, S3 refuses a bucket of another account. */
async function accountOf(aws: AwsConnection & { key: AccessKey }): Promise<string> {
  return textAt(await query(aws, 'sts', 'GetCallerIdentity'), 'GetCallerIdentityResult', 'Account');
}

/** Tags of the bucket; undefined when it does not exist. */
async function tagsOf(s3: S3): Promise<Record<string, string> | undefined> {
  try {
    const tagging = await document(s3, { method: 'GET', action: 's3:GetBucketTagging', query: { tagging: '' } });
    const tags = childrenAt(tagging, 'Tag', 'TagSet');
    return Object.fromEntries(tags.map((tag) => [textAt(tag, 'Key'), textAt(tag, 'Value')]));
  } catch (error) {
    // Created, but interrupted before it was tagged.
    if (awsCodeOf(error) === 'NoSuchTagSet') return {};
    if (awsCodeOf(error) === 'NoSuchBucket') return undefined;
    throw error;
  }
}

/** A bucket setting, read by `read`; undefined where it is unset. */
async function setting<T>(
  read: (s3: S3, ask: Ask) => Promise<T>,
  s3: S3,
  subresource: string,
  action: string,
): Promise<T | undefined> {
  try {
    return await read(s3, { method: 'GET', action, query: { [subresource]: '' } });
  } catch (error) {
    if (UNSET.includes(awsCodeOf(error) ?? '')) return undefined;
    throw error;
  }
}

async function create(s3: S3): Promise<void> {
  // us-east-1 is the only region that must be omitted.
  const body =
    s3.region === 'us-east-1'
      ? ''
      : `<CreateBucketConfiguration><LocationConstraint>${s3.region}</LocationConstraint></CreateBucketConfiguration>`;
  const { account: _, ...anybodys } = s3;
  try {
    await asked(anybodys, { method: 'PUT', action: 's3:CreateBucket', ...(body && { body }) });
  } catch (error) {
    if (awsCodeOf(error) !== 'BucketAlreadyOwnedByYou') throw error;
  }
}

/**
 * Applies all security settings; the tags, set last, mark completion. Object ownership enforced (no ACLs) is S3's
 * default.
 */
async function settle(s3: S3): Promise<void> {
  const { id } = partitionOf(s3.region);
  const arn = `arn:${id}:s3:::${s3.bucket.name}`;
  const settings: [subresource: string, action: string, body: string][] = [
    [
      'publicAccessBlock',
      's3:PutBucketPublicAccessBlock',
      `<PublicAccessBlockConfiguration>${PUBLIC_ACCESS_BLOCKS.map((block) => `<${block}>true</${block}>`).join('')}</PublicAccessBlockConfiguration>`,
    ],
    [
      'encryption',
      's3:PutEncryptionConfiguration',
      '<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm>' +
        '</ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>',
    ],
    [
      'versioning',
      's3:PutBucketVersioning',
      '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>',
    ],
    [
      'lifecycle',
      's3:PutLifecycleConfiguration',
      '<LifecycleConfiguration><Rule><ID>coppice</ID><Filter><Prefix></Prefix></Filter><Status>Enabled</Status>' +
        '<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>' +
        `<NoncurrentVersionExpiration><NoncurrentDays>${KEPT_DAYS}</NoncurrentDays></NoncurrentVersionExpiration>` +
        '</Rule></LifecycleConfiguration>',
    ],
    [
      'policy',
      's3:PutBucketPolicy',
      JSON.stringify({
        Version: '2012-10-17',
        Statement: [
          {
            Sid: TLS_ONLY,
            Effect: 'Deny',
            Principal: '*',
            Action: 's3:*',
            Resource: [arn, `${arn}/*`],
            Condition: { Bool: { 'aws:SecureTransport': 'false' } },
          },
        ],
      }),
    ],
    [
      'tagging',
      's3:PutBucketTagging',
      `<Tagging><TagSet>${Object.entries(backupTags(s3.bucket))
        .map(([key, value]) => `<Tag><Key>${key}</Key><Value>${value}</Value></Tag>`)
        .join('')}</TagSet></Tagging>`,
    ],
  ];
  for (const [subresource, action, body] of settings)
    await asked(s3, { method: 'PUT', action, query: { [subresource]: '' }, body });
}

/** Deletes all versions and delete markers: a bucket with any cannot be deleted. */
async function removeVersions(s3: S3): Promise<void> {
  for (;;) {
    const query = { versions: '' };
    const result = await document(s3, { method: 'GET', action: 's3:ListBucketVersions', query });
    const versions = ['Version', 'DeleteMarker'].flatMap((kind) => childrenAt(result, kind));
    if (versions.length === 0) return;
    for (const version of versions) {
      await asked(s3, {
        method: 'DELETE',
        action: 's3:DeleteObjectVersion',
        key: textAt(version, 'Key'),
        query: { versionId: textAt(version, 'VersionId') },
      });
    }
  }
}

const asked = async (s3: S3, ask: Ask): Promise<string> => wholeText(await stream(s3, ask));

/** The root element of the answer. Rejects when something else than S3 answers: an empty list says that there are no backups. */
async function document(s3: S3, ask: Ask): Promise<Element> {
  const root = parseRoot(await asked(s3, ask));
  if (root === undefined) throw noAnswer(ask.action);
  return root;
}

/** Body of the answer. Rejects with a CoppiceError, see awsCodeOf. */
async function stream(
  s3: S3,
  { method, action, key = '', query: parameters = {}, body, content }: Ask,
): Promise<Readable> {
  const { region, bucket, account } = s3;
  const stated = s3.endpoint?.('s3', region);
  const path = pathOfKey(key);
  const unsigned = new URL(
    stated === undefined
      ? `https://${bucket.name}.${awsHostOf('s3', region)}/${path}`
      : `${stated}/${bucket.name}/${path}`,
  );
  for (const [name, value] of Object.entries(parameters)) unsigned.searchParams.set(name, value);
  const url = asSigned(unsigned);
  const payload = content ?? contentOf((body ?? '').replace(/^<(\w+)>/, `<$1 xmlns="${NAMESPACE}">`));
  const headers = {
    'x-amz-content-sha256': payload.sha256,
    ...(method === 'PUT' && { 'content-md5': payload.md5 }),
    ...(account !== undefined && { 'x-amz-expected-bucket-owner': account }),
  };
  const scope = { service: 's3', region, now: s3.now() };
  const answer = await transfer({
    method,
    url,
    headers: await signHeaders({ method, url, headers, body: '' }, s3.key, scope),
    ...(method === 'PUT' && { content: payload }),
    what: `AWS for ${action}`,
    signal: s3.signal,
  });
  if (answer.status < 300) return answer.body;
  throw explained(awsRefusal(action, answer, codeAndMessage(await answer.body.text())), bucket);
}

/** Adds the bucket's name. */
const explained = (error: CoppiceError, { name }: BackupBucket): CoppiceError =>
  new CoppiceError(error.code, `bucket ${name}: ${error.message}`, { advice: error.advice, cause: error.cause });
