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

const described = ({ name, settings }: StoredBucket) => ({ ...settings, name });

/** Cloud Storage's JSON API, as far as Coppice asks it; undefined for other paths. */
export function cloudStorage({ method, url, body, bytes }: Asked, testbed: Pick<Testbed, 'caller'>, store: Store) {
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
  if (upload) return { body: object(buckets.put(bucket, query.get('name') ?? '', bytes, keep)) };
  if (encoded === undefined) {
    const all = query.get('versions') === 'true';
    const page = buckets.page(bucket, query.get('prefix') ?? '', query.get('pageToken'), all);
    return { body: { items: page.objects.map(object), ...(page.next && { nextPageToken: page.next }) } };
  }
  const key = decodeURIComponent(encoded);
  const generation = query.get('generation') ?? undefined;
  const found = buckets.find(bucket, key);
  if (!found && generation === undefined) throw new Refused(404, 'notFound', `No such object: ${name}/${key}`);
  if (method === 'DELETE') {
    buckets.delete(bucket, key, keep, generation);
    return GONE;
  }
  return { body: buckets.bytes(bucket, found!), headers: { 'content-type': 'application/octet-stream' } };
}
