import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { dependencyNotReady } from '../../api/errors.ts';

/**
 * etcd appends the SHA-256 of the content to a snapshot (server/etcdserver/api/v3rpc/maintenance.go); pages are
 * multiples of 512.
 */
const DIGEST_BYTES = 32;
const PAGE_BYTES = 512;

/** Computes digests of a streamed snapshot. */
export class SnapshotDigest {
  readonly #whole = createHash('sha256');
  readonly #md5 = createHash('md5');
  readonly #database = createHash('sha256');
  /** The last bytes so far, which may be the digest. */
  #tail = Buffer.alloc(0);
  #size = 0;

  update(chunk: Buffer): void {
    this.#size += chunk.length;
    this.#whole.update(chunk);
    this.#md5.update(chunk);
    const held = this.#tail.length + chunk.length - DIGEST_BYTES;
    if (held <= 0) {
      this.#tail = Buffer.concat([this.#tail, chunk]);
      return;
    }
    const both = Buffer.concat([this.#tail, chunk]);
    this.#database.update(both.subarray(0, held));
    this.#tail = Buffer.from(both.subarray(held));
  }

  /** Digests of the whole. Throws ERR_RETRYABLE_INFRA_DEPENDENCIES when the content does not match etcd's digest. */
  verified(): { size: number; sha256: string; md5: string } {
    const database = this.#size - DIGEST_BYTES;
    if (database <= 0 || database % PAGE_BYTES !== 0 || !this.#database.digest().equals(this.#tail))
      throw dependencyNotReady(`the snapshot (${this.#size} bytes) is damaged or cut off: its digest does not fit`);
    return { size: this.#size, sha256: this.#whole.digest('hex'), md5: this.#md5.digest('base64') };
  }
}

/** Writes a snapshot to a new file, readable by the owner only, and verifies it. */
export async function writeVerified(
  file: string,
  chunks: AsyncIterable<Buffer>,
  signal: AbortSignal,
): Promise<{ size: number; sha256: string; md5: string }> {
  const digest = new SnapshotDigest();
  const handle: FileHandle = await open(file, 'wx', 0o600);
  try {
    for await (const chunk of chunks) {
      signal.throwIfAborted();
      digest.update(chunk);
      await handle.writeFile(chunk);
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
  return digest.verified();
}
