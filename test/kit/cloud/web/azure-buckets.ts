import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Testbed } from '../model.ts';
import type { Store } from '../store.ts';
import { bucketStore, md5Of, type StoredBucket } from './bucket-store.ts';
import { type Asked, Refused, type Said } from './server.ts';

const STORAGE =
  /^\/subscriptions\/([^/]+)\/resourceGroups\/([^/]+)(?:\/providers\/Microsoft\.Storage\/storageAccounts\/([^/]+)(\/.*)?)?$/;

/** Resource groups of buckets, by their ids. */
function groupStore(store: Store) {
  const folder = 'bucket-groups';
  const fileOf = (id: string) => `${createHash('sha256').update(id).digest('hex')}.json`;
  return {
    get: (id: string) => store.readJSON<{ tags?: Record<string, string> }>(folder, fileOf(id)),
    save(id: string, tags: Record<string, string> | undefined) {
      store.writeJSON({ tags }, folder, fileOf(id));
      return { tags };
    },
    remove: (id: string) => rmSync(join(store.dir, folder, fileOf(id)), { force: true }),
  };
}

/** Storage accounts as Resource Manager has them, and their blobs, here under /blob/ACCOUNT; undefined for other paths. */
export function blobStorage(asked: Asked, { caller }: Pick<Testbed, 'caller'>, store: Store): Said | undefined {
  const { method, url, body } = asked;
  const path = decodeURIComponent(url.pathname);
  const buckets = bucketStore(store, 'azure-native');
  const blob = /^\/blob\/([^/]+)\/([^/]+)(?:\/(.+))?$/.exec(path);
  if (blob) return blobs(asked, buckets, caller.account, blob);
  const [, subscription, group = '', account, below] = STORAGE.exec(path) ?? [];
  if (subscription === undefined) return undefined;
  if (account === undefined) {
    // Groups of buckets only: those of clusters are made by the plugin.
    if (!group.startsWith('coppice-backup-')) return undefined;
    const all = groupStore(store);
    if (method === 'PUT') return { body: { id: path, ...all.save(path, JSON.parse(body).tags) } };
    const kept = all.get(path);
    if (!kept) throw new Refused(404, 'ResourceGroupNotFound', `Resource group '${group}' could not be found.`);
    if (method !== 'DELETE') return { body: { id: path, name: group, ...kept } };
    for (const bucket of buckets.all().filter((one) => one.settings.group === group)) buckets.remove(bucket);
    all.remove(path);
    return { status: 202, body: '' };
  }
  const found = buckets.get(account);
  if (found && (found.account !== caller.account || found.settings.group !== group))
    throw new Refused(409, 'StorageAccountAlreadyTaken', `The storage account named ${account} is already taken.`);
  if (below !== undefined) {
    if (!found) throw new Refused(404, 'ParentResourceNotFound', `${account} does not exist.`);
    if (method === 'GET') return { body: { id: path, ...(found.settings[below] as object) } };
    found.settings[below] = JSON.parse(body);
    buckets.save(found);
    return { body: { id: path } };
  }
  if (method === 'PUT' && !found) {
    const given = JSON.parse(body) as { location: string };
    buckets.make(account, caller.account, given.location, { ...given, group });
    // Accepted; whoever looks next finds it made.
    return { status: 202, body: '' };
  }
  if (!found) throw new Refused(404, 'ResourceNotFound', `The Resource '${path}' was not found.`);
  if (method === 'PUT' || method === 'PATCH') {
    found.settings = { ...found.settings, ...(JSON.parse(body) as object) };
    buckets.save(found);
  }
  const endpoint = `${url.origin}/blob/${account}/`;
  const { tags, properties } = found.settings as { tags?: object; properties?: object };
  const properly = { ...properties, provisioningState: 'Succeeded', primaryEndpoints: { blob: endpoint } };
  return { body: { id: path, name: account, location: found.region, tags, properties: properly } };
}

/** Blob Storage's own API speaks XML. */
const said = (status: number, code: string, message: string): Said => ({
  status,
  body: `\uFEFF<?xml version="1.0" encoding="utf-8"?><Error><Code>${code}</Code><Message>${message}\nRequestId:1</Message></Error>`,
  headers: { 'content-type': 'application/xml', 'x-ms-error-code': code },
});

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** Since this version Blob Storage takes tokens of Entra ID ("Authorize with Microsoft Entra ID", Blob Storage REST API). */
const OAUTH_SINCE = '2017-11-09';

function blobs(
  { method, url, headers, bytes }: Asked,
  buckets: ReturnType<typeof bucketStore>,
  owner: string,
  [, account = '', container, key]: readonly (string | undefined)[],
): Said {
  const bucket: StoredBucket | undefined = buckets.get(account);
  if (!bucket || bucket.account !== owner)
    return said(403, 'AuthorizationPermissionMismatch', 'This request is not authorized to perform this operation.');
  if (!bucket.settings[`/blobServices/default/containers/${container}`])
    return said(404, 'ContainerNotFound', 'The specified container does not exist.');
  if (String(headers['x-ms-version'] ?? '') < OAUTH_SINCE)
    return said(403, 'AuthenticationFailed', 'Server failed to authenticate the request: x-ms-version.');
  const query = url.searchParams;
  if (key === undefined) {
    if (query.get('restype') !== 'container' || query.get('comp') !== 'list')
      return said(400, 'InvalidQueryParameterValue', 'Value for one of the query parameters is invalid.');
    const { objects, next } = buckets.page(bucket, query.get('prefix') ?? '', query.get('marker'));
    const each = objects.map(
      (one) =>
        `<Blob><Name>${escaped(one.key)}</Name><Properties><Content-Length>${one.size}</Content-Length></Properties></Blob>`,
    );
    return {
      body: `\uFEFF<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="${container}"><Blobs>${each.join('')}</Blobs><NextMarker>${next ?? ''}</NextMarker></EnumerationResults>`,
      headers: { 'content-type': 'application/xml' },
    };
  }
  if (method === 'PUT') {
    if (headers['x-ms-blob-type'] !== 'BlockBlob')
      return said(400, 'MissingRequiredHeader', 'An HTTP header that is mandatory for this request is not specified.');
    if ((headers['content-md5'] ?? md5Of(bytes)) !== md5Of(bytes))
      return said(400, 'Md5Mismatch', 'The MD5 value is not as computed.');
    buckets.put(bucket, key, bytes, true);
    return { status: 201, body: '' };
  }
  const found = buckets.find(bucket, key);
  if (!found) return said(404, 'BlobNotFound', 'The specified blob does not exist.');
  if (method === 'DELETE') {
    buckets.delete(bucket, key, true);
    return { status: 202, body: '' };
  }
  const about = {
    'content-type': 'application/octet-stream',
    'content-length': String(found.size),
    etag: `"${found.version}"`,
  };
  return { body: buckets.bytes(bucket, found), headers: about };
}
