import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CloudName } from '../model.ts';
import type { Store } from '../store.ts';

/** An object, or what is kept of one that was deleted or overwritten. */
export interface StoredObject {
  key: string;
  version: string;
  size: number;
  md5: string;
  /** False: kept only because the bucket has versions. */
  current: boolean;
  /** Says that the object was deleted, in a bucket of S3 with versions: it has no bytes, and a bucket with it is not empty. */
  marker?: true;
}

/** A bucket of a fake cloud: its settings as the cloud was told them, and what is in it. */
export interface StoredBucket {
  cloud: CloudName;
  name: string;
  account: string;
  region: string;
  settings: Record<string, unknown>;
  objects: StoredObject[];
  versions: number;
}

/** So few that every list of a test has more than one page. */
export const PAGE = 2;

const FOLDER = 'buckets';
const fileOf = (cloud: CloudName, name: string): string => `${cloud}-${name}.json`;

export const md5Of = (bytes: Buffer): string => createHash('md5').update(bytes).digest('base64');

/** Buckets in the memory of the fake clouds; to be called within a transaction. */
export function bucketStore(store: Store, cloud: CloudName) {
  const folder = (name: string) => join(store.dir, FOLDER, `${cloud}-${name}.objects`);
  const save = (bucket: StoredBucket) => {
    store.writeJSON(bucket, FOLDER, fileOf(cloud, bucket.name));
    return bucket;
  };
  const retire = (bucket: StoredBucket, key: string, keep: boolean) => {
    bucket.objects = bucket.objects.flatMap((one) => {
      if (one.key !== key || !one.current) return [one];
      return keep ? [{ ...one, current: false }] : [];
    });
  };
  return {
    all: () => store.listJSON<StoredBucket>(FOLDER).filter((one) => one.cloud === cloud),
    get: (name: string) => store.readJSON<StoredBucket>(FOLDER, fileOf(cloud, name)),
    make(name: string, account: string, region: string, settings: Record<string, unknown> = {}): StoredBucket {
      mkdirSync(folder(name), { recursive: true, mode: 0o700 });
      return save({ cloud, name, account, region, settings, objects: [], versions: 0 });
    },
    save,
    remove({ name }: StoredBucket) {
      rmSync(folder(name), { recursive: true, force: true });
      rmSync(join(store.dir, FOLDER, fileOf(cloud, name)), { force: true });
    },
    put(bucket: StoredBucket, key: string, bytes: Buffer, keep: boolean): StoredObject {
      retire(bucket, key, keep);
      const object = { key, version: String(++bucket.versions), size: bytes.length, md5: md5Of(bytes), current: true };
      bucket.objects = [...bucket.objects, object].sort((a, b) => (a.key < b.key ? -1 : 1));
      writeFileSync(join(folder(bucket.name), object.version), bytes, { mode: 0o600 });
      save(bucket);
      return object;
    },
    find: (bucket: StoredBucket, key: string) => bucket.objects.find((one) => one.key === key && one.current),
    bytes: (bucket: StoredBucket, { version }: StoredObject) => readFileSync(join(folder(bucket.name), version)),
    /** Without `version` the object is gone as far as anybody sees. */
    delete(bucket: StoredBucket, key: string, keep: boolean, version?: string) {
      if (version === undefined) retire(bucket, key, keep);
      else bucket.objects = bucket.objects.filter((one) => one.key !== key || one.version !== version);
      save(bucket);
    },
    /** Leaves a mark in place of a deleted object (Amazon S3 User Guide, "Working with delete markers"). */
    mark(bucket: StoredBucket, key: string) {
      bucket.objects.push({
        key,
        version: String(++bucket.versions),
        size: 0,
        md5: '',
        current: false,
        marker: true,
      });
      save(bucket);
    },
    /** One page of those that begin with the prefix, after the key or version that the last page gave as `next`. */
    page(bucket: StoredBucket, prefix: string, after: string | null, versions = false) {
      const all = bucket.objects.filter((one) => one.key.startsWith(prefix) && (versions || one.current));
      const from = after === null ? 0 : Number(after);
      const next = from + PAGE < all.length ? String(from + PAGE) : undefined;
      return { objects: all.slice(from, from + PAGE), next };
    },
  };
}
