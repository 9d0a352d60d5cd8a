import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { CoppiceError, dependencyNotReady } from '../../operator/api/errors.ts';
import { childrenAt, parseRoot, textAt } from '../aws/xml.ts';
import type { BackupBucket, BackupBuckets, BackupContext, BackupObject } from '../backup.ts';
import {
  BACKUP_TAGS,
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
import { callAzure, type Endpoints } from './arm.ts';
import { credentialsOf } from './credentials.ts';
import { classify } from './errors.ts';
import { entraToken, managementScope } from './token.ts';

/** api-version of Microsoft.Storage and of resource groups (Azure REST API reference). */
const STORAGE_API = '2023-05-01';
const GROUPS_API = '2021-04-01';
/** x-ms-version: since 2019-12-12 a Put Blob may have 5000 MiB. */
const BLOB_API = '2021-12-02';
/**
 * Token scope of all storage accounts in all Azure clouds
 * (learn.microsoft.com/azure/storage/blobs/authorize-access-azure-active-directory).
 */
const BLOB_SCOPE = 'https://storage.azure.com/.default';
const CONTAINER = 'backups';
/** A storage account is created within seconds. */
const MADE_MS = 2 * 60_000;
const LOOK_MS = 2_000;

interface StorageAccount {
  tags?: Record<string, string>;
  properties?: {
    provisioningState?: string;
    primaryEndpoints?: { blob?: string };
    allowBlobPublicAccess?: boolean;
    allowSharedKeyAccess?: boolean;
    supportsHttpsTrafficOnly?: boolean;
    minimumTlsVersion?: string;
  };
}

interface BlobService {
  properties?: { isVersioningEnabled?: boolean; deleteRetentionPolicy?: { enabled?: boolean } };
}

/** Context of Resource Manager calls for one bucket. */
interface Manager {
  ctx: BackupContext;
  endpoints: Endpoints;
  token: string;
  /** Ids of the resource group and its storage account. */
  group: string;
  account: string;
}

/**
 * Storage account names are global and short (3 to 24 letters and digits), so a hash is used; the resource group has
 * the bucket's own name.
 */
export const storageAccountName = ({ name }: Pick<BackupBucket, 'name'>): string =>
  `bkp${createHash('sha256').update(name).digest('hex').slice(0, 21)}`;

/**
 * Buckets in Azure: a container in a storage account in a resource group of its own. Blobs are accessible by Entra ID
 * only (account keys are disabled), so the application needs the role Storage Blob Data Contributor besides the rights
 * to create the account. `endpoints`: Azure's endpoints for the profile.
 */
export function blobBuckets(endpoints: (ctx: BackupContext) => Endpoints): BackupBuckets {
  const open = async (ctx: BackupContext): Promise<Manager> => {
    const where = endpoints(ctx);
    const { subscriptionID } = credentialsOf(ctx.account);
    const group = `/subscriptions/${subscriptionID}/resourceGroups/${ctx.bucket.name}`;
    return {
      ctx,
      endpoints: where,
      token: (await entraToken(ctx, where, managementScope(where))).token,
      group,
      account: `${group}/providers/Microsoft.Storage/storageAccounts/${storageAccountName(ctx.bucket)}`,
    };
  };
  const blobs = async (ctx: BackupContext) => blobsOf(await open(ctx));
  return {
    inCloud: true,
    async ensure(ctx) {
      const arm = await open(ctx);
      const found = await managed<StorageAccount>(arm, 'GET', arm.account);
      if (found && isAsWanted(found.tags ?? {}, ctx.bucket)) return;
      if (found) refuseForeign(found.tags ?? {}, ctx.bucket);
      await settle(arm);
    },
    async differences(ctx) {
      const arm = await open(ctx);
      const [account, service] = await Promise.all([
        managed<StorageAccount>(arm, 'GET', arm.account),
        managed<BlobService>(arm, 'GET', `${arm.account}/blobServices/default`),
      ]);
      const { properties: of } = account ?? {};
      return brokenPromises({
        'public access is not prevented': of?.allowBlobPublicAccess === false,
        'keys of the account are allowed': of?.allowSharedKeyAccess === false,
        'it is reached without TLS': of?.supportsHttpsTrafficOnly,
        'TLS before 1.2 is allowed': ['TLS1_2', 'TLS1_3'].includes(of?.minimumTlsVersion ?? ''),
        'versions are not kept': service?.properties?.isVersioningEnabled,
        'what is deleted is not kept': service?.properties?.deleteRetentionPolicy?.enabled,
      });
    },
    async remove(ctx, { withContents = false } = {}) {
      const arm = await open(ctx);
      const found = await managed<StorageAccount>(arm, 'GET', arm.account);
      if (found) {
        refuseForeign(found.tags ?? {}, ctx.bucket);
        const objects = await list(await blobsOf(arm), '');
        if (objects.length > 0 && !withContents) throw notEmpty(ctx.bucket, objects.length);
      }
      if (await hasOwnGroup(arm)) await managed(arm, 'DELETE', arm.group, undefined, GROUPS_API);
    },
    async put(ctx, key, content) {
      refuseTooLarge(content, key);
      const headers = {
        'x-ms-blob-type': 'BlockBlob',
        'content-type': 'application/octet-stream',
        'content-md5': content.md5,
      };
      const answer = await (await blobs(ctx))({ method: 'PUT', path: `/${checkedKey(key)}`, headers, content });
      answer.body.resume();
    },
    list: async (ctx, prefix) => list(await blobs(ctx), prefix),
    async get(ctx, key): Promise<Readable> {
      const answer = await (await blobs(ctx))({ method: 'GET', path: `/${checkedKey(key)}`, absent: true });
      if (!answer) throw noSuchObject(ctx.bucket, key);
      return answer.body;
    },
    async delete(ctx, key) {
      const answer = await (await blobs(ctx))({ method: 'DELETE', path: `/${checkedKey(key)}`, absent: true });
      answer?.body.resume();
    },
  };
}

/**
 * Whether the resource group exists. A group of that name without this seed's tags is foreign, since tags are set in
 * the creating request: it is neither tagged, used nor deleted. Throws ERR_INFRA_DEPENDENCIES then.
 */
async function hasOwnGroup(arm: Manager): Promise<boolean> {
  const { bucket } = arm.ctx;
  const found = await managed<{ tags?: Record<string, string> }>(arm, 'GET', arm.group, undefined, GROUPS_API);
  if (!found || found.tags?.[BACKUP_TAGS.seedUID] === bucket.seedUID) return found !== undefined;
  throw new CoppiceError(
    'ERR_INFRA_DEPENDENCIES',
    `resource group ${bucket.name} lacks the tags of seed ${bucket.seed}: Coppice takes it for somebody else's`,
    { advice: `If it is the seed's, tag it ${BACKUP_TAGS.seedUID}=${bucket.seedUID}; otherwise rename or delete it.` },
  );
}

/** Creates everything in order of dependency; the tags, set last, mark completion. */
async function settle(arm: Manager): Promise<void> {
  const { ctx, group, account } = arm;
  const { bucket, region } = ctx;
  const { [BACKUP_TAGS.settings]: _, ...owner } = backupTags(bucket);
  if (!(await hasOwnGroup(arm))) await managed(arm, 'PUT', group, { location: region, tags: owner }, GROUPS_API);
  await managed(arm, 'PUT', account, {
    location: region,
    kind: 'StorageV2',
    sku: { name: 'Standard_LRS' },
    tags: owner,
    properties: {
      allowBlobPublicAccess: false,
      allowSharedKeyAccess: false,
      defaultToOAuthAuthentication: true,
      minimumTlsVersion: 'TLS1_2',
      supportsHttpsTrafficOnly: true,
      encryption: { keySource: 'Microsoft.Storage', services: { blob: { enabled: true } } },
    },
  });
  await made(arm);
  const retention = { enabled: true, days: KEPT_DAYS };
  await managed(arm, 'PUT', `${account}/blobServices/default`, {
    properties: {
      isVersioningEnabled: true,
      deleteRetentionPolicy: retention,
      containerDeleteRetentionPolicy: retention,
    },
  });
  await managed(arm, 'PUT', `${account}/managementPolicies/default`, {
    properties: {
      policy: {
        rules: [
          {
            name: 'coppice',
            enabled: true,
            type: 'Lifecycle',
            definition: {
              filters: { blobTypes: ['blockBlob'] },
              actions: { version: { delete: { daysAfterCreationGreaterThan: KEPT_DAYS } } },
            },
          },
        ],
      },
    },
  });
  await managed(arm, 'PUT', `${account}/blobServices/default/containers/${CONTAINER}`, {
    properties: { publicAccess: 'None' },
  });
  await managed(arm, 'PATCH', account, { tags: backupTags(bucket) });
}

/** Waits until the account exists: its creation is accepted long before. */
async function made(arm: Manager): Promise<void> {
  const deadline = Date.now() + MADE_MS;
  for (;;) {
    const found = await managed<StorageAccount>(arm, 'GET', arm.account);
    if (found?.properties?.provisioningState === 'Succeeded') return;
    if (Date.now() > deadline)
      throw dependencyNotReady(`storage account ${storageAccountName(arm.ctx.bucket)} is not there yet`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    arm.ctx.signal.throwIfAborted();
  }
}

const managed = <T>(
  { ctx, endpoints, token }: Manager,
  method: 'GET' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  body?: object,
  version = STORAGE_API,
): Promise<T | undefined> =>
  callAzure<T>(
    {
      method,
      url: `${endpoints.management}${path}?api-version=${version}`,
      token,
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      what: `Azure for bucket ${ctx.bucket.name}`,
      signal: ctx.signal,
    },
    { absent: method === 'GET' || method === 'DELETE' },
  );

interface BlobRequest {
  method: 'GET' | 'PUT' | 'DELETE';
  /** Path within the container. */
  path?: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  content?: Transfer['content'];
}

/** Returns undefined for 404 where `absent` permits it. */
interface Blobs {
  (request: BlobRequest & { absent?: false }): Promise<Transferred>;
  (request: BlobRequest & { absent: true }): Promise<Transferred | undefined>;
}

/** Requests to the container. Its URL comes from Resource Manager, since it differs between clouds. */
async function blobsOf(arm: Manager): Promise<Blobs> {
  const { ctx, endpoints, account } = arm;
  const found = await managed<StorageAccount>(arm, 'GET', account);
  const base = found?.properties?.primaryEndpoints?.blob?.replace(/\/$/, '');
  if (base === undefined)
    throw new CoppiceError('ERR_INFRA_DEPENDENCIES', `there is no storage account for bucket ${ctx.bucket.name}`);
  const { token } = await entraToken(ctx, endpoints, BLOB_SCOPE);
  const what = `Azure for bucket ${ctx.bucket.name}`;
  return (async ({
    method,
    path = '',
    query = {},
    headers = {},
    content,
    absent,
  }: BlobRequest & { absent?: boolean }) => {
    const answer = await transfer({
      method,
      url: `${base}/${CONTAINER}${path}?${new URLSearchParams(query)}`,
      headers: { ...headers, authorization: `Bearer ${token}`, 'x-ms-version': BLOB_API },
      content,
      what,
      signal: ctx.signal,
    });
    if (answer.status < 300) return answer;
    const text = await answer.body.text();
    if (absent && answer.status === 404) return undefined;
    throw refusal(what, answer.status, text);
  }) as Blobs;
}

/** The error in Blob Storage's refusal: XML, where Resource Manager uses JSON. */
function refusal(what: string, status: number, text: string): CoppiceError {
  const error = parseRoot(text);
  const [azureCode, message] = [textAt(error, 'Code'), textAt(error, 'Message').split('\n')[0]!.slice(0, 300)];
  const code = classify(azureCode) ?? classify(`HTTP ${status}`) ?? 'ERR_RETRYABLE_INFRA_DEPENDENCIES';
  const said = [azureCode || `HTTP ${status}`, message].filter(Boolean).join(': ');
  const mayNot = code === 'ERR_INFRA_UNAUTHORIZED';
  return new CoppiceError(code, `${what}: ${said}`, {
    ...(mayNot && { advice: 'Grant the application the role Storage Blob Data Contributor.' }),
  });
}

async function list(blobs: Blobs, prefix: string): Promise<BackupObject[]> {
  const objects: BackupObject[] = [];
  await eachPage(`blobs under ${prefix}`, async (marker) => {
    const query = { restype: 'container', comp: 'list', prefix, ...(marker && { marker }) };
    const answer = await blobs({ method: 'GET', query });
    const result = parseRoot(await answer.body.text());
    if (result === undefined)
      throw dependencyNotReady("what answered Azure's List Blobs is not Azure: is there a proxy in between?");
    for (const blob of childrenAt(result, 'Blob', 'Blobs'))
      objects.push({ key: textAt(blob, 'Name'), size: Number(textAt(blob, 'Properties', 'Content-Length')) });
    return textAt(result, 'NextMarker');
  });
  return objects;
}
