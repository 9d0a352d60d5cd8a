import type { Testbed } from '../model.ts';
import type { Store } from '../store.ts';
import { bucketStore, type StoredBucket, type StoredObject } from './bucket-store.ts';
import { type Asked, Refused, type Said } from './server.ts';

const GONE: Said = { status: 204, body: '' };

const object = ({ key, version, size, md5 }: StoredObject) => ({
  name: key,
  size: String(size),
  generation: version,
  md5Hash: md5,
});

const described = ({ name, settings }: StoredBucket) => ({ ...settings, id: name, name });

/** Cloud Storage's JSON API, as far as Coppice asks it; undefined for other paths. */
export function cloudStorage(asked: Asked, testbed: Pick<Testbed, 'caller'>, store: Store): Said | undefined {
  const { method, url, body, bytes } = asked;
  const [, upload, rest] = /^(\/upload)?\/storage\/v1\/b(.*)$/.exec(url.pathname) ?? [];
  if (rest === undefined) return undefined;
  const { account } = testbed.caller;
  const query = url.searchParams;
  const buckets = bucketStore(store, 'gcp');
  const ofProject = () => {
    if (query.get('project') !== account) throw new Refused(403, 'forbidden', 'Permission denied on the project.');
  };
  if (rest === '' && method === 'GET') {
    ofProject();
    const items = buckets
      .all()
      .filter((one) => one.account === account && one.name.startsWith(query.get('prefix') ?? ''));
    return { body: items.length > 0 ? { items: items.map(described) } : {} };
  }
  if (rest === '' && method === 'POST') {
    ofProject();
    const { name, location, ...settings } = JSON.parse(body) as { name: string; location: string };
    if (buckets.get(name)) throw new Refused(409, 'conflict', 'The requested bucket name is not available.');
    return { body: described(buckets.make(name, account, location, settings)) };
  }
  const [, name = '', objects, encoded] = /^\/([^/]+)(\/o)?(?:\/(.+))?$/.exec(rest) ?? [];
  const bucket = buckets.get(name);
  if (!bucket) throw new Refused(404, 'notFound', 'The specified bucket does not exist.');
  if (bucket.account !== account && bucket.settings.open !== true)
    throw new Refused(403, 'forbidden', `${account} does not have access to it.`);
  const keep = (bucket.settings.versioning as { enabled?: boolean } | undefined)?.enabled === true;
  if (!objects) {
    if (method === 'PATCH') {
      bucket.settings = { ...bucket.settings, ...(JSON.parse(body) as object) };
      buckets.save(bucket);
    }
    if (method === 'DELETE') {
      if (bucket.objects.length > 0) throw new Refused(409, 'conflict', 'The bucket you tried to delete is not empty.');
      buckets.remove(bucket);
      return GONE;
    }
    return { body: described(bucket) };
  }
  if (upload) {
    const given = query.get('uploadType') === 'multipart' ? parts(asked) : { name: query.get('name') ?? '', bytes };
    return { body: object(buckets.put(bucket, given.name, given.bytes, keep)) };
  }
  if (encoded === undefined) {
    const all = query.get('versions') === 'true';
    const page = buckets.page(bucket, query.get('prefix') ?? '', query.get('pageToken'), all);
    return { body: { items: page.objects.map(object), ...(page.next && { nextPageToken: page.next }) } };
  }
  const key = decodeURIComponent(encoded);
  const generation = query.get('generation') ?? undefined;
  const found = buckets.find(bucket, key);
  const isMedia = query.get('alt') === 'media';
  if (!found && generation === undefined) {
    const message = `No such object: ${name}/${key}`;
    // Who asks for bytes is told in plain words.
    if (isMedia) return { status: 404, body: message, headers: { 'content-type': 'text/html; charset=UTF-8' } };
    throw new Refused(404, 'notFound', message);
  }
  if (method === 'DELETE') {
    buckets.delete(bucket, key, keep, generation);
    return GONE;
  }
  if (!isMedia) return { body: object(found!) };
  const headers = { 'content-type': 'application/octet-stream', 'x-goog-hash': `md5=${found!.md5}` };
  return { body: buckets.bytes(bucket, found!), headers };
}

/** Metadata and bytes of a multipart/related body (RFC 2387), as Google's clients send small objects. */
function parts({ headers, bytes, url }: Asked): { name: string; bytes: Buffer } {
  const [, boundary] = /boundary="?([^";]+)/.exec(String(headers['content-type'])) ?? [];
  const [, described = '', content = ''] = bytes.toString('latin1').split(`--${boundary}`);
  const bodyOf = (part: string) => Buffer.from(part.slice(part.indexOf('\r\n\r\n') + 4, -2), 'latin1');
  const { name = url.searchParams.get('name') ?? '' } = JSON.parse(bodyOf(described).toString()) as { name?: string };
  return { name, bytes: bodyOf(content) };
}
