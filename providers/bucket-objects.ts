import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import { request } from 'undici';
import { CoppiceError, configurationProblem, dependencyNotReady } from '../operator/api/errors.ts';
import type { BackupBucket, BackupContent } from './backup.ts';
import { patiently, saidOfProxy, toClouds } from './cloud-http.ts';

/** Days for which what was deleted or overwritten can be had back, in clouds. */
export const KEPT_DAYS = 7;

/**
 * The most that goes up in one request, bytes: S3's limit of a PUT (Amazon S3 User Guide, "Uploading objects"; Azure's Put Blob takes
 * 5000 MiB, Google more). etcd's own quota here is 2 GiB (operator/shoot/etcd.ts), so nothing of ours comes near.
 */
const MOST_BYTES = 5_000_000_000;

/** Which of our settings a bucket has, in its tags: another number, and they are set again. */
export const SETTINGS = '1';

/** Tag (at GCP: label) keys of a bucket for backups. */
export const BACKUP_TAGS = {
  seed: 'coppice-backup-seed',
  seedUID: 'coppice-backup-seed-uid',
  garden: 'coppice-backup-garden',
  /** Comes last, when everything else is set. */
  settings: 'coppice-backup-settings',
} as const;

/** The tags of a bucket that is as it should be. */
export const backupTags = ({ seed, seedUID, garden }: BackupBucket): Record<string, string> => ({
  [BACKUP_TAGS.seed]: seed,
  [BACKUP_TAGS.seedUID]: seedUID,
  [BACKUP_TAGS.garden]: garden,
  [BACKUP_TAGS.settings]: SETTINGS,
});

/** Whether a bucket with these tags is as it should be. */
export const isAsWanted = (tags: Readonly<Record<string, string | undefined>>, bucket: BackupBucket): boolean =>
  Object.entries(backupTags(bucket)).every(([key, value]) => tags[key] === value);

/** The words of what does not hold. */
export const broken = (promises: Readonly<Record<string, boolean | undefined>>): string[] =>
  Object.entries(promises).flatMap(([words, holds]) => (holds ? [] : [words]));

/** A bucket that bears the tags of another seed or garden is not ours to touch. Throws ERR_INFRA_DEPENDENCIES. */
export function refuseForeign(tags: Readonly<Record<string, string | undefined>>, bucket: BackupBucket): void {
  const owner = tags[BACKUP_TAGS.seedUID];
  if (owner !== undefined && owner !== bucket.seedUID)
    throw new CoppiceError('ERR_INFRA_DEPENDENCIES', `bucket ${bucket.name} belongs to another seed (${owner})`);
}

const KEY = /^[\w-][\w.-]*(\/[\w-][\w.-]*)*$/;

/** The key itself: letters, digits, `_`, `.`, `-` and `/`, nothing that a path or a URL would take for something else. */
export function checkedKey(key: string): string {
  if (KEY.test(key) && key.length <= 512) return key;
  throw configurationProblem(`${JSON.stringify(key)} is no key of a backup`);
}

/** There is no such object. */
export const noSuchObject = (bucket: BackupBucket, key: string): CoppiceError =>
  new CoppiceError('ERR_INFRA_DEPENDENCIES', `there is no ${key} in bucket ${bucket.name}`, {
    advice: 'It may have been deleted because newer ones came: list what there is.',
  });

/** A bucket is only taken away empty. */
export const notEmpty = (bucket: BackupBucket, objects: number): CoppiceError =>
  new CoppiceError('ERR_INFRA_DEPENDENCIES', `bucket ${bucket.name} still holds ${objects} backups`, {
    advice: 'Delete them first, or say that they are to go with it.',
  });

/** Small content, for marks. */
export const contentOf = (text: string): BackupContent => ({
  size: Buffer.byteLength(text),
  sha256: createHash('sha256').update(text).digest('hex'),
  md5: createHash('md5').update(text).digest('base64'),
  open: () => Readable.from([Buffer.from(text)], { objectMode: false }),
});

/** Refuses what does not fit into one request. */
export function refuseTooLarge({ size }: BackupContent, key: string): void {
  if (size > MOST_BYTES)
    throw configurationProblem(`${key} has ${size} bytes, more than ${MOST_BYTES} go up in one request`);
}

/** A request whose body or answer may be large. */
export interface Transfer {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  url: string | URL;
  headers: Record<string, string>;
  content?: BackupContent | undefined;
  /** What fails if this does, for the message. */
  what: string;
  signal: AbortSignal;
}

/** The answer to a transfer: to be read or destroyed, or its connection stays taken. */
export interface Transferred {
  status: number;
  headers: IncomingHttpHeaders;
  body: Readable & { text(): Promise<string> };
}

/** Nothing moved for this long, milliseconds: the other side is gone. */
const IDLE_MS = 60_000;
/** A cloud answers an upload only when it has stored all of it, milliseconds. */
const STORED_MS = 10 * 60_000;

/** Sends a request without holding what it carries. Rejects with ERR_RETRYABLE_INFRA_DEPENDENCIES when nobody answers. */
export function transfer(asked: Transfer): Promise<Transferred> {
  let last: Transferred | undefined;
  return patiently(asked.method, asked.signal, async () => {
    // Nobody reads what is not the last answer.
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
    // A refusal may come before all of it was sent.
    body?.destroy();
  }
}
