import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import { request } from 'undici';
import { CoppiceError, configurationProblem, dependencyNotReady } from '../operator/api/errors.ts';
import type { BackupBucket, BackupContent } from './backup.ts';
import { patiently, saidOfProxy, toClouds } from './cloud-http.ts';

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
export const broken = (promises: Readonly<Record<string, boolean | undefined>>): string[] =>
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

/** A request with a possibly large body or answer. */
export interface Transfer {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  url: string | URL;
  headers: Record<string, string>;
  content?: BackupContent | undefined;
  /** The action, for the error message. */
  what: string;
  signal: AbortSignal;
}

/** Answer to a transfer. Read or destroy the body, or its connection stays in use. */
export interface Transferred {
  status: number;
  headers: IncomingHttpHeaders;
  body: Readable & { text(): Promise<string> };
}

/** Longest pause within a transfer before the peer counts as dead, milliseconds. */
const IDLE_MS = 60_000;
/** Time for a cloud to store a complete upload before it answers, milliseconds. */
const STORED_MS = 10 * 60_000;

/**
 * Sends a request without holding its body in memory. Rejects with ERR_RETRYABLE_INFRA_DEPENDENCIES when there is no
 * answer.
 */
export function transfer(asked: Transfer): Promise<Transferred> {
  let last: Transferred | undefined;
  return patiently(asked.method, asked.signal, async () => {
    // Discard the body of an answer that is not the last.
    last?.body.resume();
    last = await transferOnce(asked);
    return last;
  });
}

async function transferOnce({ method, url, headers, content, what, signal }: Transfer): Promise<Transferred> {
  const body = content?.open();
  try {
    const answer = await request(url, {
      dispatcher: toClouds,
      method,
      headers: { ...headers, ...(content && { 'content-length': String(content.size) }) },
      ...(body && { body }),
      headersTimeout: content ? STORED_MS : IDLE_MS,
      bodyTimeout: IDLE_MS,
      signal,
    });
    return { status: answer.statusCode, headers: answer.headers, body: answer.body };
  } catch (error) {
    signal.throwIfAborted();
    throw dependencyNotReady(`${what}: ${new URL(url).host} cannot be reached${saidOfProxy(error)}`, error);
  } finally {
    // A refusal may arrive before the whole body was sent.
    body?.destroy();
  }
}
