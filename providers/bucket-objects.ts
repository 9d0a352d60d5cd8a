import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { CoppiceError, configurationProblem } from '../operator/api/errors.ts';
import type { BackupBucket, BackupContent } from './backup.ts';

/** Days for which deleted and overwritten objects can be restored, in clouds. */
export const KEPT_DAYS = 7;

/**
 * Largest upload in one request, bytes: S3's limit of a PUT (Amazon S3 User Guide, "Uploading objects"; Azure's Put
 * Blob takes 5000 MiB, Google more). Backups are far smaller: etcd's quota is 2 GiB (operator/shoot/etcd.ts).
 */
const MOST_BYTES = 5_000_000_000;

/** Version of the bucket settings, stored in a tag: after a change, ensure applies them again. */
const SETTINGS = '1';

/** Tag (at GCP: label) keys of a bucket for backups. */
export const BACKUP_TAGS = {
  seed: 'coppice-backup-seed',
  seedUID: 'coppice-backup-seed-uid',
  garden: 'coppice-backup-garden',
  /** Set last, after all other settings. */
  settings: 'coppice-backup-settings',
} as const;

/** Tags of a correct bucket. */
export const backupTags = ({ seed, seedUID, garden }: BackupBucket): Record<string, string> => ({
  [BACKUP_TAGS.seed]: seed,
  [BACKUP_TAGS.seedUID]: seedUID,
  [BACKUP_TAGS.garden]: garden,
  [BACKUP_TAGS.settings]: SETTINGS,
});

/** Whether the tags are those of a correct bucket. */
export const isAsWanted = (tags: Readonly<Record<string, string | undefined>>, bucket: BackupBucket): boolean =>
  Object.entries(backupTags(bucket)).every(([key, value]) => tags[key] === value);

/** Texts of the promises that do not hold. */
export const brokenPromises = (promises: Readonly<Record<string, boolean | undefined>>): string[] =>
  Object.entries(promises).flatMap(([words, holds]) => (holds ? [] : [words]));

/** Throws ERR_INFRA_DEPENDENCIES for a bucket with the tags of another seed or garden. */
export function refuseForeign(tags: Readonly<Record<string, string | undefined>>, bucket: BackupBucket): void {
  const owner = tags[BACKUP_TAGS.seedUID];
  if (owner !== undefined && owner !== bucket.seedUID)
    throw new CoppiceError('ERR_INFRA_DEPENDENCIES', `bucket ${bucket.name} belongs to another seed (${owner})`);
}

const KEY = /^[\w-][\w.-]*(\/[\w-][\w.-]*)*$/;

/**
 * Returns the key if valid: letters, digits, `_`, `.`, `-` and `/`, without parts that a path or a URL would interpret.
 */
export function checkedKey(key: string): string {
  if (KEY.test(key) && key.length <= 512) return key;
  throw configurationProblem(`${JSON.stringify(key)} is no key of a backup`);
}

/** Error of a missing object. */
export const noSuchObject = (bucket: BackupBucket, key: string): CoppiceError =>
  new CoppiceError('ERR_INFRA_DEPENDENCIES', `there is no ${key} in bucket ${bucket.name}`, {
    advice: 'It may have been deleted because newer ones came: list what there is.',
  });

/** Error of a bucket that is not empty. */
export const notEmpty = (bucket: BackupBucket, objects: number): CoppiceError =>
  new CoppiceError('ERR_INFRA_DEPENDENCIES', `bucket ${bucket.name} still holds ${objects} backups`, {
    advice: 'Delete them first, or say that they are to go with it.',
  });

/** Content of a small text, for marker objects. */
export const contentOf = (text: string): BackupContent => ({
  size: Buffer.byteLength(text),
  sha256: createHash('sha256').update(text).digest('hex'),
  md5: createHash('md5').update(text).digest('base64'),
  open: () => Readable.from([Buffer.from(text)], { objectMode: false }),
});

/** Throws for content larger than one request. */
export function refuseTooLarge({ size }: BackupContent, key: string): void {
  if (size > MOST_BYTES)
    throw configurationProblem(`${key} has ${size} bytes, more than ${MOST_BYTES} go up in one request`);
}
