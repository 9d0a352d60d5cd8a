import type { Readable } from 'node:stream';
import { CoppiceError, dependencyNotReady } from '../../operator/api/errors.ts';
import type { BackupBuckets, BackupContext, BackupObject } from '../backup.ts';
import {
  backupTags,
  brokenPromises,
  checkedKey,
  isAsWanted,
  KEPT_DAYS,
  noSuchObject,
  notEmpty,
  refuseForeign,
  refuseTooLarge,
} from '../bucket-objects.ts';
import { type Transfer, type Transferred, transfer } from '../bucket-transfer.ts';
import { eachPage } from '../pages.ts';
import { credentialsOf } from './credentials.ts';
import { callGoogle, type Endpoints, googleRefusal } from './google-api.ts';
import { accessToken } from './token.ts';

/** Context of a call. */
interface Storage {
  ctx: BackupContext;
  base: string;
  token: string;
}

interface Bucket {
  labels?: Record<string, string>;
  iamConfiguration?: { publicAccessPrevention?: string; uniformBucketLevelAccess?: { enabled?: boolean } };
  versioning?: { enabled?: boolean };
}

interface Objects {
  items?: { name: string; size: string; generation: string }[];
  nextPageToken?: string;
}

/**
 * Buckets in Cloud Storage (JSON API, storage/v1). Encryption at rest and TLS are always on; access is by IAM only,
 * never public. `endpoints`: Google's endpoints for the profile.
 */
export function cloudStorageBuckets(endpoints: (ctx: BackupContext) => Endpoints): BackupBuckets {
  const open = async (ctx: BackupContext): Promise<Storage> => {
    const at = endpoints(ctx);
    return { ctx, base: at.storage, token: (await accessToken(ctx, at)).token };
  };
  return {
    inCloud: true,
    async ensure(ctx) {
      const storage = await open(ctx);
      const found = await ours(storage);
      if (found && isAsWanted(found.labels ?? {}, ctx.bucket)) return;
      if (found) refuseForeign(found.labels ?? {}, ctx.bucket);
      const { project } = credentialsOf(ctx.account, ctx.profile);
      // Created with all settings in one request, so it is never less protected.
      if (!found)
        await json(storage, 'POST', '/b', { project }, { name: ctx.bucket.name, location: ctx.region, ...wanted(ctx) });
      else await json(storage, 'PATCH', `/b/${ctx.bucket.name}`, {}, wanted(ctx));
    },
    async differences(ctx) {
      const { iamConfiguration: access, versioning } = (await ours(await open(ctx))) ?? {};
      return brokenPromises({
        'public access is not prevented': access?.publicAccessPrevention === 'enforced',
        'access is not by IAM alone (uniform bucket-level access)': access?.uniformBucketLevelAccess?.enabled,
        'versions are not kept': versioning?.enabled,
      });
    },
    async remove(ctx, { withContents = false } = {}) {
      const storage = await open(ctx);
      const found = await ours(storage);
      if (!found) return;
      refuseForeign(found.labels ?? {}, ctx.bucket);
      const objects = await list(storage, '');
      if (objects.length > 0 && !withContents) throw notEmpty(ctx.bucket, objects.length);
      for (const { key, generation } of await list(storage, '', true))
        await json(storage, 'DELETE', objectPath(ctx, key), { generation });
      await json(storage, 'DELETE', `/b/${ctx.bucket.name}`);
    },
    async put(ctx, key, content) {
      refuseTooLarge(content, key);
      const storage = await open(ctx);
      const query = new URLSearchParams({ uploadType: 'media', name: checkedKey(key) });
      const url = `${storage.base}/upload/storage/v1/b/${ctx.bucket.name}/o?${query}`;
      const headers = { 'content-type': 'application/octet-stream' };
      const answer = await moved(storage, { method: 'POST', url, headers, content });
      const stored = JSON.parse(await answer.body.text()) as { md5Hash?: string };
      if (stored.md5Hash === content.md5) return;
      await json(storage, 'DELETE', objectPath(ctx, key));
      throw dependencyNotReady(`what arrived in bucket ${ctx.bucket.name} as ${key} is not what was sent`);
    },
    list: async (ctx, prefix) => (await list(await open(ctx), prefix)).map(({ key, size }) => ({ key, size })),
    async get(ctx, key): Promise<Readable> {
      const storage = await open(ctx);
      const url = `${storage.base}/storage/v1${objectPath(ctx, checkedKey(key))}?alt=media`;
      const answer = await moved(storage, { method: 'GET', url, headers: {} }, noSuchObject(ctx.bucket, key));
      return answer.body;
    },
    async delete(ctx, key) {
      await json(await open(ctx), 'DELETE', objectPath(ctx, checkedKey(key)));
    },
  };
}

