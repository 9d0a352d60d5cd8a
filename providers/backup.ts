import type { Readable } from 'node:stream';
import type { CloudProfile } from '../operator/api/cloudprofile.ts';
import type { CloudAccount } from './cloud.ts';

/** A bucket for backups of the control planes of one seed. */
export interface BackupBucket {
  /** At most 63 characters: lowercase letters, digits and dashes. Holds the UID of the seed, so nobody guesses it beforehand. */
  name: string;
  /** Name and UID of the seed, and of the garden: tags of ownership and cost. Not OWNER_TAGS, by which the sweep finds what may be removed. */
  seed: string;
  seedUID: string;
  garden: string;
}

/** What a call to a bucket works for, and with. */
export interface BackupContext {
  bucket: BackupBucket;
  region: string;
  account: CloudAccount;
  /** Says where the cloud's services are, if not where they usually are. */
  profile: CloudProfile;
  /** Directory that outlives the operator, for providers that have no other place. Absent: there is none. */
  directory?: string | undefined;
  signal: AbortSignal;
  now(): Date;
}

/** What is put into a bucket: never as a whole in memory, so it can be opened again and its digests are known before. */
export interface BackupContent {
  /** Bytes. */
  size: number;
  /** SHA-256, hexadecimal. */
  sha256: string;
  /** MD5, base64: what clouds compare with what arrived. */
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
 * Buckets for backups: private, encrypted, reached by TLS only, and what is deleted or overwritten in them can be had back for
 * KEPT_DAYS (where the cloud has that). Every method is idempotent and safe to repeat. Errors are CoppiceErrors with a Gardener code
 * where the cause is known. Keys are checkedKey's.
 */
export interface BackupBuckets {
  /** Whether the bucket is in an account of a cloud: it takes credentials. */
  readonly inCloud: boolean;
  /** Makes the bucket be there as described; writes nothing when it is. Refuses one of that name that somebody else has. */
  ensure(ctx: BackupContext): Promise<void>;
  /**
   * What others have changed of what makes the bucket safe, in words; empty when nothing. Of a bucket that ensure has seen to be there. Where
   * the tag BACKUP_TAGS.settings is taken away, ensure sets all of it again.
   */
  differences(ctx: BackupContext): Promise<string[]>;
  /** Takes the bucket away; one that is gone is fine. Refused with ERR_INFRA_DEPENDENCIES while something is in it, unless told so. */
  remove(ctx: BackupContext, options?: { withContents?: boolean }): Promise<void>;
  /** Puts all of the content or nothing. */
  put(ctx: BackupContext, key: string, content: BackupContent): Promise<void>;
  /** Everything whose key begins with the prefix, in the order of keys. */
  list(ctx: BackupContext, prefix: string): Promise<BackupObject[]>;
  /** Rejects with ERR_INFRA_DEPENDENCIES when there is no such object. */
  get(ctx: BackupContext, key: string): Promise<Readable>;
  /** Deletes an object; one that is gone is fine. */
  delete(ctx: BackupContext, key: string): Promise<void>;
}
