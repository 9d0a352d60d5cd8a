import type { Readable } from 'node:stream';
import type { CloudProfile } from '../operator/api/cloudprofile.ts';
import type { CloudAccount } from './cloud.ts';

/** A bucket for backups of the control planes of one seed. */
export interface BackupBucket {
  /**
   * At most 63 characters: lowercase letters, digits and dashes. Contains the UID of the seed, so that it cannot be
   * guessed.
   */
  name: string;
  /**
   * Name and UID of the seed, and of the garden: tags for ownership and cost. Separate from OWNER_TAGS, by which the
   * sweep finds removable resources.
   */
  seed: string;
  seedUID: string;
  garden: string;
}

/** Inputs of a call to a bucket. */
export interface BackupContext {
  bucket: BackupBucket;
  region: string;
  account: CloudAccount;
  /** Names the cloud's service endpoints if they are not the default ones. */
  profile: CloudProfile;
  /** Persistent directory for providers without other storage. Absent: none. */
  directory?: string | undefined;
  signal: AbortSignal;
  now(): Date;
}

/** Content of an upload: a stream that can be reopened, with digests known in advance; never in memory as a whole. */
export interface BackupContent {
  /** Bytes. */
  size: number;
  /** SHA-256, hexadecimal. */
  sha256: string;
  /** MD5, base64: clouds verify the upload by it. */
  md5: string;
  open(): Readable;
}

/** An object in a bucket. */
export interface BackupObject {
  key: string;
  /** Bytes. */
  size: number;
}

/**
 * Buckets for backups: private, encrypted, TLS only; deleted and overwritten objects can be restored for KEPT_DAYS (if
 * the cloud supports that). Every method is idempotent. Errors are CoppiceErrors with a Gardener code where the cause
 * is known. Keys must pass checkedKey.
 */
export interface BackupBuckets {
  /** Whether the bucket is in a cloud account, which needs credentials. */
  readonly inCloud: boolean;
  /**
   * Creates or corrects the bucket; writes nothing when it is correct. Refuses a bucket of that name with another
   * owner.
   */
  ensure(ctx: BackupContext): Promise<void>;
  /**
   * Security settings of an ensured bucket that others changed, as text; empty: none. Without tag BACKUP_TAGS.settings,
   * ensure sets them all again.
   */
  differences(ctx: BackupContext): Promise<string[]>;
  /**
   * Deletes the bucket; a missing one is fine. Refuses a non-empty one with ERR_INFRA_DEPENDENCIES, unless
   * `withContents`.
   */
  remove(ctx: BackupContext, options?: { withContents?: boolean }): Promise<void>;
  /** Uploads the content completely or not at all. */
  put(ctx: BackupContext, key: string, content: BackupContent): Promise<void>;
  /** Objects whose key begins with the prefix, ordered by key. */
  list(ctx: BackupContext, prefix: string): Promise<BackupObject[]>;
  /** Rejects with ERR_INFRA_DEPENDENCIES when the object does not exist. */
  get(ctx: BackupContext, key: string): Promise<Readable>;
  /** Deletes an object; a missing one is fine. */
  delete(ctx: BackupContext, key: string): Promise<void>;
}