const objectPath = ({ bucket }: BackupContext, key: string): string => `/b/${bucket.name}/o/${encodeURIComponent(key)}`;

/** Deleted objects are kept as noncurrent generations; soft delete would store and bill them a second time. */
const wanted = ({ bucket }: BackupContext) => ({
  labels: backupTags(bucket),
  iamConfiguration: { uniformBucketLevelAccess: { enabled: true }, publicAccessPrevention: 'enforced' },
  versioning: { enabled: true },
  lifecycle: { rule: [{ action: { type: 'Delete' }, condition: { daysSinceNoncurrentTime: KEPT_DAYS } }] },
  softDeletePolicy: { retentionDurationSeconds: '0' },
});

/** The bucket, if it is in the project: bucket names are global, and a foreign one is not found here. */
async function ours(storage: Storage): Promise<Bucket | undefined> {
  const { ctx } = storage;
  const { project } = credentialsOf(ctx.account, ctx.profile);
  const answer = await json<{ items?: (Bucket & { name: string })[] }>(storage, 'GET', '/b', {
    project,
    prefix: ctx.bucket.name,
  });
  return answer?.items?.find(({ name }) => name === ctx.bucket.name);
}

/** `versions`: includes deleted and overwritten objects. */
async function list(
  storage: Storage,
  prefix: string,
  versions = false,
): Promise<(BackupObject & { generation: string })[]> {
  const objects: (BackupObject & { generation: string })[] = [];
  await eachPage(`objects of bucket ${storage.ctx.bucket.name}`, async (pageToken) => {
    const query = { prefix, ...(versions && { versions: 'true' }), ...(pageToken !== undefined && { pageToken }) };
    const page = await json<Objects>(storage, 'GET', `/b/${storage.ctx.bucket.name}/o`, query);
    if (page === undefined) throw missing(storage.ctx);
    for (const { name, size, generation } of page.items ?? [])
      objects.push({ key: name, size: Number(size), generation });
    return page.nextPageToken;
  });
  return objects;
}

const missing = ({ bucket }: BackupContext): CoppiceError =>
  new CoppiceError('ERR_INFRA_DEPENDENCIES', `there is no bucket ${bucket.name}`);

const json = <T>(
  { ctx, base, token }: Storage,
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  path: string,
  query: Record<string, string> = {},
  body?: object,
): Promise<T | undefined> =>
  callGoogle<T>(
    {
      method,
      url: `${base}/storage/v1${path}?${new URLSearchParams(query)}`,
      token,
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      what: `Google for bucket ${ctx.bucket.name}`,
      signal: ctx.signal,
    },
    { absent: method === 'GET' || method === 'DELETE' },
  );

async function moved(
  { ctx, token }: Storage,
  request: Omit<Transfer, 'what' | 'signal'>,
  absent?: CoppiceError,
): Promise<Transferred> {
  const what = `Google for bucket ${ctx.bucket.name}`;
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  const answer = await transfer({ ...request, headers, what, signal: ctx.signal });
  if (answer.status < 300) return answer;
  const text = await answer.body.text();
  throw answer.status === 404 && absent ? absent : googleRefusal(what, { ...answer, text });
}
