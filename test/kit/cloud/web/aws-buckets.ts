import { createHash } from 'node:crypto';
import type { Testbed } from '../model.ts';
import type { Store } from '../store.ts';
import { bucketStore, md5Of, type StoredBucket } from './bucket-store.ts';
import { type Asked, Refused, type Said } from './server.ts';

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

const xml = (body: string): Said => ({ body, headers: { 'content-type': 'application/xml' } });

/** `/bucket/key`; permissions are named as S3's. */
export function s3Action({ method, url }: Asked): string {
  const key = url.pathname.split('/').slice(2).join('/');
  const verb = { GET: 'Get', PUT: 'Put', DELETE: 'Delete' }[method] ?? method;
  if (key !== '') return `s3:${verb}Object`;
  if (method === 'PUT' && url.search === '') return 's3:CreateBucket';
  return url.searchParams.has('list-type') ? 's3:ListBucket' : `s3:${verb}Bucket`;
}

/** S3, path style (Amazon S3 API Reference), as far as Coppice asks it. What was signed and what arrived are compared. */
export function s3(asked: Asked, { caller }: Pick<Testbed, 'caller'>, region: string, store: Store): Said {
  const { method, url, headers, bytes } = asked;
  const [, name = '', ...rest] = url.pathname.split('/');
  const key = decodeURIComponent(rest.join('/'));
  const query = url.searchParams;
  const buckets = bucketStore(store, 'aws');
  if (createHash('sha256').update(bytes).digest('hex') !== headers['x-amz-content-sha256'])
    throw new Refused(400, 'XAmzContentSHA256Mismatch', 'The provided header does not match what was computed.');
  if (headers['content-md5'] !== undefined && headers['content-md5'] !== md5Of(bytes))
    throw new Refused(400, 'BadDigest', 'The Content-MD5 you specified did not match what we received.');
  const found = buckets.get(name);
  const expected = headers['x-amz-expected-bucket-owner'];
  const mayEnter = found?.account === caller.account || found?.settings.open === true;
  if (found && (!mayEnter || (expected ?? found.account) !== found.account)) {
    if (method === 'PUT' && key === '' && url.search === '')
      throw new Refused(409, 'BucketAlreadyExists', 'The requested bucket name is not available.');
    throw new Refused(403, 'AccessDenied', 'Access Denied');
  }
  if (method === 'PUT' && key === '' && url.search === '') return create(found);
  if (!found) throw new Refused(404, 'NoSuchBucket', 'The specified bucket does not exist');
  return key === '' ? ofBucket(found) : ofObject(found);

  function create(known: StoredBucket | undefined): Said {
    if (known && known.account !== caller.account)
      throw new Refused(409, 'BucketAlreadyExists', 'The requested bucket name is not available.');
    if (known) throw new Refused(409, 'BucketAlreadyOwnedByYou', 'Your previous request succeeded and you own it.');
    const constraint = /<LocationConstraint>([^<]+)</.exec(asked.body)?.[1] ?? 'us-east-1';
    if (constraint !== region)
      throw new Refused(400, 'IllegalLocationConstraintException', `The ${constraint} location constraint is wrong.`);
    buckets.make(name, caller.account, region);
    return xml('');
  }

  function ofBucket(bucket: StoredBucket): Said {
    const [setting = ''] = [...query.keys()];
    if (method === 'PUT') {
      bucket.settings[setting] = asked.body;
      buckets.save(bucket);
      return xml('');
    }
    if (method === 'DELETE') {
      if (bucket.objects.length > 0) throw new Refused(409, 'BucketNotEmpty', 'The bucket is not empty.');
      buckets.remove(bucket);
      return { status: 204, body: '' };
    }
    if (query.has('versions')) {
      const versions = bucket.objects.map(({ key: name, version, marker }) => {
        const element = marker ? 'DeleteMarker' : 'Version';
        return `<${element}><Key>${escaped(name)}</Key><VersionId>${version}</VersionId></${element}>`;
      });
      return xml(`<ListVersionsResult>${versions.join('')}</ListVersionsResult>`);
    }
    if (query.has('list-type')) {
      const { objects, next } = buckets.page(bucket, query.get('prefix') ?? '', query.get('continuation-token'));
      const contents = objects.map(
        (one) => `<Contents><Key>${escaped(one.key)}</Key><Size>${one.size}</Size></Contents>`,
      );
      const more = next === undefined ? '' : `<NextContinuationToken>${next}</NextContinuationToken>`;
      return xml(`<ListBucketResult>${contents.join('')}${more}</ListBucketResult>`);
    }
    const said = bucket.settings[setting];
    if (setting === 'tagging' && said === undefined)
      throw new Refused(404, 'NoSuchTagSet', 'The TagSet does not exist');
    if (setting === 'publicAccessBlock' && said === undefined)
      throw new Refused(404, 'NoSuchPublicAccessBlockConfiguration', 'The public access block was not found');
    if (setting === 'policy' && said === undefined)
      throw new Refused(404, 'NoSuchBucketPolicy', 'The bucket policy does not exist');
    if (setting === 'versioning' && said === undefined) return xml('<VersioningConfiguration/>');
    return xml(String(said));
  }

  function ofObject(bucket: StoredBucket): Said {
    const keep = String(bucket.settings.versioning).includes('Enabled');
    if (method === 'PUT') {
      buckets.put(bucket, key, bytes, keep);
      return xml('');
    }
    if (method === 'DELETE') {
      const version = query.get('versionId') ?? undefined;
      buckets.delete(bucket, key, keep, version);
      if (keep && version === undefined) buckets.mark(bucket, key);
      return { status: 204, body: '' };
    }
    const object = buckets.find(bucket, key);
    if (!object) throw new Refused(404, 'NoSuchKey', 'The specified key does not exist.');
    return { body: buckets.bytes(bucket, object), headers: { 'content-type': 'application/octet-stream' } };
  }
}
